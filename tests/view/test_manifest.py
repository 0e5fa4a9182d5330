"""Manifests: with the log they are the view again, to the byte, however it was made."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from palaver.errors import StoreDamaged
from palaver.log import Entry, Instructions, ModelChange, Pin, Place, Quarantine, Section, Toolset, ToolSpec
from palaver.messages import canonical_json
from palaver.testing.logs import Log, model, user
from palaver.view import (
    Drop,
    Manifest,
    Plan,
    apply,
    manifest,
    patched,
    restored,
)
from tests.view.growing import commit, seen


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
    for difference in ({}, {"at": 0, "items": [3]}, {"at": 0, "items": [{"kept": ["a", 1]}]}):
        with pytest.raises(StoreDamaged, match="manifest"):
            patched(difference, {})


def test_view_knows_what_was_said_before_an_edit() -> None:
    """What a provider signed before an edit, or other instructions or tools, was signed for other words; a manifest keeps both counts."""
    edits: dict[str, tuple[Callable[[Log], Entry], tuple[int, int]]] = {
        "quarantine": (
            lambda log: Quarantine(target=Place(dialog=log.dialog, seq=2, block=0), reason="refused"),
            (3, 0),
        ),
        "instructions": (lambda _: Instructions(sections=(Section(name="role", text="newer"),)), (0, 3)),
        "toolset": (lambda _: Toolset(tools=(ToolSpec(name="newer"),)), (0, 3)),
        "provider's tools": (lambda _: Toolset(tools=(ToolSpec(name="first"),), provided={"web_search": True}), (0, 3)),
        "compaction": (lambda log: commit(log, apply(seen(log), Plan(policy="cut", drops=(Drop(index=0),)))), (2, 0)),
        "pin": (lambda log: Pin(target=Place(dialog=log.dialog, seq=2)), (0, 0)),
        "model": (lambda _: ModelChange(model="other"), (0, 0)),
    }
    for what, (entry, counts) in edits.items():
        log = Log()
        log.put(Instructions(sections=(Section(name="role", text="first"),)), Toolset(tools=(ToolSpec(name="first"),)))
        log.put(user("go"), model("well"), user("on"))
        assert (seen(log).edited, seen(log).changed) == (0, 0)
        log.put(entry(log), user("more"))
        folded = seen(log)
        assert (folded.edited, folded.changed) == counts, what
        back = restored(stored(manifest(folded, folded)), seen(log))
        assert (back.edited, back.changed) == counts, what
        planned = apply(folded, Plan(policy="cut", drops=(Drop(index=1),)))
        assert (planned.edited, planned.changed) == (len(planned.exchanges), 0), what
