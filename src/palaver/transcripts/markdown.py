"""A session as Markdown, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from palaver.messages import Media
from palaver.store.protocol import SessionRecord
from palaver.transcripts.pages import page
from palaver.view import View

_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def markdown(record: SessionRecord, view: View) -> Iterator[str]:
    """Return a view as Markdown, paragraph by paragraph. What was said is not read as our markup: text stays as it is, code in fences."""
    return page(record, view, _Markdown())


class _Markdown:
    """A page in Markdown."""

    def opening(self, title: str, facts: Mapping[str, str]) -> str:
        return f"# {title}\n\n{self.listed([f'{name}: {value}' for name, value in facts.items()])}\n"

    def heading(self, words: Sequence[str]) -> str:
        return f"## {' · '.join(words)}\n\n"

    def text(self, text: str) -> str:
        return f"{_closed(text)}\n\n"

    def thinking(self, text: str) -> str:
        return f"<details><summary>Thinking</summary>\n\n{_closed(text)}\n\n</details>\n\n"

    def code(self, title: str, call_id: str, text: str, language: str = "") -> str:
        return f"{f'**{title}**' if language else title} `{call_id}`\n\n{_fenced(text, language)}"

    def media(self, media: Sequence[Media]) -> str:
        shown = (
            f"![{one.media_type}]({one.url})"
            if one.url
            else f"[{one.media_type}, {one.size:,} bytes, sha256 {one.digest[:12]}]"
            for one in media
        )
        return f"{' '.join(shown)}\n\n"

    def listed(self, items: Sequence[str]) -> str:
        return "".join(f"- {item}\n" for item in items)

    def closing(self) -> str:
        return ""


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
