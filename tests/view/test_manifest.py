"""Manifests: with the log they are the view again, to the byte, however it was made."""

from __future__ import annotations

import json

import pytest

from palaver.errors import StoreDamaged
from palaver.messages import canonical_json
from palaver.testing.logs import Log, model, user
from palaver.view import (
    Manifest,
    manifest,
    patched,
    restored,
    whole,
)
from tests.view.growing import seen


def stored(value: Manifest) -> Manifest:
    """Return a manifest as it comes back from a store."""
    read: Manifest = json.loads(canonical_json(value))
    return read


def test_foreign_manifest_is_damage() -> None:
    """A manifest that does not fit the log, or a difference that is none, is a typed error, and costs nothing."""
    log = Log()
    log.put(user("hi"), model("yes"))
    good = stored(manifest(seen(log), seen(log)))
    items: list[object] = [[0, 10**12], [2, 1], [-1, 1], ["a", "b"], {"turns": [], "runs": []}, 7]
    target = {"dialog": "x", "seq": 0, "block": 0}
    cases: list[Manifest] = [
        *({"items": [item]} for item in items),
        {"system": [[0, 1]]},
        {"edits": [{"target": {"dialog": "x"}, "text": "x"}]},
        {"edits": [{"target": target, "text": None, "reason": "nonsense"}]},
        {"omitted": [{}]},
        {"system": [{"content": 3}]},
        {"policies": 3},
    ]
    for broken in cases:
        with pytest.raises(StoreDamaged, match="manifest"):
            restored(good | broken, seen(log))
    with pytest.raises(StoreDamaged, match="manifest"):
        restored({}, seen(log))
    for foreign in (3, {}, good | {"at": "2"}, {**good, "items": 3}):
        with pytest.raises(StoreDamaged, match="manifest"):
            whole(foreign)
    for difference in ({}, {"at": 0, "items": [3]}, {"at": 0, "items": [{"kept": ["a", 1]}]}):
        with pytest.raises(StoreDamaged, match="manifest"):
            patched(difference, {})
