"""Operators: the small pure functions that policies are made of."""

from palaver.context.operators.drop_oldest import DROP_OLDEST, Cut, dropping
from palaver.context.operators.media import DEGRADE_MEDIA
from palaver.context.operators.offload import OFFLOAD
from palaver.context.operators.operator import Edit, Loss, Operator, in_phases, in_row
from palaver.context.operators.properties import ALWAYS, Property, broken

__all__ = [
    "ALWAYS",
    "DEGRADE_MEDIA",
    "DROP_OLDEST",
    "OFFLOAD",
    "Cut",
    "Edit",
    "Loss",
    "Operator",
    "Property",
    "broken",
    "dropping",
    "in_phases",
    "in_row",
]
