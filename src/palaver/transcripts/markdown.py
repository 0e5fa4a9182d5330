"""A session as Markdown, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from palaver.messages import (
    AudioContent,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.store.protocol import SessionRecord
from palaver.view import Block, Turn, View

_TITLES = {"user": "User", "assistant": "Assistant", "tool": "Results", "system": "System"}
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def markdown(record: SessionRecord, view: View) -> Iterator[str]:
    """Give a view as Markdown, paragraph by paragraph. What was said is never read as markup of ours: it stands as it is, code in fences."""
    yield f"# {record.name or record.session_id}\n\n"
    yield from _about(record, view)
    if view.system:
        yield "## Instructions\n\n"
        for block in view.system:
            yield from _block(block)
    for exchange in view.exchanges:
        for turn in exchange.turns:
            yield _title(turn)
            for block in turn.blocks:
                yield from _block(block)
    yield from _left_out(view)


def _about(record: SessionRecord, view: View) -> Iterator[str]:
    facts = {
        "session": record.session_id,
        "begun": _when(record.created_at),
        "folder": record.workdir,
        "model": view.model,
        "tools": ", ".join(tool.name for tool in view.tools),
    }
    yield "".join(f"- {name}: {value}\n" for name, value in facts.items() if value) + "\n"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _title(turn: Turn) -> str:
    first = turn.blocks[0]
    words = [_TITLES.get(turn.role.value, turn.role.value), *(word for word in (turn.name, turn.model) if word)]
    if first.derived and turn.role.value != "tool":
        words.append(f"{first.derived}, said by no one")
    return f"## {' · '.join(words)}\n\n"


def _block(block: Block) -> Iterator[str]:
    content = block.content
    if isinstance(content, TextContent):
        yield f"{_closed(content.content)}\n\n"
    elif isinstance(content, ThinkingContent):
        yield f"<details><summary>Thinking</summary>\n\n{_closed(content.content) or '(not readable: kept by the provider)'}\n\n</details>\n\n"
    elif isinstance(content, ToolCallContent):
        arguments = content.raw_args if content.error else json.dumps(thaw(content.args), ensure_ascii=False, indent=2)
        yield f"**{content.name}** `{content.id}`\n\n{_fenced(arguments or '', 'json')}"
    elif isinstance(content, ToolResultContent):
        yield f"{'Error' if content.is_error else 'Result'} of `{content.id}`\n\n{_fenced(content.text())}"
        if not isinstance(content.content, str):
            yield from (f"{_media(part)}\n\n" for part in content.content if isinstance(part, ImageContent))
    elif isinstance(content, ImageContent | AudioContent):
        yield f"{_media(content)}\n\n"
    else:
        yield f"({content.type})\n\n"


def _closed(text: str) -> str:
    """Close a fence that a text leaves open: it would swallow everything after it (CommonMark 0.31, section 4.5)."""
    fence = ""
    for found in _FENCE.finditer(text):
        run, rest = found.groups()
        if not fence and (run[0] == "~" or "`" not in rest):
            fence = run
        elif fence and run.startswith(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _media(content: ImageContent | AudioContent) -> str:
    media: tuple[Media, ...] = content.images if isinstance(content, ImageContent) else content.audio
    return " ".join(
        f"![{one.media_type}]({one.url})"
        if one.url
        else f"[{one.media_type}, {one.size:,} bytes, sha256 {one.digest[:12]}]"
        for one in media
    )


def _fenced(text: str, language: str = "") -> str:
    """Put a text into a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"


def _left_out(view: View) -> Iterator[str]:
    if not view.omissions:
        return
    yield "## Not shown\n\n"
    for omission in view.omissions:
        place = omission.handle or (
            omission.span and f"{omission.span.dialog[:12]}:{omission.span.start}-{omission.span.stop - 1}"
        )
        yield f"- {place}: {omission.reason.value.replace('_', ' ')}\n"
