"""Checks: whether an answer is a summary. What is empty, cut off, a tool call, or goes on with the chat, is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from palaver.context.summary.request import SummaryAnswer

__all__ = ["filled", "lacking", "unusable"]

_ANALYSIS = re.compile(r"<(analysis|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_WRAPPED = re.compile(r"\A(```|~~~)(?:markdown|md|text)?[ \t]*\n([#*].*)\n\1\Z", re.DOTALL | re.IGNORECASE)
_MARKS = re.compile(r"\s*(#{0,6})\s*(?:\*\*|__)?\s*(?:\d+[.)]\s*)?(?:\*\*|__)?\s*")
_AROUND = " \t*_:"
_NOT_SAID = "(The summary says nothing of this; see the record beside it.)"


def lacking(text: str, headings: Iterable[str]) -> tuple[str, ...]:
    """Give the sections that a text does not have, or has with nothing in them."""
    wanted = {_name(heading): heading for heading in headings}
    said = _sections(text, frozenset(wanted))
    return tuple(heading for name, heading in wanted.items() if name not in said)


def _sections(text: str, names: frozenset[str]) -> set[str]:
    """Give the names of the sections in which something is said.

    A section goes on to the next one that was asked for, or to a heading of its own level or above: what is bold in it, headings below its
    own and whatever stands in a block of code belong to it.
    """
    said: set[str] = set()
    section, depth, code = "", 0, False
    fenced = len(_FENCE.findall(text)) % 2 == 0  # one that is never closed is none
    for line in text.splitlines():
        code ^= fenced and _FENCE.match(line) is not None
        hashes, name, rest = (0, "", line.strip()) if code else _heading(line, names)
        if name:
            section, depth = name, hashes
        elif 0 < hashes <= depth:
            section = ""
        if section and rest:
            said.add(section)
    return said


def _heading(line: str, names: frozenset[str]) -> tuple[int, str, str]:
    """Give how many hashes a line begins with, which of the headings it is, if it is one, and what else it says."""
    marks = _MARKS.match(line)
    hashes, body = (len(marks[1]), line[marks.end() :]) if marks else (0, line)
    whole = _name(body.strip(_AROUND))
    if whole in names:
        return hashes, whole, ""
    head, colon, rest = body.partition(":")
    name = _name(head.strip(_AROUND))
    return (hashes, name, rest.strip(_AROUND)) if colon and name in names else (hashes, "", line.strip())


def _name(heading: str) -> str:
    """Give a heading as it is compared: in any case, with "and" written out."""
    return " ".join(heading.replace("&", " and ").casefold().split())


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
    """Give an answer without the scratch work that some models put before it, and without the block of code that some put it in."""
    said = _ANALYSIS.sub("", text).strip()
    inside = _WRAPPED.match(said)
    return inside[2].strip() if inside and len(_FENCE.findall(inside[2])) % 2 == 0 else said


def filled(text: str, headings: Iterable[str]) -> str:
    """Give a summary with every section; what it lacks is said to be lacking."""
    missing = lacking(text, headings)
    return "\n\n".join([text, *(f"## {heading}\n{_NOT_SAID}" for heading in missing)])
