"""Checks: whether an answer is a summary. What is empty, cut off, a tool call, or goes on with the chat, is none."""

from __future__ import annotations

from collections.abc import Sequence

from palaver.context.summary.cleaning import behind, clean
from palaver.context.summary.request import SummaryAnswer
from palaver.context.summary.sections import lacking

__all__ = ["spoken", "unusable"]


def spoken(text: str, headings: Sequence[str]) -> str:
    """Give an answer without its scratch work.

    Where a template began that, only its end is in the answer; a block of code that is never closed, or a bold line, hides it. It is the end all the same
    where every section that was asked for stands behind it.

    Args:
        text: What the model said.
        headings: The sections that were asked for.
    """
    rest = clean(behind(text)) if headings else ""
    return rest if rest and not lacking(rest, headings) else clean(text)


def unusable(answer: SummaryAnswer, headings: Sequence[str], size: int, most: int) -> str:
    """Tell why an answer cannot be used at all, or give an empty text.

    Args:
        answer: The answer.
        headings: The sections that were asked for.
        size: Its size in tokens.
        most: The tokens that it may have: fewer than what it stands for.
    """
    text = spoken(answer.text, headings)
    if answer.calls:
        return "it called tools"
    if not text:
        return "it is empty, but for what it thought" if answer.text.strip() else "it is empty"
    if not answer.complete:
        return "it was cut off"
    if size > most:
        return f"it has {size:,} tokens, and {most:,} are free for it"
    if headings and len(lacking(text, headings)) == len(headings):
        return "it has none of the sections that were asked for; perhaps it goes on with the conversation"
    return ""
