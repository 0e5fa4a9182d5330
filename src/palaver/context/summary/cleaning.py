"""Cleaning: an answer without what models put around it: scratch work, tags, a block of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from palaver.messages.normalize import cleaned

__all__ = ["FENCE", "clean"]

FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
"""The line that begins or ends a block of code."""

_THOUGHTS = r"(?:\w+:)?(?:analysis|reasoning|reflection|scratchpad|think|thinking|thoughts?)"
_OPENED = rf"(?:<{_THOUGHTS}(?:\s[^<>]*)?>|\[think\]|◁think▷)"
_CLOSED = rf"(?:</{_THOUGHTS}\s*>|\[/think\]|◁/think▷)"
_BEGINS = re.compile(rf"\s*{_OPENED}", re.IGNORECASE)
_BEGINS_BEHIND = re.compile(rf"{_OPENED}\s*$", re.IGNORECASE)
_ENDS = re.compile(_CLOSED, re.IGNORECASE)
_ENDS_UNBEGUN = re.compile(rf"\s*{_CLOSED}|.*{_CLOSED}\s*$", re.IGNORECASE)
"""How models mark what they think before they answer: `<think>` (DeepSeek R1, Qwen 3), `<analysis>` and `<thinking>` (asked for by prompts of Claude
Code and others), `[THINK]` (Magistral), `◁think▷` (Kimi), `<seed:think>` (Seed-OSS). Where a template begins it, only its end is in the answer."""

_TAGGED = re.compile(
    r"\A(?:[^\n<#]*\n\s*)?<(summary|answer|final_answer|output|response|result)>((?:(?!</\1>).)*)(?:</\1>\s*)?\Z",
    re.DOTALL | re.IGNORECASE,
)
_WRAPPED = re.compile(r"\A(```|~~~)(?:markdown|md|text)?[ \t]*\n([#*|<\[◁].*)\n\1\Z", re.DOTALL | re.IGNORECASE)
_LAYERS = 4
"""So many things may stand around an answer: each in the one before."""


def clean(text: str) -> str:
    """Give an answer as it can be stored and sent, without the scratch work that some models put before it, and what some put around it.

    Scratch work that never ends is no answer, and neither is anything behind it.
    """
    said = cleaned(text).strip()
    for _ in range(_LAYERS):
        before, said = said, _unwrapped("\n".join(_spoken(said.split("\n"))).strip())
        if said == before:
            break
    return said


def _unwrapped(text: str) -> str:
    """Give what stands in a tag, or in the block of code, that an answer is nothing but."""
    if inside := _TAGGED.match(text):
        return inside[2].strip()
    inside = _WRAPPED.match(text)
    return inside[2].strip() if inside and len(FENCE.findall(inside[2])) % 2 == 0 else text


def _spoken(lines: Sequence[str]) -> Iterator[str]:
    """Give the lines that are no scratch work. What stands in a block of code, or amid a line, only speaks of it."""
    kept: list[str] = []
    scratch = code = False
    last = max((number for number, line in enumerate(lines) if _ENDS.search(line)), default=-1)
    for number, whole in enumerate(lines):
        line = whole
        while scratch or not code:
            if scratch:
                end = _ENDS.search(line)
                if end is None:
                    break
                line, scratch = line[end.end() :], False
            elif begun := _begun(line, ends=last > number):
                kept += [line[: begun.start()]]
                line, scratch = line[begun.end() :], True
            elif end := _ENDS_UNBEGUN.match(line):
                kept.clear()  # it began before the answer
                line = line[end.end() :]
            else:
                break
        if not scratch:
            code ^= FENCE.match(line) is not None
            kept.append(line)
    yield from kept


def _begun(line: str, *, ends: bool) -> re.Match[str] | None:
    """Find where scratch work begins in a line: at its beginning; or at its end, where it ends later."""
    return _BEGINS.match(line) or (_BEGINS_BEHIND.search(line) if ends else None)
