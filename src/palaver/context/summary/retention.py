"""The retention gate: which distinctive values of the sources a summary lost, and a block that says them again.

What summaries lose is known: of 43 real compactions decisions survive in 77 %, file paths in 9.8 %, measured numbers in 1.9 %, commands in 0.2 %
(deja-vu#543). A deterministic gate over distinctive values is in maf-compaction 0.9 (0.8 of the values with a digit) and in
dsh-compaction-fidelity (0.75 of them; else a block of compensation is appended).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from palaver.context.record.facts import Facts

__all__ = ["ENOUGH", "Retention", "compensation", "retention", "values"]

ENOUGH = 0.8
"""Which share of the values must be kept."""

_NUMBER = re.compile(r"(?<![\w.])\d[\d,._]*\d(?:\s?%|ms|s|MB|KB|GB)?(?![\w])")
_ID = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_-]{6,}\b|#\d+\b")
_URL = re.compile(r"https?://[^\s)\"'>]+")
_MOST = 200
"""Values of each text that count; of a text with more, the newest."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What was kept of the values of the sources.

    Attributes:
        kept: The values that are said.
        lost: Those that are not, in the order in which they matter.
    """

    kept: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def share(self) -> float:
        """Which share was kept; 1.0 where there was nothing to keep."""
        total = len(self.kept) + len(self.lost)
        return len(self.kept) / total if total else 1.0


def values(facts: Facts) -> tuple[str, ...]:
    """Give the distinctive values of what is summarised, those that matter most first.

    What the user said must be, files that were changed, open errors, commands; then numbers, identifiers and addresses in the words of the
    user and in the model's last ones, and files that were read.
    """
    found: dict[str, None] = {}
    found.update(dict.fromkeys(said.text for said in facts.rules))
    found.update(dict.fromkeys(file.path for file in facts.files if file.wrote))
    found.update(dict.fromkeys(trouble.what for trouble in facts.troubles if not trouble.closed))
    found.update(dict.fromkeys(command.run for command in facts.commands))
    words = [said for said in (facts.goal, *facts.asks, facts.last) if said is not None]
    for said in words:
        found.update(dict.fromkeys(list(_in(said.text))[-_MOST:]))
    found.update(dict.fromkeys(file.path for file in facts.files if not file.wrote))
    return tuple(value for value in found if value)


def _in(text: str) -> Iterator[str]:
    for pattern in (_URL, _NUMBER, _ID):
        yield from (found[0].strip() for found in pattern.finditer(text))


def retention(text: str, wanted: tuple[str, ...]) -> Retention:
    """Tell which values a text says; white space between words does not matter."""
    said = " ".join(text.split())
    kept = tuple(value for value in wanted if " ".join(value.split()) in said)
    there = frozenset(kept)
    return Retention(kept, tuple(value for value in wanted if value not in there))


def compensation(lost: tuple[str, ...], room: int, count: Callable[[str], int]) -> str:
    """Give a block that says lost values again, as many as there is room for; an empty text for none.

    Args:
        lost: The values, those that matter most first.
        room: Tokens that it may have.
        count: Counts tokens.
    """
    head = "Also, word for word:"
    lines, used = [], count(head) + 1
    for value in lost:
        line = f"- {' '.join(value.split())}"
        used += count(line) + 1
        if used > room:
            break
        lines.append(line)
    return "\n".join([head, *lines]) if lines else ""
