"""A session as Markdown, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.store.protocol import SessionRecord
from palaver.view import Turn, View

_TITLES = {"user": "User", "assistant": "Assistant", "tool": "Results", "system": "System"}
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def markdown(record: SessionRecord, view: View) -> Iterator[str]:
    """Return a view as Markdown, paragraph by paragraph. What was said is not read as our markup: text stays as it is, code in fences."""
    yield f"# {record.name or record.session_id}\n\n"
    facts = {
        "session": record.session_id,
        "begun": _when(record.created_at),
        "folder": record.workdir,
        "model": view.model,
        "tools": ", ".join(tool.name for tool in view.tools),
    }
    yield "".join(f"- {name}: {value}\n" for name, value in facts.items() if value) + "\n"
    if view.system:
        yield "## Instructions\n\n"
        for block in view.system:
            yield from _block(block.content)
    for exchange in view.exchanges:
        for turn in exchange.turns:
            yield _title(turn)
            for block in turn.blocks:
                yield from _block(block.content)
    if view.omissions:
        yield "## Not shown\n\n"
        for omission in view.omissions:
            span = omission.span
            place = omission.handle or (span and f"{span.dialog[:12]}:{span.start}-{span.stop - 1}")
            yield f"- {place}: {omission.reason.value.replace('_', ' ')}\n"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def _title(turn: Turn) -> str:
    first = turn.blocks[0]
    words = [_TITLES.get(turn.role.value, turn.role.value), *(word for word in (turn.name, turn.model) if word)]
    if first.derived and turn.role.value != "tool":
        words.append(first.derived)
    return f"## {' · '.join(words)}\n\n"


def _block(content: Content) -> Iterator[str]:
    match content:
        case TextContent():
            yield f"{_closed(content.content)}\n\n"
        case ThinkingContent():
            text = _closed(content.content) or "(not readable: kept by the provider)"
            yield f"<details><summary>Thinking</summary>\n\n{text}\n\n</details>\n\n"
        case ToolCallContent():
            read = json.dumps(thaw(content.args), ensure_ascii=False, indent=2)
            arguments = (content.raw_args or "") if content.error else read
            yield f"**{content.name}** `{content.id}`\n\n{_fenced(arguments, 'json')}"
        case ToolResultContent():
            yield f"{'Error' if content.is_error else 'Result'} of `{content.id}`\n\n{_fenced(content.text())}"
            for part in content.content if isinstance(content.content, tuple) else ():
                if isinstance(part, ImageContent):
                    yield from _block(part)
        case ImageContent(images=media) | AudioContent(audio=media):
            yield (
                " ".join(
                    f"![{one.media_type}]({one.url})"
                    if one.url
                    else f"[{one.media_type}, {one.size:,} bytes, sha256 {one.digest[:12]}]"
                    for one in media
                )
                + "\n\n"
            )
        case _:
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


def _fenced(text: str, language: str = "") -> str:
    """Put a text into a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"
