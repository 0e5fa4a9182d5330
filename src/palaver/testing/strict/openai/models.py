"""The models of OpenAI, and what each accepts.

Read from https://developers.openai.com/api/docs/guides/latest-model, …/reasoning and …/keep-prefix-unchanged, in November 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["MODELS", "OpenAIModel", "model_named"]


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """A model.

    Attributes:
        name: Its name, without a date.
        family: The family within which reasoning is read; empty for a model without reasoning.
        none: Whether effort `none` is accepted.
        preserved: Whether reasoning is bound to what precedes it.
        chat_tools: Whether chat completions accept functions with reasoning.
        idle_sampling: Whether sampling parameters are accepted without reasoning, which is then the default (vercel/ai#10932).
    """

    name: str
    family: str
    none: bool = False
    preserved: bool = False
    chat_tools: bool = False
    idle_sampling: bool = False

    def samples(self, effort: object) -> bool:
        """Return whether sampling parameters are accepted with an effort."""
        return not self.family or (self.idle_sampling and effort in (None, "none"))

    @property
    def efforts(self) -> tuple[str, ...]:
        """The values of `reasoning.effort` that it accepts."""
        return (("none",) if self.none else ()) + ("minimal", "low", "medium", "high", "xhigh", "max")


_ROWS: Final = (
    OpenAIModel("gpt-6.2-astra", "gpt-6.2", preserved=True),
    OpenAIModel("gpt-6.2-sol", "gpt-6.2", preserved=True),
    OpenAIModel("gpt-6.1-sol", "gpt-6.1"),
    OpenAIModel("gpt-6.1-terra", "gpt-6.1", none=True),
    OpenAIModel("gpt-6-astra", "gpt-6"),
    OpenAIModel("gpt-6-sol", "gpt-6", none=True),
    OpenAIModel("gpt-6-luna", "gpt-6", none=True),
    OpenAIModel("gpt-5.6-sol", "gpt-5.6", none=True),
    OpenAIModel("gpt-5.6-terra", "gpt-5.6", none=True),
    OpenAIModel("gpt-5.6-luna", "gpt-5.6", none=True),
    OpenAIModel("gpt-5.2", "gpt-5", none=True, chat_tools=True, idle_sampling=True),
    OpenAIModel("gpt-5.1", "gpt-5", none=True, chat_tools=True, idle_sampling=True),
    OpenAIModel("gpt-5", "gpt-5", chat_tools=True),
    OpenAIModel("gpt-4.1", "", chat_tools=True),
    OpenAIModel("gpt-4o", "", chat_tools=True),
)
MODELS: Final = {row.name: row for row in _ROWS}
"""The models by name, newest first."""


def model_named(name: str) -> OpenAIModel | None:
    """Return the model of a name, with or without a date."""
    return MODELS.get(re.sub(r"-\d{4}-\d{2}-\d{2}$", "", name))
