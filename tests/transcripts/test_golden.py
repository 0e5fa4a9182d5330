"""Golden files: what this or an earlier version wrote is read for ever; what a later one writes survives; what commands print keeps its form."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from palaver import Session
from palaver.errors import InvalidBundle, NotReproducible
from palaver.log import KINDS, decode_entry, draft
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.store.copying import copy_store
from palaver.transcripts import export_bundle, import_bundle
from palaver.view import Folding, fold
from palaver.wire.request import COMPILER
from tests.transcripts.golden import GOLDEN, ROOT, SESSION, VERSION, printed

VERSIONS = range(1, VERSION + 1)


def lines(version: int) -> list[bytes]:
    """Give the entries that a version wrote."""
    return (GOLDEN / f"entries-v{version}.jsonl").read_bytes().splitlines()


def bundle(version: int) -> bytes:
    """Give the bundle that a version wrote."""
    return (GOLDEN / f"bundle-v{version}.palaver").read_bytes()


def taken(version: int, store: Store | None = None) -> Store:
    """Give a store that took the bundle of a version."""
    into = store or MemoryStore()
    import_bundle(into, BytesIO(bundle(version)).read)
    return into


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_of_every_version_are_read_and_written_back_whole(version: int) -> None:
    """Each kind there is, and kinds and fields of a later version: decoded and drafted again nothing of them is lost or changed."""
    known = {json.loads(line)["kind"] for line in lines(version)}
    assert known - set(KINDS) == {"of_a_later_version"}
    for line in lines(version):
        written = draft(decode_entry(line))[0].body
        assert _within(json.loads(line), json.loads(written)), line
        assert b"of_a_later_version" not in line or written == line


def _within(old: Any, new: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether everything that was written is there still, as it was; a later version may add fields of its own."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and _within(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(_within, old, new))
    return bool(old == new)


def test_every_kind_of_entry_has_a_golden_line() -> None:
    """A new kind needs a new line: the newest file has every kind but the call, which the bundle has."""
    assert set(KINDS) - {"invocation"} <= {json.loads(line)["kind"] for line in lines(VERSION)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bundle_of_every_version_is_taken_whole(version: int, tmp_path: Path) -> None:
    """All entries to the byte, in memory and in a file; written out again it is the same bundle; a copy of the store has the same."""
    with SqliteStore(tmp_path / "store.db") as file:
        for store in (taken(version), taken(version, file)):
            bodies = [body for _, body in store.bodies(ROOT)]
            assert len(bodies) == len(lines(version)) + 1
            assert b"".join(export_bundle(store, SESSION)) == bundle(version)
        copy = MemoryStore()
        assert copy_store(file, copy).equal
        assert b"".join(export_bundle(copy, SESSION)) == bundle(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_call_of_every_version_is_given_back(version: int) -> None:
    """The request to the byte, as long as the compiler is the one that wrote it; else a typed error, and the view all the same."""
    dialog = Session.open(SESSION, taken(version)).dialog(ROOT)
    (call,) = dialog.invocations
    assert call.view().exchanges
    try:
        assert call.request().data + b"\n" == (GOLDEN / f"request-v{version}.json").read_bytes()
    except NotReproducible:
        assert COMPILER > 1


@pytest.mark.parametrize("version", VERSIONS)
def test_views_pass_over_what_a_later_version_wrote(version: int) -> None:
    """An unknown kind is in no view and breaks none; the words before and after it are there."""
    store = taken(version)
    view = fold(store, ROOT)
    assert Folding(store, store.node(ROOT)).view(store.last(ROOT)) == view
    shown = [block.content for exchange in view.exchanges for block in exchange.blocks()]
    assert "And now?" in [getattr(content, "content", "") for content in shown]
    assert not any("no message of ours" in str(content) for content in shown)


def test_a_newer_bundle_is_refused_and_nothing_is_written() -> None:
    """Its version is told, and what to do; the store is as it was."""
    store = MemoryStore()
    newer = bundle(VERSION).replace(b"palaver-bundle 1\n", b"palaver-bundle 9\n", 1)
    with pytest.raises(InvalidBundle, match="version 9"):
        import_bundle(store, BytesIO(newer).read)
    assert not list(store.sessions())


def _shape(old: Any, new: Any, place: str = "") -> list[str]:  # noqa: ANN401 - any JSON value
    """Give the fields that were printed and are not any more, or are of another kind."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [place]
        return [
            gone
            for name, value in old.items()
            for gone in ([f"{place}.{name}"] if name not in new else _shape(value, new[name], f"{place}.{name}"))
        ]
    if isinstance(old, list):
        if not isinstance(new, list) or bool(old) != bool(new):
            return [place]
        return _shape(old[0], new[0], f"{place}[]") if old else []
    return (
        []
        if old is None or isinstance(new, type(old)) or (isinstance(old, int | float) and isinstance(new, int | float))
        else [place]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_commands_print_as_json_keeps_its_form(version: int, tmp_path: Path) -> None:
    """Every field that a version printed is printed still, with a value of the same kind: programs read it."""
    old = json.loads((GOLDEN / f"printed-v{version}.json").read_text("utf-8"))
    assert _shape(old, printed(tmp_path)) == []
