"""The ledger: what a policy may know besides the view, so that planning stays a pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from palaver.context.account import Anchor
from palaver.context.measure import Meter
from palaver.context.record.constraints import Constraints
from palaver.context.schedule.calls import Calls, Sharing
from palaver.context.units import Bytes, Pieces
from palaver.log import Handle
from palaver.messages import Content
from palaver.view import Applied, View

__all__ = ["Ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one dialog.

    Attributes:
        meter: How large everything is, in the tokens of the model that will read it.
        sources: Gives a block as it was recorded, where whoever plans can read the log: a record of what is shown in another form is
            made from the original. None where nothing can be read but the view.
        anchor: What the provider said of the last request that it read, or None: then nothing corrects the count.
        files: Gives what a file says now, or None where it is not there; None where no file can be read. What it gives becomes part of
            the plan, so commit a view that was made with it: a past view never depends on the disk.
        constraints: What the user changed by hand in the list of his constraints.
        calls: When past calls were made and of which model, and when the next one will be; None where that is not known.
        held: Whether somebody took a compaction back and the view has not grown since: then nothing is set aside but for want of room.
        branches: Tells how many living branches read an exchange; None where there is but one.
        bytes: How large everything is in bytes of the request.
        pieces: How many images and sounds everything has.
        applied: What earlier plans made of exchanges.
    """

    meter: Meter
    sources: Callable[[Handle], Content | None] | None = None
    anchor: Anchor | None = None
    files: Callable[[str], str | None] | None = None
    constraints: Constraints = field(default_factory=Constraints)
    calls: Calls | None = None
    held: bool = False
    branches: Sharing | None = None
    bytes: Bytes = field(default_factory=Bytes)
    pieces: Pieces = field(default_factory=Pieces)
    applied: Applied = field(default_factory=Applied)

    def reading(self, view: View) -> Ledger:
        """Give the books with what the log of a view says of constraints; the very same where it says nothing."""
        return replace(self, constraints=self.constraints.over(view)) if view.constraints else self
