"""A view over a log of which one entry's bytes are gone: the rest stands as it was, and the place says what is missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver import Session
from palaver.erasure.erase import erase
from palaver.errors import InvalidInput, NotFound, StoreDamaged
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
    Span,
    Toolset,
    ToolSpec,
    decode_entry,
    decoded,
)
from palaver.messages import Speaker, words_of
from palaver.store import verify_store
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, assert_closed, model, result, system, user
from palaver.transcripts import export
from palaver.transcripts.doctor import examine
from palaver.transcripts.exporting import export_forms
from palaver.view import fold
from tests.sketches import sketch, text_of
from tests.store.backends import SqliteBackend


def test_damaged_or_lost_entry_loses_only_itself() -> None:
    """D20: whatever entry it is, the others are shown, calls keep their results, and a line of the harness names the place."""
    whole = fold((log := talked()).store, log.dialog)
    said = ["rules", "go", "I look", "done", "done", "and?"]
    for seq in range(6):
        log = talked()
        contents = log.store.contents.logs[log.dialog]
        body = contents.bodies[seq]
        contents.bodies[seq] = damaged = body[: len(body) // 2]
        view = fold(log.store, log.dialog)
        assert_closed(view)
        blocks = [*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())]
        texts = "\n".join(words_of(block.content) for block in blocks)
        assert f"{log.dialog[:12]}:{seq}" in texts
        assert all(word in texts for word in {*said} - {said[seq]}), seq
        assert len(sketch(view)) == len(sketch(whole)), seq
        contents.bodies[seq] = body.replace(said[seq].encode(), said[seq].upper().encode())
        assert sketch(fold(log.store, log.dialog)) == sketch(view), "a body that is an entry, and not what was written"
        contents.bodies[seq] = damaged
        assert fold(log.store, log.dialog) == view, seq
        with pytest.raises(InvalidInput):
            decode_entry(damaged)
        stand_in = decoded(log.store, Handle(log.dialog, seq), damaged)
        assert stand_in.model_dump()["message"]["speaker"] != Speaker.HUMAN
    for lost in (1, 2, 3):
        log = talked()

        class Lossy(MemoryStore):
            """A store that passes over a row that it has lost."""

            def header(self, dialog_id: DialogId, seq: int, lost: int = lost) -> Header:
                if seq == lost:
                    raise NotFound(f"{dialog_id}:{seq}", what="handle")
                return super().header(dialog_id, seq)

            def headers(self, *args: Any, lost: int = lost, **named: Any) -> Iterator[Header]:  # noqa: ANN401
                return (each for each in super().headers(*args, **named) if each.seq != lost)

            def bodies(self, *args: Any, lost: int = lost) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401
                return (each for each in super().bodies(*args) if each[0] != lost)

        lossy = Lossy()
        lossy.contents = log.store.contents
        view = fold(lossy, log.dialog)
        assert_closed(view)
        assert any(f"{log.dialog[:12]}:{lost}" in line and "lost" in line for line in sketch(view)), lost


def test_changed_body_is_said_in_the_view(tmp_path: Path) -> None:
    """D20: a stored text in which a letter changed is not shown as what was said: a line names the entry, the doctor reports it, and appending continues."""
    backend = SqliteBackend(tmp_path / "log.db")
    with Session.create(store=backend.open()) as session:
        dialog = session.root
        dialog.put_text("keep this")
        dialog.put_text("pay 100 euros")
        place = Handle(dialog.dialog_id, 1)
        sound = backend.stored(dialog.dialog_id, 1)
        backend.run("UPDATE bodies SET body = ? WHERE body = ?", sound.replace(b"100", b"900"), sound)
    with Session.open(backend.open(), session.session_id) as session:
        dialog = session.root
        line = f"[Entry {place} cannot be read: it is lost, or not what was written.]"
        assert sketch(dialog.view()) == ["user[keep this]", f"user[{line}]"]
        assert [message.text_content() for message in dialog.messages] == ["keep this", line]
        with pytest.raises(StoreDamaged):
            session.recall(place)
        faults = [(fault.place, fault.code) for fault in verify_store(session.store, session.session_id)]
        assert faults == [(str(place), "damaged_body")]
        assert [finding.place for finding in examine(session.store, session.session_id).findings] == [str(place)]
        dialog.put_text("and on")
        assert sketch(dialog.view())[2:] == ["user[and on]"]


@pytest.mark.parametrize("moved", [1, 16, 1 << 40])
def test_lost_newest_header_loses_only_itself(tmp_path: Path, moved: int) -> None:
    """D20: when the number in the newest header changed, the entries before it are shown, verified and exported, and a line names the place; nothing is written after it."""
    backend = SqliteBackend(tmp_path / "log.db")
    with Session.create(store=backend.open()) as session:
        for text in ("a", "b", "c", "d", "e"):
            session.root.put_text(text)
        place = Handle(session.root.dialog_id, 4)
    backend.run("UPDATE headers SET seq = seq + ? WHERE seq = 4", moved)
    with Session.open(backend.open(), session.session_id) as session:
        dialog = session.root
        line = f"[Entry {place} cannot be read: it is lost, or not what was written.]"
        assert sketch(dialog.view()) == ["user[a]", "user[b]", "user[c]", "user[d]", f"user[{line}]"]
        assert session.store.verify(dialog.dialog_id) == (Span(dialog.dialog_id, 4, 5),)
        run = verify_store(session.store)
        assert (str(place), "lost_header") in {(fault.place, fault.code) for fault in run}
        assert run.entries == 4
        diagnosis = examine(session.store, session.session_id)
        assert ([finding.place for finding in diagnosis.findings], diagnosis.reachable) == ([str(place)], 4)
        for form in export_forms():
            said = b"".join(export(session.store, session.session_id, form).pieces)
            assert b'"d"' in said or form in {"markdown", "otel-events"}, form  # nobody answered: no event
        with pytest.raises(StoreDamaged):
            dialog.put_text("and on")
        assert sketch(dialog.fork().view()) == sketch(dialog.view())
        branch = session.rewind(Handle(dialog.dialog_id, 3)).apply()
        branch.put_text("and on")
        assert sketch(branch.view()) == ["user[a]", "user[b]", "user[c]", "user[d]", "user[and on]"]
        assert erase(session.store, session=session.session_id).complete


def test_damaged_state_is_told_in_the_instructions() -> None:
    """D20: what decides how others are shown and cannot be read leaves a line, and everything else is shown."""
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


def talked() -> Log:
    """Return a log of six entries."""
    log = Log()
    log.put(system("rules"), user("go"), model("I look", "a", response="r1"), result("a"), model("done"), user("and?"))
    return log
