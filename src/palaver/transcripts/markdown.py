"""A session as Markdown, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.session.waiting import what_for
from palaver.store.protocol import SessionRecord, Store
from palaver.store.titles import title
from palaver.view import Block, Turn, View
from palaver.view.blocks import REASONS

_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_TITLES = {"user": "User", "assistant": "Assistant", "tool": "Results", "system": "System"}


def markdown(store: Store, record: SessionRecord, view: View, waiting: Iterable[Message] = ()) -> Iterator[str]:
    """Yield a view as Markdown, paragraph by paragraph. Text of messages stays unchanged, with code in fences.

    Args:
        store: The store.
        record: The session.
        view: The view.
        waiting: Messages of the inbox, which come after the view and are marked as waiting (`palaver.session.waiting`).
    """
    facts = {
        "session": record.session_id,
        "begun": _when(record.created_at),
        "folder": record.workdir,
        "model": view.model,
        "tools": ", ".join(tool.name for tool in view.tools),
    }
    yield _opening(title(store, record), {name: value for name, value in facts.items() if value})
    if view.system:
        yield _heading(["Instructions"])
        for block in view.system:
            yield from _block(block.content)
    for turn in (turn for exchange in view.exchanges for turn in exchange.turns):
        yield _heading(_words(turn))
        for block in turn.blocks:
            yield from _shown(block, store, view)
    for message in waiting:
        yield _heading([_title(message.role), "waiting"])
        yield from chain.from_iterable(map(_block, message.contents))
    if view.omissions:
        yield _heading(["Not shown"])
        yield _listed([f"{gone.place}: {REASONS[gone.reason]}" for gone in view.omissions])


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _title(role: Role) -> str:
    return _TITLES.get(role.value, role.value)


def _words(turn: Turn) -> list[str]:
    first = turn.blocks[0]
    words = [_title(turn.role), *(word for word in (turn.name, turn.model) if word)]
    return [*words, first.derived] if first.derived and turn.role.value != "tool" else words


def _shown(block: Block, store: Store, view: View) -> Iterator[str]:
    if block.derived == "waiting" and isinstance(block.content, ToolResultContent):
        yield _text(what_for(store, view.dialog_id, block.content.id))
    else:
        yield from _block(block.content)


def _block(content: Content) -> Iterator[str]:
    match content:
        case TextContent():
            yield _text(content.content)
        case ThinkingContent():
            yield _thinking(content.content or "(not readable: kept by the provider)")
        case ToolCallContent():
            read = json.dumps(thaw(content.args), ensure_ascii=False, indent=2)
            arguments = (content.raw_args or "") if content.error else read
            yield _code(content.name, content.id, arguments, "json")
        case ToolResultContent():
            yield _code("Error of" if content.is_error else "Result of", content.id, content.text())
            for part in content.content if isinstance(content.content, tuple) else ():
                if isinstance(part, ImageContent):
                    yield from _block(part)
        case ImageContent(images=media) | AudioContent(audio=media):
            yield _media(media)
        case _:
            yield _text(f"({content.type})")


# --- the marks of Markdown ----------------------------------------------------------------------------------------------------------


def _opening(name: str, facts: Mapping[str, str]) -> str:
    return f"# {name}\n\n{_listed([f'{name}: {value}' for name, value in facts.items()])}\n"


def _heading(words: Sequence[str]) -> str:
    return f"## {' · '.join(words)}\n\n"


def _text(text: str) -> str:
    return f"{_closed(text)}\n\n"


def _thinking(text: str) -> str:
    return f"<details><summary>Thinking</summary>\n\n{_closed(text)}\n\n</details>\n\n"


def _code(name: str, call_id: str, text: str, language: str = "") -> str:
    return f"{f'**{name}**' if language else name} `{call_id}`\n\n{_fenced(text, language)}"


def _media(media: Sequence[Media]) -> str:
    shown = (
        f"![{medium.media_type}]({medium.url})"
        if medium.url
        else f"[{medium.media_type}, {medium.size:,} bytes, sha256 {medium.digest[:12]}]"
        for medium in media
    )
    return f"{' '.join(shown)}\n\n"


def _listed(items: Sequence[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _closed(text: str) -> str:
    """Close a fence that a text leaves open, because it would include everything after it (CommonMark 0.31, section 4.5)."""
    fence = ""
    for mark in _FENCE.finditer(text):
        run, rest = mark.groups()
        if not fence and (run[0] == "~" or "`" not in rest):
            fence = run
        elif fence and run.startswith(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _fenced(text: str, language: str = "") -> str:
    """Put a text into a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"
