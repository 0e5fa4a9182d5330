"""The preset `aider`: what is done is summarised within a small budget; what the user asked last, and what came of it, stays in full.

Source: Aider-AI/aider, aider/history.py and aider/models.py: max_chat_history_tokens = clamp(max_input / 16, 1,024, 8,192); the tail of what is
done may have half of it, the rest is summarised, again and again until it fits. The recursion is not needed where code makes the record:
one pass is within the budget. Its map of the repository (aider/repomap.py; aider/coders/base_coder.py, get_repo_messages) is in every request,
where it is asked for: before the user's first words, and then beside the record.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Ground, Layout, Room, StandIn, asks
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.parameters import Parameters, count, number, require
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.repo_map import Mapped, Maps, RepoMap
from palaver.context.repo_map.repo_map import ALONE, TOKENS
from palaver.errors import InvalidInput

__all__ = ["Aider"]

_SHARE, _LEAST, _MOST = 16, 1_024, 8_192
_MAP = 8
"""At most an eighth of the room is for the map (aider/models.py, get_repo_map_tokens)."""

_CUT = dropping(Cut(border=False, done=True))


class Aider(Preset):
    """Summarises what is done when it outgrows its budget.

    Attributes:
        history: Tokens that what is done may have; a sixteenth of the room, at least 1,024 and at most 8,192, unless given.
        repo_map: The map that stands in every request, where there is room: before the user's first words, drawn for them, and when more is
            folded beside the record, drawn for the files that were touched there. None for none. A folder's path does, too; it needs
            the extra `repomap`.
        map_tokens: Tokens that the map may have besides; at most an eighth of the room.
        map_mul_no_files: How many times as many it may have while nothing was folded: no file is before the model's eyes when it begins.
    """

    name: ClassVar[str] = "aider"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "history": count(none=True),
            "map_tokens": number(),
            "map_mul_no_files": number(),
        }
    )

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        history: int | None = None,
        repo_map: RepoMap | str | Path | None = None,
        map_tokens: int = TOKENS,
        map_mul_no_files: float = ALONE,
        **budget: object,
    ) -> None:
        """Make the policy for a model; a repository that was not looked at yet is looked at.

        Raises:
            InvalidInput: What is to be mapped is no folder, or a figure is none.
            MissingExtra: A map is asked for, and the extra `repomap` is not installed.
        """
        given = {"history": history, "map_tokens": map_tokens, "map_mul_no_files": map_mul_no_files}
        require(self.parameters, given)  # before a repository is looked at
        self.history = history
        self.repo_map = _map_of(repo_map)
        self.map_tokens = map_tokens
        self.map_mul_no_files = map_mul_no_files
        if self.repo_map is not None:
            _ = self.repo_map.seen  # here, where its user can wait: a plan has only to look at what changed
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Fold what is done."""
        share = min(max(room.high // _SHARE, _LEAST), _MOST) if self.history is None else self.history
        history = min(share, max(room.high, 0))
        maps = self._maps(room, ledger)

        def sizes(ground: Ground, upto: int, layout: Layout) -> tuple[int, int]:
            return (0, 0) if maps is None else maps.sizes(ground, upto, layout)

        def when(ground: Ground, upto: int, layout: Layout) -> bool:
            """Tell whether the user has just begun something new and what is done is too large."""
            begun = asks(ground.view.exchanges[upto])
            within, without = sizes(ground, upto, layout)
            done = layout.size - ground.whole(upto) - within
            return (begun and done > history) or layout.size + without > ground.room.high

        def edit(ground: Ground, upto: int, layout: Layout) -> Layout:
            """Fold; where there is room, a record and a map are not made anew for their own sake."""
            folded = _CUT(ground, upto, layout)
            new = {*layout.kept, *range(layout.cut, folded.cut)}.difference(folded.kept)
            crowded = layout.size + sizes(ground, upto, layout)[1] > ground.room.high
            return folded if crowded or any(not ground.view.exchanges[index].derived for index in new) else layout

        stand_in: StandIn = RecordOf(ledger.sources, ledger.constraints, most=history // 2)
        if maps is not None:
            stand_in = Mapped(stand_in=stand_in, maps=maps)
        return Recipe(
            room=Room(high=room.high, low=history // 2, keep_last=room.keep_last, keep_recent=room.keep_recent),
            edit=edit,
            stand_in=stand_in,
            when=when,
            opening=None if maps is None else maps.opening,
        )

    def _maps(self, room: Room, ledger: Ledger) -> Maps | None:
        """Give the maps of a plan."""
        if self.repo_map is None:
            return None
        most = max(room.high // _MAP, 0)
        first, folded = self.map_tokens * self.map_mul_no_files, self.map_tokens
        sent = None if ledger.calls is None else ledger.calls.sent
        return Maps(repo_map=self.repo_map, first=int(min(first, most)), folded=int(min(folded, most)), sent=sent)


def _map_of(wanted: object) -> RepoMap | None:
    """Give the map that is asked for, by a folder's path or as it is."""
    if isinstance(wanted, str | Path):
        return RepoMap.shared(wanted)
    if wanted is None or isinstance(wanted, RepoMap):
        return wanted
    raise InvalidInput(f"repo_map is {wanted!r}.", hint="Give a folder's path, or a RepoMap.")
