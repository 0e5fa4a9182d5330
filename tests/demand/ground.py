"""What the scenarios share: a place for a store of each kind, and what «valid» means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from palaver import (
    AssistantMessage,
    Dialog,
    Request,
    Session,
    Store,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    View,
    open_store,
)
from palaver.messages import Content, thaw
from palaver.store import verify_store
from palaver.view import Block
from tests.wire.ids import wire_ids
from tests.wire.vendor_types import hold_to_types

MODELS: Mapping[str, str] = {
    "openai-chat": "gpt-5.2",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
    "gemini-interactions": "gemini-3.6-flash",
}
"""A model of today for each profile."""

PAGE = "\n".join(f"line {number} of some output" for number in range(120))


class Place:
    """Where a session lies. Each `open` is what another process would get."""

    def __init__(self, address: str) -> None:
        """Name the address of the store."""
        self.address = address
        self._opened: list[Store] = []

    def open(self) -> Store:
        """Open the store anew."""
        self._opened.append(open_store(self.address))
        return self._opened[-1]

    def close(self) -> None:
        """Close what was opened."""
        while self._opened:
            self._opened.pop().close()


def valid(dialog: Dialog, *, then: str | None = "Go on.", **call: Any) -> dict[str, Request]:  # noqa: ANN401
    """Hold the next request of a dialog to every profile, and return the requests by profile.

    A dialog holds a request to its profile; beyond that it is held to the vendor's own types, to JSON, and to the one rule that all have.
    """
    asked = {name: dialog.request(name, model, then=then, **call) for name, model in MODELS.items()}
    for name, request in asked.items():
        body = json.loads(request.data.decode("utf-8"), parse_constant=_refuse)
        assert body == thaw(request.body)
        if not request.history:
            hold_to_types(name, body)
        made, answered = wire_ids(request)
        assert made == answered, f"{name}: each call has its result, in order"
    return asked


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


# --- a few words make a conversation ----------------------------------------------------------------------------------------------


def says(text: str = "", *calls: str, before: Iterable[Content] = (), **fields: Any) -> AssistantMessage:  # noqa: ANN401
    """Make a response of the model: words, and calls of a shell by their ids."""
    contents: list[Content] = [*before, *([TextContent(content=text)] if text else [])]
    contents += [ToolCallContent(id=call, name="shell", args={"command": f"run {call}"}) for call in calls]
    return AssistantMessage(contents=tuple(contents), **fields)


def answers(call: str, text: str = "done", *, failed: bool = False) -> ToolMessage:
    """Make a result."""
    return ToolMessage.from_result(ToolResultContent(id=call, content=text, name="shell", is_error=failed))


def asks(text: str) -> UserMessage:
    """Make words of the user."""
    return UserMessage.text(text)


def bodies(dialog: Dialog) -> list[tuple[int, bytes]]:
    """Return the dialog's own entries as the store has them."""
    return list(dialog.store.bodies(dialog.dialog_id))


def shown(dialog: Dialog) -> list[str]:
    """Return what a model is shown of a dialog, a line each."""
    return lines(dialog.view())


def lines(view: View) -> list[str]:
    """Return a view, a line for each block: texts, calls, and results with how they were derived."""
    return [_line(block) for exchange in view.exchanges for block in exchange.blocks()]


def _line(block: Block) -> str:
    match block.content:
        case TextContent(content=text):
            return text
        case ToolCallContent(id=call):
            return f"call {call}"
        case ToolResultContent(id=call) as result:
            return f"{block.derived or 'result'} {call}: {result.text()}"
        case other:
            return other.type


def reopened(place: Place, dialog: Dialog) -> Dialog:
    """Return the same dialog as another process finds it."""
    found = Session.open(place.open(), dialog.session_id)
    assert not list(verify_store(found.store))
    return found.dialog(dialog.dialog_id)


@contextmanager
def unchanged(dialog: Dialog) -> Iterator[None]:
    """Hold the log to what it was: nothing written, nothing changed."""
    before = bodies(dialog)
    yield
    assert bodies(dialog) == before
