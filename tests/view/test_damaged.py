"""A view over a log of which one entry's bytes are gone: the rest stands as it was, and the place says what is missing."""

from collections.abc import Iterator

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import (
    Compaction,
    Derived,
    Entry,
    Handle,
    Header,
    Instructions,
    Pin,
    Place,
    Section,
    Toolset,
    ToolSpec,
    decode_entry,
    decoded,
)
from palaver.messages import Speaker
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, assert_closed, model, result, sketch, system, text_of, user
from palaver.view import fold


def spoilt(seq: int) -> Log:
    """Return a log in which the bytes of one entry are no entry any more."""
    log = Log()
    log.put(system("rules"), user("go"), model("I look", "a", response="r1"), result("a"), model("done"), user("and?"))
    bodies = log.store.contents.logs[log.dialog].bodies
    bodies[seq] = bodies[seq][: len(bodies[seq]) // 2]
    return log


def test_d20_damaged_entry_loses_only_itself() -> None:
    """Whatever entry it is, the others are shown, calls keep their results, and a line of the harness names the place."""
    whole = Log()
    whole.put(
        system("rules"), user("go"), model("I look", "a", response="r1"), result("a"), model("done"), user("and?")
    )
    said = ["rules", "go", "I look", "done", "done", "and?"]
    for seq in range(6):
        log = spoilt(seq)
        view = fold(log.store, log.dialog)
        assert_closed(view)
        blocks = [block for exchange in view.exchanges for block in exchange.blocks()]
        texts = "\n".join([*(str(block.content) for block in blocks), *(str(block.content) for block in view.system)])
        assert f"{log.dialog[:12]}:{seq}" in texts
        assert all(word in texts for word in {*said} - {said[seq]}), seq
        assert len(sketch(view)) == len(sketch(fold(whole.store, whole.dialog))), seq
        assert fold(log.store, log.dialog) == view, seq


class Lossy(MemoryStore):
    """A store that has lost a row: it passes over it."""

    def __init__(self, lost: int) -> None:
        """Lose an entry."""
        super().__init__()
        self.lost = lost

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Return one header."""
        if seq == self.lost:
            raise NotFound(f"{dialog_id}:{seq}", what="handle")
        return super().header(dialog_id, seq)

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return headers."""
        found = super().headers(dialog_id, start, stop, reverse=reverse)
        return (each for each in found if each.seq != self.lost)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return bodies."""
        return (each for each in super().bodies(dialog_id, start, stop) if each[0] != self.lost)


def test_d20_lost_row_leaves_a_line() -> None:
    """An entry whose header is gone, too, is a line at its place; a result without its call is text."""
    log = spoilt(0)
    for seq in (1, 2, 3):
        lossy = Lossy(seq)
        lossy.contents = log.store.contents
        view = fold(lossy, log.dialog)
        assert_closed(view)
        assert any(f"{log.dialog[:12]}:{seq}" in line and "lost" in line for line in sketch(view)), seq


def test_d20_damaged_state_is_told_in_the_instructions() -> None:
    """What decides how others are shown and cannot be read leaves a line, and everything else is shown."""
    entries: list[Entry] = [
        Instructions(sections=(Section(name="a", text="b"),)),
        Toolset(tools=(ToolSpec(name="t"),)),
        Pin(target=Place(dialog=DialogId("d" * 32), seq=0)),
        Compaction(base=0, pieces=(Derived(text="S"),)),
    ]
    for entry in entries:
        log = Log()
        log.put(user("go"), entry)
        log.store.contents.logs[log.dialog].bodies[1] = b"{"
        view = fold(log.store, log.dialog)
        assert sketch(view) == ["user[go]"], entry.kind
        assert [f"{log.dialog[:12]}:1" in text_of(block) for block in view.system] == [True], entry.kind


def test_d20_stand_in_for_a_damaged_entry_is_the_harness() -> None:
    """It is the harness's, the same each time it is read; an entry that can be read is what it was."""
    log = spoilt(1)
    handle = Handle(log.dialog, 1)
    body = log.store.body(log.dialog, 1)
    with pytest.raises(InvalidInput):
        decode_entry(body)
    stand_in = decoded(log.store, handle, body)
    assert stand_in == decoded(log.store, handle, body)
    assert stand_in.model_dump()["message"]["speaker"] == Speaker.HARNESS
    assert decoded(log.store, Handle(log.dialog, 2), log.store.body(log.dialog, 2)) == decode_entry(
        log.store.body(log.dialog, 2)
    )
