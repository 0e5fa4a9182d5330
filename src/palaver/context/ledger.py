"""The ledger: what a policy may know besides the view, so that planning stays a pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palaver.context.measure import Meter
from palaver.log import Handle
from palaver.messages import Content

__all__ = ["Ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one dialog.

    Attributes:
        meter: How large everything is, in the tokens of the model that will read it.
        sources: Gives a block as it was recorded, where whoever plans can read the log: a record of what is shown in another form is
            made from the original. None where nothing can be read but the view.
    """

    meter: Meter
    sources: Callable[[Handle], Content | None] | None = None
