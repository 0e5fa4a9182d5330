"""The preset `aider`: finished work is summarised within a small budget; the user's last request stays in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from palaver.context.cut import Phase, find_cut
from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import drop
from palaver.context.parameters import Parameters, count
from palaver.context.presets import Preset
from palaver.context.repo_map import RepoMap
from palaver.errors import InvalidInput
from palaver.repomap import MAP_TOKENS
from palaver.tokens import Budget
from palaver.view import Insert, Plan, Reason, View

_SHARE, _LEAST, _MOST = 16, 1_024, 8_192
_MAP_SHARE = 8
"""A map has at most an eighth of the limit (aider/models.py, get_repo_map_tokens)."""


class Aider(Preset):
    """Summarise finished work when it outgrows its budget; with a repository, add a map of it to the record.

    Source: Aider-AI/aider, aider/history.py and aider/models.py: what is done may have clamp(input / 16, 1,024, 8,192) tokens, its tail half of that; it is
    summarised when the user begins anew. aider/repomap.py: the map. Aider sends a map with every request; here it comes with the first fold, and the tool `repo_map` gives one
    at any time.

    Attributes:
        history: Tokens that finished work may have; None for the clamp.
        map_tokens: The most tokens of a map; at most an eighth of the limit.
        repo_map: Draws the map; None for none.
    """

    name = "aider"
    acts_within_limit = True
    parameters: ClassVar[Parameters] = MappingProxyType({"history": count(none=True), "map_tokens": count()})
    history: int | None = None
    map_tokens: int = MAP_TOKENS

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        repo_map: RepoMap | str | Path | None = None,
        **words: Any,  # noqa: ANN401 - of a table
    ) -> None:
        """Make the policy for a model. A folder's path is read now.

        Raises:
            InvalidInput: A word is unknown, its value is out of bounds, or the folder cannot be read.
            MissingExtra: The extra `repomap` is not installed.
        """
        super().__init__(model_name, max_tokens, **words)
        if not isinstance(repo_map, RepoMap | str | Path | None):
            raise InvalidInput(f"repo_map is {repo_map!r}.", hint="Pass a folder's path, or a RepoMap.")
        self.repo_map = RepoMap.shared(repo_map) if isinstance(repo_map, str | Path) else repo_map

    def always(self, layout: Layout) -> Layout:
        """Fold finished work when it is too large; the user's newest message and everything after it stay."""
        begun = layout.newest_turns(1)
        history = self._history(layout)
        current = layout.without(0, begun, Reason.FOLDED, keep=frozenset()).total(layout.limit)
        if begun == 0 or current > layout.limit or layout.total(current + history) <= current + history:
            return layout
        small = replace(layout, limit=current + history, target=current + history // 2)
        folded = find_cut(small, lambda _, cut: self._fold(layout, cut), stop=begun)
        return folded or self._fold(layout, begun)

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Fold."""
        return (Phase(self._fold),)

    def _fold(self, layout: Layout, cut: int) -> Layout:
        """Drop what is old. The record has shares of the budget of finished work."""
        return drop(layout, cut, room=self._history(layout))

    def _history(self, layout: Layout) -> int:
        return (
            min(max((layout.limit - layout.fixed) // _SHARE, _LEAST), _MOST) if self.history is None else self.history
        )

    def _plan(self, view: View, budget: Budget, meter: Meter, *, committed: bool, asked: bool) -> Plan:
        """Return what to change in a view: with a fold, a map of the repository after the record."""
        if self.repo_map is None:
            return super()._plan(view, budget, meter, committed=committed, asked=asked)
        room = min(self.map_tokens, budget.limit // _MAP_SHARE)
        plan = super()._plan(view, budget.with_limit(budget.limit - room), meter, committed=committed, asked=asked)
        gone = [view.exchanges[index] for dropped in plan.drops for index in dropped.indexes]
        free = room - meter.derived("", "notice")
        text = self.repo_map.for_exchanges(gone, free, meter.counter.text) if gone else ""
        before = max((dropped.indexes.stop for dropped in plan.drops), default=0)
        return (
            replace(plan, inserts=(*plan.inserts, Insert(before=before, text=text, label="notice"))) if text else plan
        )
