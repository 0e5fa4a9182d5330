"""Models, tokens, prices and budgets: how large a thing is, what a model holds, what a call costs."""

from palaver.tokens.catalogue import ModelInfo, model_info
from palaver.tokens.counting import (
    Counter,
    ModelCounter,
    calibrate,
    count_block,
    count_message,
    count_request,
    count_tools,
    counter,
)
from palaver.tokens.families import FAMILIES, Family

__all__ = [
    "FAMILIES",
    "Counter",
    "Family",
    "ModelCounter",
    "ModelInfo",
    "calibrate",
    "count_block",
    "count_message",
    "count_request",
    "count_tools",
    "counter",
    "model_info",
]
