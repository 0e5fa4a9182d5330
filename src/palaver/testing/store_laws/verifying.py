"""The laws of verifying a store: what it keeps follows from what it gives back, and damage is named."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.ids import DialogId
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
from palaver.store.verifying import Fault, verify_store
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup, needs

_PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def conversation(dialog: DialogId) -> Iterator[Entry]:
    """Give entries of many kinds, with calls, results, a picture, and marks."""
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
        ready, blobs = draft(entry, continues=last.response)
        for data in blobs.values():
            store.put_blob(data)
        if rule(entry.kind).turn:
            store.append(dialog, [ready], last.turn_head)
        else:
            store.annotate(dialog, ready)


def text_of(kind: str, body: bytes) -> str:
    """Give a text of an entry for the index."""
    entry = decode_entry(body)
    message = getattr(entry, "message", None)
    return message.text_content() if isinstance(message, Message) else kind


class VerifyLaws(LawGroup):
    """What `palaver.store.verifying.verify_store` finds in any store."""

    def _filled(self, begun: Begun) -> Begun:
        put(begun.store, begun.dialog, conversation(begun.dialog))
        length = begun.store.last(begun.dialog).seq + 1
        node = begun.store.node(begun.dialog)
        messages = begun.store.header(begun.dialog, length - 1).number
        begun.store.create_dialog(
            Node(
                dialog_id=DialogId("f" * 32),
                session_id=node.session_id,
                parent_id=begun.dialog,
                ranges=(Span(begun.dialog, 0, length),),
                inherited=messages,
            )
        )
        put(begun.store, DialogId("f" * 32), iter([MessageEntry(message=UserMessage(content="And then?"))]))
        if Capability.SEARCH in begun.store.capabilities:
            begun.store.index(text_of, limit=5)
        return begun

    def _found(self, store: Store) -> dict[str, str]:
        return {fault.place: fault.code for fault in verify_store(store, extract=text_of)}

    def test_a_sound_store_has_no_fault(self, begun: Begun) -> None:
        """Whatever was written by its rules follows from itself: headers, payloads, forks, the index; all of it was read."""
        run = verify_store(self._filled(begun).store, extract=text_of)
        assert list(run) == []
        assert (run.sessions, run.dialogs, run.entries, run.blobs, run.faults) == (1, 2, 10, 1, 0)
        alone = verify_store(begun.store, begun.session)
        assert (list(alone), alone.entries, alone.blobs, alone.size) == ([], 10, 1, run.size)

    def test_a_changed_body_is_named(self, begun: Begun, backend: Backend) -> None:
        """One byte of one entry: its place is told, and nothing else is called damaged."""
        self._filled(begun)
        backend.damage(begun.dialog, 3)
        assert self._found(begun.store).pop(f"{begun.dialog[:12]}:3") == "damaged_body"
        assert [fault.code for fault in verify_store(begun.store, begun.session)] == ["damaged_body"]

    def test_a_lost_body_is_named(self, begun: Begun, backend: Backend) -> None:
        """An entry whose body is gone is told with its place, and those after it are judged."""
        needs(begun.store, Capability.DURABLE)
        self._filled(begun)
        backend.lose(begun.dialog, 4)
        backend.damage(begun.dialog, 7)
        found = [(fault.place, fault.code) for fault in verify_store(begun.store, begun.session)]
        assert found == [(f"{begun.dialog[:12]}:4", "lost_body"), (f"{begun.dialog[:12]}:7", "damaged_body")]

    def test_a_wrong_count_of_a_fork_is_named(self, begun: Begun) -> None:
        """A fork that says that it shares another number of messages than its ranges hold is told."""
        self._filled(begun)
        wrong = begun.fork(Span(begun.dialog, 0, 4))
        faults = list(verify_store(begun.store, begun.session))
        assert [(fault.place, fault.code) for fault in faults] == [(wrong[:12], "wrong_ranges")]
        assert isinstance(faults[0], Fault)
