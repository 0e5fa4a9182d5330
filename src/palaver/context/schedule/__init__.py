"""The scheduler: which edits wait, when they pay for themselves, and when a fold does; with the optimum it is measured against."""

from palaver.context.schedule.calls import Called, Calls
from palaver.context.schedule.due import Schedule, Waiting
from palaver.context.schedule.edits import Decision, Edit, EditLedger, Why
from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.rent import DETERMINISTIC, RANDOMISED, RentOrBuy, drawn

__all__ = [
    "DETERMINISTIC",
    "RANDOMISED",
    "Called",
    "Calls",
    "Decision",
    "Edit",
    "EditLedger",
    "PriceSheet",
    "RentOrBuy",
    "Schedule",
    "Waiting",
    "Why",
    "drawn",
]
