"""Models, tokens, prices and budgets: the size of a text, the window of a model, the price of a call.

Everything works offline: tokenizer, windows and prices come with the packages. Counts are exact for OpenAI's models and
estimates with a stated error bound for all others.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.tokens.budget import BUDGET_KEYS, SAFETY_BUFFER, Budget
    from palaver.tokens.catalogue import ModelInfo, model_info
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
    from palaver.tokens.names import UnknownModelWarning
    from palaver.tokens.pricing import cost_of

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
    "cost_of",
    "count_block",
    "count_message",
    "count_request",
    "count_tools",
    "counter",
    "model_info",
]

open_door(
    __name__,
    {
        ".budget": "BUDGET_KEYS SAFETY_BUFFER Budget",
        ".catalogue": "ModelInfo model_info",
        ".counting": "Counter ModelCounter count_block count_message count_request count_tools counter",
        ".families": "FAMILIES Family",
        ".names": "UnknownModelWarning",
        ".pricing": "cost_of",
    },
)
