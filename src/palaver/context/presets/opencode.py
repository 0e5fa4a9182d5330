"""The presets `opencode` and `opencode-dcp`: prune old tool results, then compact all but a tail; with the plugin, clean up first.

Sources: anomalyco/opencode, packages/opencode/src/session/compaction.ts: COMPACTION_BUFFER 20,000 beside the longest answer; PRUNE_PROTECT 40,000
tokens of the newest results and two turns, PRUNE_MINIMUM 20,000, tool `skill` never; tail of two turns within clamp(a quarter of the room, 2,000,
15,000). packages/core/src/session/compaction.ts has its sections. tarquinen/opencode-dynamic-context-pruning, lib/strategies: deduplication (same
tool, same arguments: the last output counts), superseded writes, purged errors.
"""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.operators import (
    ASKED_AGAIN,
    DROP_SUPERSEDED,
    PURGE_FAILED,
    Clear,
    Cut,
    Operator,
    clear,
    dropping,
    in_phases,
)
from palaver.context.presets.preset import Preset, Recipe, tail
from palaver.context.record import RecordOf

__all__ = ["OpenCode", "OpenCodeDCP"]

_PROTECT, _MINIMUM, _TURNS = 40_000, 20_000, 2
_TAIL_LEAST, _TAIL_MOST, _TAIL_SHARE = 2_000, 15_000, 4


class OpenCode(Preset):
    """Prunes, then compacts."""

    name: ClassVar[str] = "opencode"
    words: ClassVar = {"buffer": 20_000}
    headings: ClassVar[tuple[str, ...]] = (
        "Objective",
        "Requirements",
        "Decisions",
        "Work State",
        "Next Move",
        "Relevant Files",
        "Additional Context",
    )
    cleaning: ClassVar[tuple[Operator, ...]] = ()

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Prune what is old, then keep a tail."""
        prune = Clear(keep=0, protect=_PROTECT, turns=_TURNS, at_least=_MINIMUM, exclude=frozenset({"skill"}))
        kept = min(max(room.high // _TAIL_SHARE, _TAIL_LEAST), _TAIL_MOST)
        return Recipe(
            room=tail(room, kept),
            edit=in_phases(*self.cleaning, clear(prune), dropping(Cut(border=False))),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
        )


class OpenCodeDCP(OpenCode):
    """Cleans up what later work made pointless, then does what OpenCode does."""

    name: ClassVar[str] = "opencode-dcp"
    cleaning: ClassVar[tuple[Operator, ...]] = (ASKED_AGAIN, PURGE_FAILED, DROP_SUPERSEDED)
