"""A preset: the phases of one policy in the order in which they are tried, with the numbers of its source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from palaver.context.cut import Stage, find_cut
from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.policy import Policy
from palaver.messages import Speaker
from palaver.tokens import Budget, ModelInfo, model_info
from palaver.view import Exchange, Plan, View

__all__ = ["Phase", "Preset", "newest_outputs", "outputs_in"]


@dataclass(frozen=True, slots=True)
class Phase:
    """One way to make a view smaller, and how far it may go.

    Attributes:
        stage: What becomes of everything before a cut.
        target: The cut leaves more than this, in tokens of the whole request; None for the target of the budget.
        stop: The newest cut: what comes after it is protected. None protects the newest exchange alone.
        frees: The least it must free to count, in tokens.
    """

    stage: Stage
    target: int | None = None
    stop: int | None = None
    frees: int = 0


class Preset(Policy):
    """A policy as a recipe: what it does at every step, and its phases when the view exceeds the limit.

    The first phase with a cut at or under the limit is the last one. Where the system it is named after breaks a pair of call and result, drops
    the newest user message or loses what it leaves out, a preset does not. What the system leaves to a model is a record, to which a summary can be added.

    A parameter is a class attribute with the default of the source, and a row of `parameters`.

    Attributes:
        words: The budget of the source, in its own words.
    """

    words: ClassVar[Mapping[str, object]] = {}

    def __init__(self, model_name: str = "", max_tokens: int | None = None, **words: Any) -> None:  # noqa: ANN401 - of a table
        """Make the policy for a model.

        Args:
            model_name: The model; empty when the caller passes the budget.
            max_tokens: A smaller window.
            words: Parameters of the policy, and further words of a budget.

        Raises:
            InvalidInput: A word is unknown or its value is out of bounds.
        """
        for name in self.parameters:
            if name in words:
                setattr(self, name, words.pop(name))
        super().__init__(model_name, max_tokens, **words)

    def own_words(self, model: ModelInfo) -> Mapping[str, object]:  # noqa: ARG002 - most do not depend on the model
        """Return the budget of the source on a model, in its own words."""
        return self.words

    def budget_for(self, model_name: str) -> Budget:
        """Return the source's division of the model's window; the caller's words win."""
        name = self.model_name or model_name
        said = {word: value for word, value in self._words.items() if value is not None}
        info = model_info(name) if name else None
        own = {} if info is None else self.own_words(info)
        if info is None or not own:
            return Budget.parse(said, info)
        if "max_tokens" in said:  # the source, on a model with that window
            window = min(Budget.parse({"max_tokens": said.pop("max_tokens")}).max_tokens, info.context_window)
            info = replace(info, context_window=window, max_input=min(info.max_input, window))
        most = info.context_window // 2  # the sources chose their reserves for windows of 200,000 tokens
        clamped = {
            word: min(value, most) if isinstance(value, int) and word in {"reserve", "reserve_tokens"} else value
            for word, value in own.items()
        }
        return Budget.parse({**clamped, **said}, info)

    def always(self, layout: Layout) -> Layout:
        """Return the layout with what the policy does at every step, whatever the size."""
        return layout

    @abstractmethod
    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Return what to try, in order, when the layout exceeds its limit."""

    def folds(self, layout: Layout) -> Phase:
        """Return the phase that folds what is old: the last one."""
        return self.phases(layout)[-1]

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change in a view."""
        layout = self.always(Layout.of(view, budget, meter))
        return layout.plan(self.name) if layout.fits() else self._run(layout, self.phases(layout), budget)

    def compact(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change when somebody asks for a compaction: always a fold, also below the limit."""
        layout = self.always(Layout.of(view, budget, meter))
        size = layout.total()
        layout = replace(layout, limit=min(layout.limit, size - 1), target=min(layout.target, size // 2))
        return self._run(layout, (self.folds(layout),), budget)

    def _run(self, layout: Layout, phases: Sequence[Phase], budget: Budget) -> Plan:
        kept = min(layout.newest_messages(budget.keep_last), layout.newest(budget.keep_recent))
        for stops in (kept, layout.end) if kept < layout.end else (layout.end,):
            for phase in phases:
                found = self._cut(layout, phase, stops)
                if found is not None:
                    return found.plan(self.name)
        return phases[-1].stage(layout, max(layout.end - 1, 0)).plan(self.name)

    @staticmethod
    def _cut(layout: Layout, phase: Phase, stop: int) -> Layout | None:
        """Return the layout at the cut of a phase. The phase's target bounds the cut; a record has the room that the budget's target gives it."""
        aimed = layout if phase.target is None else replace(layout, target=min(phase.target, layout.limit - 1))
        last = stop if phase.stop is None else min(stop, phase.stop)
        found = find_cut(aimed, lambda _, cut: phase.stage(layout, cut), stop=last)
        return None if found is None or (phase.frees and layout.total() - found.total() < phase.frees) else found


def newest_outputs(layout: Layout, count: int) -> int:
    """Return the first index of the newest exchanges with so many tool outputs; 0 where there are fewer."""
    index = layout.end
    while index > 0 and count > 0:
        index -= 1
        count -= outputs_in(layout.view.exchanges[index])
    return index


def outputs_in(exchange: Exchange) -> int:
    """Return the number of tool outputs in an exchange, without reading it."""
    return len(exchange.results) or int(exchange.speaker is Speaker.TOOL)
