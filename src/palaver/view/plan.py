"""Plans: what a policy wants changed in a view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.log import Handle, Run
from palaver.messages import Trust
from palaver.messages.frozen import cleaned
from palaver.view.blocks import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leave out whole exchanges.

    Attributes:
        index: The index of the first one in the view that the plan was made for.
        stop: The index after the last one; None for one exchange.
        reason: Why.
    """

    index: int
    stop: int | None = None
    reason: Reason = Reason.OVER_BUDGET

    @property
    def indexes(self) -> range:
        """The indexes left out."""
        return range(self.index, self.index + 1 if self.stop is None else self.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Show another text in place of a block that is not a tool call.

    Attributes:
        target: The block.
        text: What the model sees instead; it names the handle.
        reason: Why.
        reversible: Whether the handle returns all that was taken out.
        sources: The entries that the text was made from besides the block.
        trust: The lowest trust among them; None for that of the block.
    """

    target: Handle
    text: str
    reason: Reason
    reversible: bool = True
    sources: tuple[Run, ...] = ()
    trust: Trust | None = None

    def __post_init__(self) -> None:
        """Replace what cannot be stored or sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Leave out a single block that is neither a call nor a result, where its turn has others.

    Attributes:
        target: The block.
        reason: Why.
    """

    target: Handle
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Add a derived text as an exchange of its own. It never speaks with the user's authority.

    Attributes:
        before: The index, in the view that the plan was made for, of the exchange that follows it; the number of exchanges adds it at the end.
        text: What the model sees.
        label: `record`, `summary` or `notice`.
        sources: The entries it was made from.
        trust: The lowest trust among the sources.
    """

    before: int
    text: str
    label: str = "record"
    sources: tuple[Run, ...] = ()
    trust: Trust = Trust.OUTSIDE

    def __post_init__(self) -> None:
        """Replace what cannot be stored or sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a policy wants. An empty plan leaves the view as it is.

    Attributes:
        policy: The policy's name.
        drops: Exchanges to leave out.
        rewrites: Blocks to show in another form.
        removes: Single blocks to leave out.
        inserts: Derived texts to add.
        notes: What the policy records about its decision, a sentence each.
        details: Figures of its decision, as JSON values.
    """

    policy: str
    drops: tuple[Drop, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    removes: tuple[Remove, ...] = ()
    inserts: tuple[Insert, ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        """Return whether the plan changes anything."""
        return bool(self.drops or self.rewrites or self.removes or self.inserts)
