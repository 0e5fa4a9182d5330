"""A preset: the phases of one policy in the order in which they are tried, with the numbers of its source. And the default, `palaver`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from palaver.context.compose import Policy
from palaver.context.cut import Phase, run_phase, run_stages
from palaver.context.layout import Layout
from palaver.context.meter import Meter
from palaver.context.operators import clear_then_drop, drop, shorten_huge
from palaver.messages import Speaker
from palaver.tokens import BUDGET_KEYS, Budget, ModelInfo
from palaver.tokens.budget import info_of
from palaver.view import Exchange, Plan, View

__all__ = ["Palaver", "Preset", "newest_outputs", "outputs_in"]


class Preset(Policy):
    """A policy as a recipe: its work at every step, and its phases when the view exceeds the limit.

    In a view that exceeds the limit, an output that no view has room for is shortened before anything else. The first phase with a cut at or under the limit is the last one. A preset never separates a call from its result, drops the newest user message or loses
    what it leaves out, even where its source does. What the system leaves to a model is a record, to which a summary can be added.

    A parameter is a class attribute with the default of the source, and a row of `parameters`.

    Attributes:
        words: The budget of the source, in its own words.
        huge: The share of the limit beyond which an output is shown in part, once the view exceeds the limit.
    """

    acts_within_limit = False
    huge: ClassVar[float] = 1
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
            if name in words:  # what a budget leaves alone, too, stays among its words
                setattr(self, name, words[name] if name in BUDGET_KEYS else words.pop(name))
        super().__init__(model_name, max_tokens, **words)

    def own_words(self, model: ModelInfo) -> Mapping[str, object]:  # noqa: ARG002 - most do not depend on the model
        """Return the budget of the source on a model, in its own words."""
        return self.words

    def budget_for(self, model: str | ModelInfo) -> Budget:
        """Return the source's division of the model's window; the caller's words win."""
        asked = self.model_name or model
        said = {word: value for word, value in self._words.items() if value is not None}
        info = info_of(asked) if asked else None
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
        """Return the layout with what is done at every step, if the policy `acts_within_limit`."""
        return layout

    @abstractmethod
    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Return what to try, in order, when the layout exceeds its limit; the last one folds."""

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change in a view for one call."""
        return self._plan(view, budget, meter, committed=False, asked=False)

    def compact(self, view: View, budget: Budget, meter: Meter, *, asked: bool = False) -> Plan:
        """Return what to change in a view for good; when somebody asks for it, the last phase, also below the limit."""
        return self._plan(view, budget, meter, committed=True, asked=asked)

    def _plan(self, view: View, budget: Budget, meter: Meter, *, committed: bool, asked: bool) -> Plan:
        layout = Layout.of(view, budget, meter, committed=committed)
        layout = self.always(layout if layout.fits() else shorten_huge(layout, self.huge))
        phases = self.phases(layout)
        kept = min(layout.newest_messages(budget.keep_last), layout.newest(budget.keep_recent))
        if asked and layout.fits():
            return _folded(layout, phases[-1], kept).plan(self.name)
        return run_stages(layout, *(phases[-1:] if asked else phases), stop=kept).plan(self.name)


def _folded(layout: Layout, phase: Phase, stop: int) -> Layout:
    """Return a layout that fits, folded as if it had just exceeded its limit: a target is the same share of it, a tail is as long as ever. The same layout where that leaves nothing out."""
    size = layout.total()
    smaller = replace(layout, limit=size - 1, target=layout.target * size // layout.limit)
    if phase.target is not None and phase.stop is None:
        phase = replace(phase, target=phase.target * size // layout.limit)
    return run_phase(smaller, phase, stop) or layout


# --- palaver ------------------------------------------------------------------------------------------------------------

_CLEARED = 0.05
"""Share of the target that old exchanges with cleared outputs may have before the oldest of them are folded. A larger share keeps hardly more and costs more, because what
is cleared and folded later is written to the cache twice. Source: docs/study.md."""


class Palaver(Preset):
    """The default: shorten huge outputs, of more than a fifth of the limit (shares of 0.1 to 0.4 were tried); else clear old outputs; else fold the oldest exchanges into a record.

    Source: the project's own study (docs/study.md).
    """

    name = "palaver"
    huge = 0.20

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Clear, and fold what still exceeds the limit; else fold all."""
        return Phase(partial(clear_then_drop, share=_CLEARED)), Phase(drop)


# --- places that presets protect ----------------------------------------------------------------------------------------


def newest_outputs(layout: Layout, count: int) -> int:
    """Return the first index of the newest exchanges with `count` tool outputs; 0 where there are fewer."""
    index = layout.end
    while index > 0 and count > 0:
        index -= 1
        count -= outputs_in(layout.view.exchanges[index])
    return index


def outputs_in(exchange: Exchange) -> int:
    """Return the number of tool outputs in an exchange, without reading it."""
    return len(exchange.results) or int(exchange.speaker is Speaker.TOOL)
