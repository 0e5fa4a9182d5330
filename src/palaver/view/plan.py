"""Plans: what a policy wants changed in a view, and what applying it gives.

A plan cannot make a view invalid: it drops whole exchanges, rewrites text of blocks that may be rewritten, and puts derived texts between exchanges.
Its texts come from models and managers, and are cleaned as every text that comes in: else the view could not be written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.log import Handle, Run
from palaver.messages import Trust
from palaver.messages.normalize import cleaned
from palaver.view.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leave a whole exchange out.

    Attributes:
        index: The exchange's index in the view the plan was made for.
        reason: Why.
    """

    index: int
    reason: Reason = Reason.OVER_BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Show a block of plain text or a tool result's content in another form.

    Attributes:
        target: The block.
        text: What the model sees instead; it names the handle.
        reason: Why.
        reversible: True when the handle brings back all that was taken out.
        sources: The entries that the text was made from, where it says more than the block does; empty where it was made of the block alone.
        trust: The lowest trust among the sources; None for that of the block.
    """

    target: Handle
    text: str
    reason: Reason
    reversible: bool = True
    sources: tuple[Run, ...] = ()
    trust: Trust | None = None

    def __post_init__(self) -> None:
        """Make the text fit to be stored and sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Leave a single block out, where the exchange stays valid without it: thinking, images, a further text.

    Attributes:
        target: The block.
        reason: Why.
    """

    target: Handle
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Put a derived text in as an exchange of its own.

    Attributes:
        before: The index of the exchange, in the view the plan was made for, before which it is put; the number of exchanges puts it last.
        text: What the model sees.
        label: `record`, `summary` or `notice`.
        sources: The entries it was made from.
        facts: What a record says, as canonical JSON, from which the next record goes on; empty where the text is all there is.
        trust: The lowest trust among the sources.
        standing: Whether it stands there for its own sake, and not for what was left out: it does not have to make the view smaller, and gives
            way where there is no room.
        since: The index of the first exchange that was said when the text stood there already; None where none was: what stands behind it was said
            after other words.
        figures: Figures about it that are kept with the call, as JSON values; None for none.
    """

    before: int
    text: str
    label: str = "record"
    sources: tuple[Run, ...] = ()
    facts: str = ""
    trust: Trust = Trust.OUTSIDE
    standing: bool = False
    since: int | None = None
    figures: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Make the text fit to be stored and sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a policy wants. An empty plan leaves the view as it is.

    Attributes:
        policy: The policy's name.
        drops: Exchanges to leave out.
        rewrites: Blocks to show in another form.
        removes: Single blocks to leave out.
        inserts: Derived texts to put in.
        notes: What the policy wants recorded about its decision; one sentence each.
        details: The figures it was decided by, and those about what it puts in by its label, as JSON values; None where it gives none.
    """

    policy: str
    drops: tuple[Drop, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    removes: tuple[Remove, ...] = ()
    inserts: tuple[Insert, ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        """Tell whether the plan changes anything."""
        return bool(self.drops or self.rewrites or self.removes or self.inserts)
