"""Operators: the small pure functions that policies are made of."""

from palaver.context.operators.cap import Cap, cap
from palaver.context.operators.clear import Clear, Mask, clear, mask
from palaver.context.operators.drop_oldest import DROP_OLDEST, Cut, dropping
from palaver.context.operators.media import DEGRADE_MEDIA
from palaver.context.operators.offload import OFFLOAD, offload
from palaver.context.operators.operator import Edit, Loss, Operator, in_phases, in_row, together
from palaver.context.operators.pause import after_pause
from palaver.context.operators.properties import ALWAYS, Property, broken
from palaver.context.operators.put_back import PUT_BACK, RECALLING, recalled_first
from palaver.context.operators.reasoning import DROP_REASONING
from palaver.context.operators.stale import ASKED_AGAIN, DEDUPE, DROP_SUPERSEDED, OUTDATED_READS, PURGE_FAILED

__all__ = [
    "ALWAYS",
    "ASKED_AGAIN",
    "DEDUPE",
    "DEGRADE_MEDIA",
    "DROP_OLDEST",
    "DROP_REASONING",
    "DROP_SUPERSEDED",
    "OFFLOAD",
    "OUTDATED_READS",
    "PURGE_FAILED",
    "PUT_BACK",
    "RECALLING",
    "Cap",
    "Clear",
    "Cut",
    "Edit",
    "Loss",
    "Mask",
    "Operator",
    "Property",
    "after_pause",
    "broken",
    "cap",
    "clear",
    "dropping",
    "in_phases",
    "in_row",
    "mask",
    "offload",
    "recalled_first",
    "together",
]
