"""The preset `claude-code`: three layers. Large outputs are never shown whole, old ones are cleared, and then everything is compacted.

Source: public descriptions of the program (its source is not public), such as
https://zhanghandong.github.io/harness-engineering-from-cc-to-ai-coding/en/part3/ch09.html. Effective window: less min(longest answer, 20,000);
compacts 13,000 below that (167,000 of 200,000). Outputs over 50,000 characters: a preview of 2 KB and the place, Read exempt. Microcompact: the
newest 5 results of its own tools stay. After compaction the 5 files worked on last come back, 5,000 tokens each, 50,000 in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.operators import Cap, Clear, Cut, cap, clear, dropping, in_phases
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.rehydrate import Rehydrating
from palaver.context.texts import preview
from palaver.tokens import ModelInfo

__all__ = ["ClaudeCode"]

_ANSWER, _BUFFER = 20_000, 13_000
_LARGE, _PREVIEW = 50_000, 2_048
_COMPACTABLE = frozenset({"read", "bash", "grep", "glob", "websearch", "webfetch", "edit", "write"})


class ClaudeCode(Preset):
    """Caps, clears, and compacts; brings the files back that were worked on last.

    Attributes:
        keep_results: How many results clearing leaves.
        keep_tail: Tokens at the end that compaction leaves; the original leaves none, its variant with a memory file 10,000 to 40,000.
        files: How many files come back.
    """

    name: ClassVar[str] = "claude-code"
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
        **budget: object,
    ) -> None:
        """Make the policy for a model."""
        self.keep_results = keep_results
        self.keep_tail = keep_tail
        self.files = files
        super().__init__(model_name, max_tokens, **budget)

    def own(self, model: ModelInfo) -> Mapping[str, object]:
        """Keep room for the answer and for the call that compacts."""
        return {"reserve": min(model.max_output or _ANSWER, _ANSWER), "safety_buffer": _BUFFER}

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Cap at once; clear, then compact."""
        files = Rehydrating(stand_in=RecordOf(ledger.sources, ledger.constraints), files=self.files, now=ledger.files)
        messages = None if self.keep_tail else 0
        low = min(self.keep_tail + room.high // 2, room.high)
        return Recipe(
            room=Room(high=room.high, low=low, keep_last=room.keep_last, keep_recent=room.keep_recent),
            always=cap(Cap(characters=_LARGE, shown=_PREVIEW, words=preview, exempt=frozenset({"read"}))),
            edit=in_phases(
                clear(Clear(keep=self.keep_results, only=_COMPACTABLE)),
                dropping(Cut(border=False, messages=messages)),
            ),
            stand_in=files,
        )
