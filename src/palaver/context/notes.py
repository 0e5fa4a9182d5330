"""The sentences that a view shows where something is missing, in one place: a changed word breaks every cached prefix.

Each names the handle of what is missing; none is ever used as a template.
"""

from __future__ import annotations

from collections.abc import Sequence

from palaver.log import Handle
from palaver.messages import Media

TRUNCATED = "[...earlier content truncated...]"
"""The mark before the end of a text whose beginning is left out; LLLM writes the same."""

_LINE = 160
"""Characters of a line that a placeholder quotes."""

_KINDS = 3
"""Images and sounds that a placeholder names by their types."""


def cleared(handle: Handle, text: str) -> str:
    """Return the placeholder of an output: its size and handle."""
    return f"[Old tool output cleared: {len(text):,} characters; recall {handle}]"


def first_line(handle: Handle, text: str) -> str:
    """Return the placeholder of an output: its size, its handle and its first line."""
    return reference(handle, text, lines=1)


def reference(handle: Handle, text: str, *, lines: int) -> str:
    """Return the placeholder of an output: its size, its handle, its first lines and, from two lines on, its last ones."""
    said = [line for line in text.splitlines() if line.strip()]
    about = f"[Output set aside: {len(text):,} characters, {len(text.splitlines()):,} lines; recall {handle}]"
    head, tail = said[:lines], said[max(len(said) - lines, lines) :] if lines > 1 else []
    gap = ["[...]"] if len(said) > len(head) + len(tail) else []
    return "\n".join([about, *map(_cut, head), *gap, *map(_cut, tail)])


def lines_omitted(handle: Handle, text: str) -> str:
    """Return the placeholder of an output, counted in lines (SWE-agent's words)."""
    return f"Old environment output: ({len(text.splitlines()):,} lines omitted; recall {handle})"


def head_and_tail(handle: Handle | None, text: str, keep: int) -> str:
    """Return the beginning and the end of a text, `keep` characters in all, a third of them from the beginning."""
    head, tail = keep // 3, keep - keep // 3
    gone = f"[{len(text) - keep:,} of {len(text):,} characters left out{_recall(handle)}]"
    return f"{text[:head]}\n{gone}\n{text[len(text) - tail :]}" if keep > 0 else gone


def head_only(handle: Handle | None, text: str, keep: int) -> str:
    """Return the first `keep` characters of a text, and how many it has."""
    return f"{text[:keep]}\n[The first {keep:,} of {len(text):,} characters{_recall(handle)}]"


def tail_only(handle: Handle | None, text: str, keep: int) -> str:
    """Return the last `keep` characters of a text, after `TRUNCATED`."""
    gone = f"{TRUNCATED} [{len(text) - keep:,} of {len(text):,} characters left out{_recall(handle)}]"
    return f"{gone}\n{text[len(text) - keep :]}" if keep > 0 else gone


def without_media(handle: Handle, text: str, media: Sequence[Media]) -> str:
    """Return what a block says without its images and sounds, and a line that names them."""
    line = f"[{kinds(media)} left out; recall {handle}]"
    return f"{text}\n{line}" if text else line


def kinds(media: Sequence[Media]) -> str:
    """Return the types of the first few images and sounds."""
    named = ", ".join(each.media_type or each.url or "media" for each in media[:_KINDS])
    return named + (f" and {len(media) - _KINDS} more" if len(media) > _KINDS else "")


def _recall(handle: Handle | None) -> str:
    return "" if handle is None else f"; recall {handle}"


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[:_LINE] + "[...]"
