"""Failure memory: whether the view still says what was tried and failed.

Source: TRACE (arXiv 2608.06503): after compaction the share of blocked or failing actions in the first step rises by 0.108, because agents try
again what they no longer know to have failed.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["remembered", "repeated"]


def remembered(command: str, error: str, text: str) -> bool:
    """Tell whether a text holds a failure: the command, from its beginning, and the line that names the error.

    What cut the line short (a text may show its first 60 characters) does not matter.
    """
    said = " ".join(text.split())
    return _short(command) in said and (not error.strip() or _short(error) in said)


_ENOUGH = 60


def _short(line: str) -> str:
    return " ".join(line.split())[:_ENOUGH]


def repeated(failed: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Give how many calls failed, and how many of them did what had failed before in the same way.

    Args:
        failed: For each failed call, in order, what it did and the error.
    """
    return len(failed), len(failed) - len(set(failed))
