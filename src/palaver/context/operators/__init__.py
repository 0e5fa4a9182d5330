"""Operators: the small pure functions that policies are made of."""

from palaver.context.operators.drop_oldest import DROP_OLDEST
from palaver.context.operators.offload import OFFLOAD
from palaver.context.operators.operator import Edit, Loss, Operator, in_phases

__all__ = ["DROP_OLDEST", "OFFLOAD", "Edit", "Loss", "Operator", "in_phases"]
