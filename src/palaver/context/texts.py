"""The sentences that policies put where something is missing. One place, because a changed word breaks every cached prefix.

Every one of them names the handle of what is missing, and none of them is ever read as a template.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palaver.log import Handle, Span, gaps, part_of
from palaver.messages import Media
from palaver.view import Omission

__all__ = [
    "TRUNCATED",
    "asked_again",
    "cleared",
    "compact",
    "digest",
    "done_over",
    "failed_once",
    "file_as_seen",
    "kept_end",
    "kept_ends",
    "kinds_of",
    "left",
    "lines_omitted",
    "notice",
    "preview",
    "ranges",
    "read_again",
    "reference",
    "said_again",
    "without_media",
]

TRUNCATED = "[...earlier content truncated...]"
"""What stands before the end of a text whose beginning was left out."""

_KINDS = 3
"""Images and sounds of one block that are named in the line for them."""

_PREVIEW_LINE = 160
"""Characters of a line that a preview shows."""


def kept_end(handle: Handle, text: str, keep: int) -> str:
    """Give the last `keep` characters of a text, and before them what and how much is missing."""
    end = text[len(text) - keep :] if keep else ""
    gone = f"{len(text) - keep:,} of {len(text):,} characters left out; recall {handle}"
    return f"{TRUNCATED} [{gone}]\n{end}".rstrip("\n") if not end else f"{TRUNCATED} [{gone}]\n{end}"


def kept_ends(handle: Handle, text: str, keep: int) -> str:
    """Give the beginning and the end of a text, `keep` characters in all, and between them what and how much is missing."""
    head, tail = keep // 3, keep - keep // 3
    gone = f"[{len(text) - keep:,} of {len(text):,} characters left out; recall {handle}]"
    return gone if not keep else f"{text[:head]}\n{gone}\n{text[len(text) - tail :]}"


def reference(handle: Handle, text: str, *, lines: int, media: Sequence[Media] = ()) -> str:
    """Give what stands for a tool's output: how much it is, where it is, and its first and last lines.

    Args:
        handle: The output.
        text: Its text.
        lines: How many of its lines to show at either end.
        media: Its images and sounds.
    """
    said = text.splitlines()
    beside = f", {kinds_of(media)}" if media else ""
    about = f"[Output set aside: {len(text):,} characters, {len(said):,} lines{beside}; recall {handle}]"
    shown = [line for line in said if line.strip()]
    first = [_line(line) for line in shown[:lines]]
    last = [_line(line) for line in shown[max(len(shown) - lines, lines) :]]
    between = ["[...]"] if len(shown) > len(first) + len(last) else []
    return "\n".join([about, *first, *between, *last])


def _line(line: str) -> str:
    return line if len(line) <= _PREVIEW_LINE else line[:_PREVIEW_LINE] + "[...]"


def cleared(handle: Handle, text: str) -> str:
    """Give what stands for a tool's output that was cleared."""
    return f"[Old tool output cleared: {len(text):,} characters; recall {handle}]"


def compact(handle: Handle, text: str) -> str:
    """Give the compact form of an output: how much it is, where it is, and its first line."""
    return reference(handle, text, lines=1)


def lines_omitted(handle: Handle, text: str) -> str:
    """Give what stands for an output, counted in lines."""
    return f"Old environment output: ({len(text.splitlines()):,} lines omitted; recall {handle})"


def said_again(handle: Handle) -> str:
    """Give what stands for an output that came again, word for word."""
    return f"[The same output came again later and is shown there; recall {handle}]"


def read_again(handle: Handle) -> str:
    """Give what stands for the output of a look that was taken again."""
    return f"[This was looked at again later; recall {handle}]"


def asked_again(handle: Handle) -> str:
    """Give what stands for the output of a call that was made again."""
    return f"[The same call was made again later; recall {handle}]"


