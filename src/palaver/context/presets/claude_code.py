"""The preset `claude-code`: three layers. Large outputs are never shown whole, old ones are cleared, and then everything is compacted.

Source: public descriptions of the program (its source is not public), such as
https://zhanghandong.github.io/harness-engineering-from-cc-to-ai-coding/en/part3/ch09.html. Effective window: less min(longest answer, 20,000);
compacts 13,000 below that (167,000 of 200,000). Outputs over 50,000 characters: a preview of 2 KB and the place, Read exempt. Microcompact: the
newest 5 results of its own tools stay, when the limit is near, and after 60 minutes without a call, when no cache is lost by it. After compaction the 5 files worked on last come back, 5,000 tokens each, 50,000 in all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.operators import Cap, Clear, Cut, after_pause, cap, clear, dropping, in_phases, together
from palaver.context.parameters import Parameters, count, number
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.rehydrate import Rehydrating
from palaver.context.texts import preview
from palaver.context.work import Act
from palaver.tokens import ModelInfo

__all__ = ["ClaudeCode"]

_ANSWER, _BUFFER = 20_000, 13_000
_LARGE, _PREVIEW = 50_000, 2_048
_COMPACTABLE = frozenset({"read", "bash", "grep", "glob", "websearch", "webfetch", "edit", "write"})
_LOOKS = re.compile(
    r"grep|glob|search|find|fetch|browse|crawl|\bls\b|list_?(?:files|dir)|read_?file|view_?file", re.IGNORECASE
)
_PAUSE = 3_600.0
"""Seconds since the last call after which its cache is taken for cold (the original's time-based microcompact)."""


def _compactable(act: Act) -> bool:
    """Tell whether a result may be cleared: of one of the original's own tools, or of another harness' for the same, whatever its name."""
    deed = act.deed
    return act.tool.casefold() in _COMPACTABLE or bool(deed.run or deed.read or deed.wrote or _LOOKS.search(act.tool))


def _reads(act: Act) -> bool:
    """Tell whether a call reads a file by a tool for that: its reader chose how much of it."""
    return bool(act.deed.read and not act.deed.run)


class ClaudeCode(Preset):
    """Caps, clears, and compacts; brings the files back that were worked on last.

    Attributes:
        keep_results: How many results clearing leaves.
        keep_tail: Tokens at the end that compaction leaves, beside the record and the files; the original leaves none, its variant with a memory
            file 10,000 to 40,000.
        files: How many files come back.
        pause: Seconds without a call after which old results are cleared before the next one, whatever the size of the view; None for never.
    """

    name: ClassVar[str] = "claude-code"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "keep_results": count(),
            "keep_tail": count(),
            "files": count(),
            "pause": number(inside=True, none=True),
        }
    )
    headings: ClassVar[tuple[str, ...]] = (
        "Primary Request and Intent",
        "Key Technical Concepts",
        "Files and Code Sections",
        "Errors and Fixes",
        "Problem Solving",
        "All User Messages",
        "Pending Tasks",
        "Current Work",
        "Next Step",
    )

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        keep_results: int = 5,
        keep_tail: int = 0,
        files: int = 5,
        pause: float | None = _PAUSE,
        **budget: object,
    ) -> None:
        """Make the policy for a model."""
        self.keep_results = keep_results
        self.keep_tail = keep_tail
        self.files = files
        self.pause = pause
        super().__init__(model_name, max_tokens, **budget)

    def own(self, model: ModelInfo) -> Mapping[str, object]:
        """Keep room for the answer and for the call that compacts."""
        return {"reserve": min(model.max_output or _ANSWER, _ANSWER), "safety_buffer": _BUFFER}

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Cap at once; clear, then compact."""
        files = Rehydrating(stand_in=RecordOf(ledger.sources, ledger.constraints), files=self.files, now=ledger.files)
        cut = Cut(border=False, tail=self.keep_tail) if self.keep_tail else Cut(border=False, messages=0)
        old = clear(Clear(keep=self.keep_results, which=_compactable))
        capped = cap(Cap(characters=_LARGE, shown=_PREVIEW, words=preview, exempt=frozenset({"read"}), whole=_reads))
        return Recipe(
            room=room,
            always=together(capped, after_pause(old, self.pause, ledger)),
            edit=in_phases(old, dropping(cut)),
            stand_in=files,
        )
