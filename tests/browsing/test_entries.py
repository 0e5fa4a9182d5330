"""Entries as rows: pages from headers, bodies apart, originals by handle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaver import MemoryStore, Session
from palaver.browsing.entries import entries, entry_row, length, originals, recorded
from palaver.errors import NotFound
from palaver.ids import DialogId
from palaver.log import Header
from palaver.messages import AssistantMessage, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Dialog


@pytest.fixture
def branch() -> Dialog:
    """Return a fork that leaves out the middle of its parent, and went on by itself."""
    dialog = Session.create(MemoryStore(), "rows").root
    dialog.put_text("Be brief.", role="system")
    for number in range(4):
        call = ToolCallContent(id=f"c{number}", name="read", args={"path": "a"})
        dialog.append(AssistantMessage(contents=(TextContent(content="I look."), call)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=f"c{number}", name="read", content="x")))
    fork = dialog.fork(4)
    fork.put_text("And now?")
    return fork


def test_pages_of_rows_are_the_whole_in_order(branch: Dialog) -> None:
    """Whatever the page, a row has the place, kind and time of the recorded entry, the ancestors' first."""
    whole = [entry_row(place, entry) for place, entry in recorded(branch)]
    rows = list(entries(branch))
    assert len(whole) == length(branch) == len(branch.messages) == 6
    assert [(row["handle"], row["kind"], row["at"]) for row in rows] == [
        (each["handle"], each["kind"], each["at"]) for each in whole
    ]
    assert [(row["label"], row["calls"]) for row in rows[1:3]] == [("1 text, 1 call", ["c2"]), ("1 result", ["c2"])]
    for size in range(1, 8):
        starts = range(0, 8, size)
        assert [row for start in starts for row in entries(branch, start, start + size)] == rows
        assert [entry_row(*each) for start in starts for each in recorded(branch, start, start + size)] == whole


def test_a_page_of_rows_reads_its_headers_alone() -> None:
    """A page costs its own size, however long the dialog is and whatever its entries hold."""
    read: list[int] = []

    class Counting(MemoryStore):
        def headers(
            self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
        ) -> Iterator[Header]:
            for header in super().headers(dialog_id, start, stop, reverse=reverse):
                read.append(header.seq)
                yield header

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            raise AssertionError((dialog_id, start, stop))

    dialog = Session.create(Counting(), "long").root
    for number in range(40):
        dialog.put_text(f"{number} " * 100)
    assert [row["index"] for row in entries(dialog, 30, 33)] == read == [30, 31, 32]


def test_originals_are_what_a_handle_names(branch: Dialog) -> None:
    """A handle, a block and a run of entries are read when they are asked for; what is beyond the newest entry is refused before."""
    _, parent, *_ = entries(branch)
    dialog, _, seq = parent["handle"].partition(":")
    entry, block = originals(branch.store, f"{dialog}:{seq}; {dialog}:{seq}:0")
    row = block.to_dict()
    assert entry.to_dict()["found"]["message"]["contents"][0] == row["found"]
    assert (row["handle"], row["session"]) == (f"{dialog}:{seq}:0", branch.session_id)
    assert [str(one.handle) for one in originals(branch.store, f"{dialog}:1-3")] == [f"{dialog}:{n}" for n in (1, 2, 3)]
    with pytest.raises(NotFound, match="newest entry"):
        originals(branch.store, f"{dialog}:1-99")
