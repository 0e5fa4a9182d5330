"""Golden files: what this or an earlier version wrote stays readable, and what a later one writes survives."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from palaver import Session
from palaver.errors import NotReproducible
from palaver.log import KINDS, decode_entry, draft
from palaver.messages import words_of
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.transcripts import export_bundle, import_bundle
from palaver.transfer.copies import copy_store
from palaver.view import Fold, fold
from palaver.wire.request import COMPILER
from tests.transcripts.golden import GOLDEN, ROOT, SESSION, VERSION

VERSIONS = range(1, VERSION + 1)


def lines(version: int) -> list[bytes]:
    """Return the entries that a version wrote."""
    return (GOLDEN / f"entries-v{version}.jsonl").read_bytes().splitlines()


def bundle(version: int) -> bytes:
    """Return the bundle that a version wrote."""
    return (GOLDEN / f"bundle-v{version}.palaver").read_bytes()


def imported(version: int, store: Store | None = None) -> Store:
    """Return a store that imported the bundle of a version."""
    into = store or MemoryStore()
    import_bundle(into, BytesIO(bundle(version)).read)
    return into


def test_every_version_of_an_entry_survives() -> None:
    """Decoding and drafting an entry again loses nothing, also of kinds and fields of a later version."""
    for version in VERSIONS:
        known = {json.loads(line)["kind"] for line in lines(version)}
        assert known - set(KINDS) == {"of_a_later_version"}
        for line in lines(version):
            written = draft(decode_entry(line))[0].body
            assert _within(json.loads(line), json.loads(written)), line
            assert b"of_a_later_version" not in line or written == line
        missing = set(KINDS) - known - {"invocation", "constraint"}
        assert version < VERSION or not missing, "a new kind needs a new line; the bundle has the call"


def _within(old: Any, new: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether every field that was written is still there, unchanged; a later version may add fields."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and _within(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(_within, old, new))
    return bool(old == new)


@pytest.mark.parametrize("version", VERSIONS)
def test_bundle_of_every_version_is_imported_whole(version: int, tmp_path: Path) -> None:
    """Every store keeps its bytes, also a copied one, and exports the same bundle."""
    with SqliteStore(tmp_path / "store.db") as file:
        for store in (imported(version), imported(version, file)):
            bodies = [body for _, body in store.bodies(ROOT)]
            assert len(bodies) == len(lines(version)) + 1
            assert b"".join(export_bundle(store, SESSION)) == bundle(version)
        copy = MemoryStore()
        assert copy_store(file, copy).equal
        assert b"".join(export_bundle(copy, SESSION)) == bundle(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_call_of_every_version_is_reproduced(version: int) -> None:
    """The request is the same to the byte while the compiler is; after that a typed error, and still the view."""
    dialog = Session.open(imported(version), SESSION).dialog(ROOT)
    (call,) = dialog.calls
    assert call.view().exchanges
    try:
        assert call.request().data + b"\n" == (GOLDEN / f"request-v{version}.json").read_bytes()
    except NotReproducible:
        assert COMPILER > 1


@pytest.mark.parametrize("version", VERSIONS)
def test_view_skips_kinds_of_a_later_version(version: int) -> None:
    """An unknown kind is in no view; what is before and after it is."""
    store = imported(version)
    view = fold(store, ROOT)
    assert Fold(store, store.node(ROOT)).view(store.last(ROOT)) == view
    shown = [block.content for exchange in view.exchanges for block in exchange.blocks()]
    assert "And now?" in [getattr(content, "content", "") for content in shown]
    assert not any("no message of ours" in words_of(content) for content in shown)
