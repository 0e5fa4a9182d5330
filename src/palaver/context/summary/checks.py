"""Checks: whether an answer is a summary. What is empty, cut off, a tool call, or goes on with the chat, is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from palaver.context.summary.request import SummaryAnswer

__all__ = ["filled", "lacking", "unusable"]

_ANALYSIS = re.compile(r"<(analysis|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_NOT_SAID = "(The summary says nothing of this; see the record beside it.)"


def lacking(text: str, headings: Iterable[str]) -> tuple[str, ...]:
    """Give the sections that a text does not have, or has with nothing in them."""
    return tuple(heading for heading in headings if not _section(text, heading))


def _section(text: str, heading: str) -> str:
    """Give what stands under a heading, or an empty text."""
    found = re.search(
        rf"^\s*(?:#+\s*|\*\*\s*|\d+[.)]\s*)*{re.escape(heading)}\s*(?:\*\*)?\s*:?\s*$\n(.*?)(?=^\s*(?:#+\s|\*\*)|\Z)",
        text,
        re.DOTALL | re.MULTILINE | re.IGNORECASE,
    )
    return found[1].strip() if found else ""


def unusable(answer: SummaryAnswer, headings: Sequence[str], size: int, most: int) -> str:
    """Tell why an answer cannot be used at all, or give an empty text.

    Args:
        answer: The answer.
        headings: The sections that were asked for.
        size: Its size in tokens.
        most: The tokens that it may have: fewer than what it stands for.
    """
    text = clean(answer.text)
    if answer.calls:
        return "it called tools"
    if not text:
        return "it is empty"
    if not answer.complete:
        return "it was cut off"
    if size > most:
        return f"it has {size:,} tokens, and {most:,} are free for it"
    if headings and len(lacking(text, headings)) == len(headings):
        return "it has none of the sections: it goes on with the conversation"
    return ""


def clean(text: str) -> str:
    """Give an answer without the scratch work that some models put before it."""
    return _ANALYSIS.sub("", text).strip()


def filled(text: str, headings: Iterable[str]) -> str:
    """Give a summary with every section; what it lacks is said to be lacking."""
    missing = lacking(text, headings)
    return "\n\n".join([text, *(f"## {heading}\n{_NOT_SAID}" for heading in missing)])
