"""The preset `openhands`: keep the first and the last events, condense the middle, down to a half.

Source: OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/context/condenser/llm_summarizing_condenser.py: max_size 240 events,
keep_first 2, target max_size // 2, minimum_progress 0.1; with max_tokens, down to a half of those. (The default agent has 80 and 4; releases
before had 120 and 4.) Its sections: prompts/summarizing_prompt.j2. An event is a message here; instructions are none.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from palaver.context.ground import Ground, Layout, Room
from palaver.context.keeps import first_messages
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, dropping
from palaver.context.parameters import Parameters, count, require, share
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.record import RecordOf
from palaver.context.steps import over
from palaver.errors import InvalidInput

__all__ = ["OpenHands"]


class OpenHands(Preset):
    """Condenses the middle when there are too many events, or too many tokens.

    Attributes:
        max_size: Events beyond which the middle is condensed.
        keep_first: Events in front that stay.
        keep_last: Events at the end that stay; unless given, what is left of a half of `max_size`.
        minimum_progress: By which share a condensation for the number of events must make the view smaller.
    """

    name: ClassVar[str] = "openhands"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "max_size": count(1),
            "keep_first": count(),
            "keep_last": count(1, none=True),
            "minimum_progress": share(),
        }
    )
    headings: ClassVar[tuple[str, ...]] = (
        "USER_CONTEXT",
        "TASK_TRACKING",
        "COMPLETED",
        "PENDING",
        "CURRENT_STATE",
        "CODE_STATE",
        "TESTS",
        "CHANGES",
        "DEPS",
        "VERSION_CONTROL_STATUS",
    )

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        max_size: int = 240,
        keep_first: int = 2,
        keep_last: int | None = None,
        minimum_progress: float = 0.1,
        **budget: object,
    ) -> None:
        """Make the policy for a model.

        Raises:
            InvalidInput: The ends that stay are no less than the whole.
        """
        require(self.parameters, {"max_size": max_size, "keep_first": keep_first, "keep_last": keep_last})
        last = max_size // 2 - keep_first - 1 if keep_last is None else keep_last
        if last <= 0 or keep_first < 0 or keep_first + last + 1 > max_size:
            ends = f"{keep_first} events in front" + ("" if keep_last is None else f" and {keep_last} at the end")
            raise InvalidInput(
                f"{ends} leave nothing to condense of max_size={max_size}, a summary counted in.",
                hint="Raise max_size, or keep fewer.",
            )
        self.max_size = max_size
        self.keep_first = keep_first
        self.keep_last = last
        self.minimum_progress = minimum_progress
        super().__init__(model_name, max_tokens, **budget)

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Condense the middle."""
        most = self.keep_first + self.keep_last
        by_size = dropping(Cut(border=False, messages=most))
        by_events = dropping(Cut(border=False, messages=most, by_size=False))

        def edit(ground: Ground, upto: int, layout: Layout) -> Layout:
            if over(ground, upto, layout):
                return by_size(ground, upto, layout)
            after = by_events(ground, upto, layout)
            return after if after.messages <= layout.messages * (1 - self.minimum_progress) else layout

        def when(ground: Ground, upto: int, layout: Layout) -> bool:
            summary = 1 if layout.cut else 0
            return layout.messages + summary > self.max_size or over(ground, upto, layout)

        keeps = (first_messages(self.keep_first),) if self.keep_first else ()
        return Recipe(
            room=room, edit=edit, stand_in=RecordOf(ledger.sources, ledger.constraints), keeps=keeps, when=when
        )
