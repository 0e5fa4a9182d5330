"""The laws of health: what a store keeps follows from what it gives back, damage is named and spares its neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaver.errors import StoreDamaged
from palaver.ids import DialogId, new_dialog_id
from palaver.log import (
    Entry,
    Instructions,
    Label,
    MessageEntry,
    Node,
    Place,
    Section,
    Span,
    TurnEnded,
    TurnStarted,
    decode_entry,
    draft,
    rule,
)
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.store.protocol import Capability, Store
from palaver.store.verify import verify_store
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup, needs

_PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def conversation(dialog: DialogId) -> Iterator[Entry]:
    """Return entries of many kinds, with calls, results, a picture, and marks."""
    yield Instructions(sections=(Section(name="role", text="Be brief."),))
    yield TurnStarted(agent="a")
    yield MessageEntry(message=UserMessage(contents=(TextContent(content="Look."), ImageContent(images=[_PIXEL]))))
    calls = (ToolCallContent(id="c1", name="look", args={"at": "it"}), ToolCallContent(id="c2", name="look", args={}))
    yield MessageEntry(message=AssistantMessage(contents=calls, response_id="r1"))
    for call in ("c1", "c2"):
        yield MessageEntry(message=ToolMessage.from_result(ToolResultContent(id=call, name="look", content="seen")))
    yield Label(target=Place(dialog=dialog, seq=2), label="the picture")
    yield MessageEntry(message=AssistantMessage(content="A dot.", response_id="r2"))
    yield TurnEnded()


def put(store: Store, dialog: DialogId, entries: Iterator[Entry]) -> None:
    """Write entries, each where its kind allows it."""
    for entry in entries:
        last = store.last(dialog)
        ready, blobs = draft(entry)
        for data in blobs.values():
            store.put_blob(data)
        if rule(entry.kind).turn:
            store.append(dialog, [ready], last.turn_head)
        else:
            store.annotate(dialog, ready)


def text_of(kind: str, body: bytes) -> str:
    """Return a text of an entry for the index."""
    entry = decode_entry(body)
    message = getattr(entry, "message", None)
    return message.text_content() if isinstance(message, Message) else kind


class HealthLaws(LawGroup):
    """What `verify` and `palaver.store.verify.verify_store` find, and what damage does to the rest of a log."""

    @pytest.fixture
    def filled(self, begun: Begun) -> Begun:
        """Return a dialog with entries of many kinds and a fork of it, partly indexed."""
        put(begun.store, begun.dialog, conversation(begun.dialog))
        length = begun.store.last(begun.dialog).seq + 1
        child = Node(
            dialog_id=new_dialog_id(begun.session),
            session_id=begun.session,
            parent_id=begun.dialog,
            ranges=(Span(begun.dialog, 0, length),),
            inherited=begun.store.last(begun.dialog).number,
        )
        begun.store.create_dialog(child)
        put(begun.store, child.dialog_id, iter([MessageEntry(message=UserMessage(content="And then?"))]))
        if Capability.SEARCH in begun.store.capabilities:
            begun.store.index(text_of, limit=5)
        return begun

    def test_sound_store_has_no_fault(self, filled: Begun) -> None:
        """Whatever was written by its rules follows from itself: headers, payloads, forks, the index; all of it was read."""
        run = verify_store(filled.store, extract=text_of)
        assert list(run) == []
        assert (run.sessions, run.dialogs, run.entries, run.blobs, run.faults) == (1, 2, 10, 1, 0)
        alone = verify_store(filled.store, filled.session)
        assert (list(alone), alone.entries, alone.blobs, alone.size) == ([], 10, 1, run.size)
        assert filled.store.verify(filled.dialog) == ()

    def test_damaged_body_is_named_and_alone(self, filled: Begun, backend: Backend) -> None:
        """A changed body is named; everything before and after it is read as ever, in other dialogs too, and appending continues."""
        before = filled.said()
        backend.damage(filled.dialog, 3)
        assert filled.store.verify(filled.dialog) == (3,)
        after = filled.said()
        assert [seq for seq, body in enumerate(before) if after[seq] != body] == [3]
        place = f"{filled.dialog[:12]}:3"
        for scope in (None, filled.session):
            found = {fault.place: fault.code for fault in verify_store(filled.store, scope, extract=text_of)}
            assert found.pop(place) == "damaged_body"
            assert set(found.values()) <= {"loose_rows", "wrong_index"}
        assert filled.say(b"next")[0].seq == len(before)

    def test_lost_body_is_damage_not_unknown(self, filled: Begun, backend: Backend) -> None:
        """That an entry was there is known from its header: it is named, asking for it is damage, and the others are given."""
        needs(filled.store, Capability.DURABLE)
        before = list(filled.store.bodies(filled.dialog))
        backend.lose(filled.dialog, 4)
        backend.damage(filled.dialog, 7)
        with pytest.raises(StoreDamaged):
            filled.store.body(filled.dialog, 4)
        assert [seq for seq, _body in filled.store.bodies(filled.dialog)] == [seq for seq, _ in before if seq != 4]
        assert filled.store.verify(filled.dialog) == (4, 7)
        found = [(fault.place, fault.code) for fault in verify_store(filled.store, filled.session)]
        assert found == [(f"{filled.dialog[:12]}:4", "lost_body"), (f"{filled.dialog[:12]}:7", "damaged_body")]

    def test_damaged_header_is_derived_again(self, filled: Begun, backend: Backend) -> None:
        """A flipped header drops no entry: it follows from its body; the damage is named, and lost with the body it is an error."""
        before = list(filled.store.headers(filled.dialog))
        last = len(before) - 1
        for seq in (2, 3, last):
            backend.damage_header(filled.dialog, seq)
        assert list(filled.store.headers(filled.dialog)) == before
        assert list(filled.store.headers(filled.dialog, reverse=True)) == before[::-1]
        assert (filled.store.header(filled.dialog, 3), filled.store.last(filled.dialog)) == (before[3], before[last])
        assert filled.say(b"next")[0].total == before[last].total + 4
        found = {fault.place for fault in verify_store(filled.store) if fault.code == "wrong_header"}
        assert found == {f"{filled.dialog[:12]}:{seq}" for seq in (2, 3, last)}
        backend.lose(filled.dialog, 2)
        with pytest.raises(StoreDamaged):
            list(filled.store.headers(filled.dialog))

    def test_wrong_count_of_a_fork_is_named(self, filled: Begun) -> None:
        """A fork that says that it shares another number of messages than its ranges hold is a fault."""
        wrong = filled.fork(Span(filled.dialog, 0, 4))
        faults = list(verify_store(filled.store, filled.session))
        assert [(fault.place, fault.code) for fault in faults] == [(wrong[:12], "wrong_ranges")]
