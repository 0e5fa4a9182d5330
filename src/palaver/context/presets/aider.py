"""The preset `aider`: what is done is summarised within a small budget; what the user asked last, and what came of it, stays in full.

Source: Aider-AI/aider, aider/history.py and aider/models.py: max_chat_history_tokens = clamp(max_input / 16, 1,024, 8,192); the tail of what is
done may have half of it, the rest is summarised, again and again until it fits. The recursion is not needed where code makes the record:
one pass is within the budget. Its map of the repository (aider/repomap.py) stands beside the record, where it is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from palaver.context.ground import Ground, Layout, Room, StandIn, asks
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.repo_map import Mapped, RepoMap
from palaver.context.repo_map.repo_map import TOKENS
from palaver.context.steps import over

__all__ = ["Aider"]

_SHARE, _LEAST, _MOST = 16, 1_024, 8_192
_MAP = 8
"""At most an eighth of the room is for the map (aider/models.py, get_repo_map_tokens)."""


class Aider(Preset):
    """Summarises what is done when it outgrows its budget.

    Attributes:
        history: Tokens that what is done may have; a sixteenth of the room, at least 1,024 and at most 8,192, unless given.
        repo_map: The map that stands beside the record of what is done, drawn for the files that were touched there; None for none. A
            folder's path does, too; it needs the extra `repomap`. The map is of the repository as it was last looked at.
        map_tokens: Tokens that the map may have besides; at most an eighth of the room.
    """

    name: ClassVar[str] = "aider"

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        history: int | None = None,
        repo_map: RepoMap | str | Path | None = None,
        map_tokens: int = TOKENS,
        **budget: object,
    ) -> None:
        """Make the policy for a model; a repository that was not looked at yet is looked at.

        Raises:
            InvalidInput: What is to be mapped is no folder.
            MissingExtra: A map is asked for, and the extra `repomap` is not installed.
        """
        self.history = history
        self.repo_map = RepoMap(repo_map) if isinstance(repo_map, str | Path) else repo_map
        self.map_tokens = map_tokens
        if self.repo_map is not None:
            _ = self.repo_map.seen  # here, where its user can wait: planning never does
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Fold what is done."""
        share = min(max(room.high // _SHARE, _LEAST), _MOST) if self.history is None else self.history
        history = min(share, max(room.high, 0))
        mapped = 0 if self.repo_map is None else max(min(self.map_tokens, room.high // _MAP), 0)

        def when(ground: Ground, upto: int, layout: Layout) -> bool:
            """Tell whether the user has just begun something new and what is done is too large."""
            begun = asks(ground.view.exchanges[upto])
            return (begun and layout.size - ground.whole(upto) > history + mapped) or over(ground, upto, layout)

        stand_in: StandIn = RecordOf(ledger.sources, ledger.constraints, most=history // 2)
        if self.repo_map is not None:
            stand_in = Mapped(stand_in=stand_in, repo_map=self.repo_map, most=mapped)
        return Recipe(
            room=Room(
                high=room.high, low=history // 2 + mapped, keep_last=room.keep_last, keep_recent=room.keep_recent
            ),
            edit=dropping(Cut(border=False, done=True)),
            stand_in=stand_in,
            when=when,
        )
