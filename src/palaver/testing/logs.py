"""Short, readable logs for tests of policies, views and stores."""

from __future__ import annotations

from palaver.ids import SessionId, new_dialog_id, new_session_id
from palaver.log import Entry, Handle, Header, MessageEntry, Node, Span, draft, messages_in, rule
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord
from palaver.view import View


class Log:
    """A dialog in a store in memory, for tests."""

    def __init__(self, parent: Log | None = None, ranges: tuple[Span, ...] = ()) -> None:
        """Begin a dialog, or a fork of one."""
        self.store: MemoryStore = parent.store if parent else MemoryStore()
        self.session: SessionId = parent.session if parent else new_session_id()
        if parent is None:
            self.store.create_session(SessionRecord(session_id=self.session))
        self.dialog = new_dialog_id(self.session)
        self.store.create_dialog(
            Node(
                dialog_id=self.dialog,
                session_id=self.session,
                parent_id=parent.dialog if parent else None,
                ranges=ranges,
                inherited=messages_in(self.store, ranges),
            )
        )

    def fork(self) -> Log:
        """Fork the whole dialog."""
        node = self.store.node(self.dialog)
        own = Span(self.dialog, 0, self.store.last(self.dialog).seq + 1)
        return Log(self, (*node.ranges, own))

    def put(self, *said: Message | Entry) -> list[Header]:
        """Append messages and entries, as part of the turn if their kind allows it."""
        return [self._put(MessageEntry(message=one) if isinstance(one, Message) else one) for one in said]

    def _put(self, entry: Entry) -> Header:
        last = self.store.last(self.dialog)
        ready, blobs = draft(entry)
        for data in blobs.values():
            self.store.put_blob(self.session, data)
        if rule(entry.kind).turn:
            return self.store.append(self.dialog, [ready], last.turn_head)[0]
        return self.store.annotate(self.dialog, ready)

    def at(self, seq: int, block: int | None = None) -> Handle:
        """Return the handle of an own entry."""
        return Handle(self.dialog, seq, block)


def system(text: str) -> Message:
    """Instructions."""
    return SystemMessage.text(text)


def user(text: str) -> Message:
    """Return a message of the user."""
    return UserMessage.text(text)


def model(text: str = "", *calls: str, response: str | None = None) -> Message:
    """Return a response of the model: a text, and calls by their ids."""
    contents: list[Content] = [TextContent(content=text)] if text else []
    contents += [ToolCallContent(id=call, name="shell", args={"cmd": call}) for call in calls]
    return AssistantMessage(contents=tuple(contents), response_id=response, fragment=response is not None)


def result(call: str, text: str = "done") -> Message:
    """Return a tool's result."""
    return ToolMessage.from_result(ToolResultContent(id=call, content=text, name="shell"))


def assert_closed(view: View) -> None:
    """Assert that every call has exactly one result directly after it, and that there are no other results."""
    for exchange in view.exchanges:
        first = [block.content for block in exchange.turns[0].blocks]
        later = [block.content for turn in exchange.turns[1:] for block in turn.blocks]
        calls = [content.id for content in first if isinstance(content, ToolCallContent)]
        results = [content.id for content in later if isinstance(content, ToolResultContent)]
        assert calls == results
        assert len(results) == len(later)
        assert not any(isinstance(content, ToolResultContent) for content in first)
        assert len(exchange.turns) == (2 if calls else 1)