def failed_once(handle: Handle, error: str) -> str:
    """Give what stands for a failure that was fixed since: the line that names the error."""
    return f"{error}\n[This failed here and succeeded later; recall {handle}]"


def done_over(handle: Handle | None, what: Sequence[str]) -> str:
    """Give what stands for calls that were done over since."""
    said = "; ".join(dict.fromkeys(what))
    said = said if len(said) <= _PREVIEW_LINE else said[:_PREVIEW_LINE] + "[...]"
    return f"[Left out here, because it was done over later: {said}; recall {handle}]"


def preview(handle: Handle, text: str, shown: int) -> str:
    """Give the beginning of an output that was too large to be shown, and where the whole is."""
    about = (
        f"[Output too large: {len(text):,} characters, {len(text.splitlines()):,} lines; recall {handle}. It begins:]"
    )
    return f"{about}\n{text[:shown]}"


def digest(handle: Handle, text: str, said: str) -> str:
    """Give what a model says of an output that was too large to be shown, and where the whole is."""
    about = f"[Output too large: {len(text):,} characters, {len(text.splitlines()):,} lines; recall {handle}. What a model says of it:]"
    return f"{about}\n{said}"


def file_as_seen(path: str, handle: Handle | None, text: str, rest: int, part: str = "") -> str:
    """Give a file that is brought back into the view.

    Args:
        path: Its path.
        handle: Where it was seen.
        text: What was seen of it, from its beginning.
        rest: How many characters follow.
        part: Which part of it that is; empty for all of it.
    """
    recall = "" if handle is None else f"; recall {handle}"
    what = f", in part ({part})" if part else ""
    more = f"\n[{rest:,} more characters]" if rest else ""
    return f"[{path}{what}, as it was last seen{recall}]\n{text}{more}"


def without_media(handle: Handle, said: str, media: Sequence[Media]) -> str:
    """Give what stands for a block whose images and sounds were left out: what else it says, and what is missing."""
    line = f"[{kinds_of(media)} left out; recall {handle}]"
    return f"{said}\n{line}" if said else line


def kinds_of(media: Sequence[Media]) -> str:
    """Name the first few images and sounds by their types."""
    kinds = ", ".join(each.media_type or each.url or "media" for each in media[:_KINDS])
    return kinds + (f" and {len(media) - _KINDS} more" if len(media) > _KINDS else "")


def notice(gone: Sequence[Omission], shared: Sequence[Span] = ()) -> str:
    """Give what stands for exchanges that were left out."""
    return f"[Earlier in this conversation: {_many(gone)} left out to fit the context; recall {ranges(gone, shared)}]"


def left(gone: Sequence[Omission], shared: Sequence[Span] = ()) -> str:
    """Give the first line of a record of exchanges that were left out."""
    return f"[Record of {_many(gone)} left out to fit the context, made by code; recall {ranges(gone, shared)}]"


def _many(gone: Sequence[Omission]) -> str:
    messages = sum(omission.messages for omission in gone)
    return f"{messages:,} messages" if messages != 1 else "1 message"


def ranges(gone: Iterable[Omission], shared: Sequence[Span] = ()) -> str:
    """Give the first and last handle of what was left out, for each dialog that holds some of it.

    Args:
        gone: What was left out.
        shared: What the dialog holds of its ancestors (`View.shared`): a range ends where it holds nothing.
    """
    between = gaps(shared)
    ends: dict[tuple[str, int], list[Handle]] = {}
    for omission in gone:
        span, handle = omission.span, omission.handle
        if span is not None:
            first, last = Handle(span.dialog, span.start), Handle(span.dialog, span.stop - 1)
        elif handle is not None:
            first = last = handle._replace(block=None)
        else:
            continue
        ends.setdefault(part_of(first, between), []).extend((first, last))
    return ", ".join(_range(min(places), max(places)) for places in ends.values())


def _range(first: Handle, last: Handle) -> str:
    return str(first) if first == last else f"{first} to {last}"
