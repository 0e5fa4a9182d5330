"""How a call ended, from its result: the error mark, the exit code that the harness wrote, and the line that names the error."""

from __future__ import annotations

import re

from palaver.messages import ToolResultContent

__all__ = ["Outcome", "error_line", "outcome"]

_CODE = re.compile(
    r"(?:exit(?:ed)?(?: with)?[ _-]?(?:code|status)(?: of)?|exited with|return[ _]?code)[\"']?\s*[:=> ]\s*[\"']?(-?\d{1,5})\b",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:[A-Za-z_.]*(?:Error|Exception)\b|error\b|fatal\b|failed\b|FAILED\b|failure\b|panic\b|not found\b|denied\b|"
    r"no such file|traceback)",
    re.IGNORECASE,
)
_EDGE = 4
"""Lines at either end of a result among which a harness writes the exit code."""

_END = 40_000
"""Characters at the end of a result in which the error is looked for."""

_LONGEST = 240

Outcome = str
"""`ok`, `failed`, or `exit N` for a code other than 0."""


def outcome(result: ToolResultContent) -> Outcome:
    """Tell how a call ended. Without an error mark and without an exit code it ended well."""
    lines = [line for line in result.text().splitlines() if line.strip()]
    edges = lines if len(lines) <= 2 * _EDGE else [*lines[:_EDGE], *lines[len(lines) - _EDGE :]]
    codes = [found[1] for line in edges if (found := _CODE.search(line[:_LONGEST]))]
    if codes and int(codes[-1]) != 0:
        return f"exit {int(codes[-1])}"
    return "failed" if result.is_error else "ok"


def error_line(result: ToolResultContent) -> str:
    """Give the line that names the error: the last one that looks like it, else the last one that says something."""
    lines = [line.strip() for line in result.text()[-_END:].splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line) and not _CODE.fullmatch(line)]
    line = (named or lines or [""])[-1]
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "[...]"
