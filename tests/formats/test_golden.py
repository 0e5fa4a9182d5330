"""Golden files: a small file of every format, and the events that a reader emits for it, which `python -m tests.formats.test_golden` writes."""

from __future__ import annotations

import json
from typing import Any

from palaver.formats import FORMATS, Event, Loss, Put
from palaver.log import draft
from palaver.store.memory import MemoryStore
from tests.formats.reading import events_of, imported, refused, views
from tests.formats.samples import GOLDEN, KINDS


def plain(event: Event | Loss) -> dict[str, Any]:
    """Return an event as JSON."""
    if not isinstance(event, Put):
        values = {name: getattr(event, name) for name in event.__slots__}
        return {"event": type(event).__name__, **json.loads(json.dumps(values, default=dict))}
    about = {"dialog": event.dialog, "record": event.record, "digest": event.digest.hex(), "counted": event.counted}
    return {"event": "Put", **about, "entry": json.loads(draft(event.entry)[0].body)}


def events(kind: str) -> list[dict[str, Any]]:
    """Read a golden file."""
    return [plain(event) for event in events_of(GOLDEN / f"{kind}.file")]


def test_a_golden_file_is_read_as_it_was() -> None:
    """Every event, digest, place and loss is the one that was recorded."""
    for kind in KINDS:
        assert events(kind) == json.loads((GOLDEN / f"{kind}.json").read_text("utf-8")), kind


def test_a_golden_file_becomes_valid_requests() -> None:
    """Every provider takes every dialog of it, and a second import adds nothing."""
    for kind in KINDS:
        store = MemoryStore()
        found = imported(store, GOLDEN / f"{kind}.file")
        assert [refused(store, view) for view in views(store, found)] == [[] for _ in views(store, found)], kind
        assert {(one.entries, one.outcome) for one in imported(store, GOLDEN / f"{kind}.file")} == {(0, "unchanged")}, (
            kind
        )


def test_every_format_has_a_golden_file() -> None:
    """A new format needs a file."""
    assert {path.stem for path in GOLDEN.glob("*.file")} == set(KINDS) == {each.name for each in FORMATS}


def main() -> None:
    """Write the files."""
    for kind in KINDS:
        (GOLDEN / f"{kind}.json").write_text(json.dumps(events(kind), indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
