"""Models, tokens, prices and budgets: the size of a text, the window of a model, the price of a call.

Everything works offline: tokenizer, windows and prices come with the packages. Counts are exact for OpenAI's models and
estimates with a stated error bound for all others.
"""

from palaver.tokens.budget import BUDGET_KEYS, SAFETY_BUFFER, Budget
from palaver.tokens.catalogue import ModelInfo, UnknownModelWarning, model_info
from palaver.tokens.counting import (
    Counter,
    ModelCounter,
    count_block,
    count_message,
    count_request,
    count_tools,
    counter,
)
from palaver.tokens.families import FAMILIES, Family

__all__ = [
    "BUDGET_KEYS",
    "FAMILIES",
    "SAFETY_BUFFER",
    "Budget",
    "Counter",
    "Family",
    "ModelCounter",
    "ModelInfo",
    "UnknownModelWarning",
    "count_block",
    "count_message",
    "count_request",
    "count_tools",
    "counter",
    "model_info",
]
