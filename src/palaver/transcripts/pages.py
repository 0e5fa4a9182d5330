"""A session as a page for people: the walk over a view, piece by piece, whatever the page is written in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.store.protocol import SessionRecord
from palaver.view import Turn, View

_TITLES = {"user": "User", "assistant": "Assistant", "tool": "Results", "system": "System"}


class Form(Protocol):
    """How a page is written. What was said is text and never markup of the page."""

    def opening(self, title: str, facts: Mapping[str, str]) -> str:
        """Begin the page."""
        ...

    def heading(self, words: Sequence[str]) -> str:
        """Begin a section: who speaks."""
        ...

    def text(self, text: str) -> str:
        """Write words."""
        ...

    def thinking(self, text: str) -> str:
        """Write what a model thought, so that it can be passed over."""
        ...

    def code(self, title: str, call_id: str, text: str, language: str = "") -> str:
        """Write a call's arguments or a result, character by character."""
        ...

    def media(self, media: Sequence[Media]) -> str:
        """Write images and sounds."""
        ...

    def listed(self, items: Sequence[str]) -> str:
        """Write a list."""
        ...

    def closing(self) -> str:
        """End the page."""
        ...


def page(record: SessionRecord, view: View, form: Form) -> Iterator[str]:
    """Write a view as a page."""
    facts = {
        "session": record.session_id,
        "begun": _when(record.created_at),
        "folder": record.workdir,
        "model": view.model,
        "tools": ", ".join(tool.name for tool in view.tools),
    }
    yield form.opening(record.name or record.session_id, {name: value for name, value in facts.items() if value})
    if view.system:
        yield form.heading(["Instructions"])
        for block in view.system:
            yield from _block(block.content, form)
    for exchange in view.exchanges:
        for turn in exchange.turns:
            yield form.heading(_words(turn))
            for block in turn.blocks:
                yield from _block(block.content, form)
    if view.omissions:
        yield form.heading(["Not shown"])
        items = []
        for omission in view.omissions:
            span = omission.span
            place = omission.handle or (span and f"{span.dialog[:12]}:{span.start}-{span.stop - 1}")
            items.append(f"{place}: {omission.reason.value.replace('_', ' ')}")
        yield form.listed(items)
    yield form.closing()


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _words(turn: Turn) -> list[str]:
    first = turn.blocks[0]
    words = [_TITLES.get(turn.role.value, turn.role.value), *(word for word in (turn.name, turn.model) if word)]
    return [*words, first.derived] if first.derived and turn.role.value != "tool" else words


def _block(content: Content, form: Form) -> Iterator[str]:
    match content:
        case TextContent():
            yield form.text(content.content)
        case ThinkingContent():
            yield form.thinking(content.content or "(not readable: kept by the provider)")
        case ToolCallContent():
            read = json.dumps(thaw(content.args), ensure_ascii=False, indent=2)
            arguments = (content.raw_args or "") if content.error else read
            yield form.code(content.name, content.id, arguments, "json")
        case ToolResultContent():
            yield form.code("Error of" if content.is_error else "Result of", content.id, content.text())
            for part in content.content if isinstance(content.content, tuple) else ():
                if isinstance(part, ImageContent):
                    yield from _block(part, form)
        case ImageContent(images=media) | AudioContent(audio=media):
            yield form.media(media)
        case _:
            yield form.text(f"({content.type})")
