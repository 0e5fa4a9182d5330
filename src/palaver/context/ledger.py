"""The ledger: what a policy may know besides the view, so that planning stays a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.context.measure import Meter

__all__ = ["Ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one dialog.

    Attributes:
        meter: How large everything is, in the tokens of the model that will read it.
    """

    meter: Meter
