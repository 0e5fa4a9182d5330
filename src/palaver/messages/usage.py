"""What a provider reports about a model call in addition to its answer: tokens, dollars, log probabilities.

The provider's own record of usage is kept unchanged. The typed attributes mean the same for every provider:

* ``input_tokens`` is everything the model read in the call, cached or not;
* ``cache_read_tokens`` and ``cache_write_tokens`` are parts of it, ``uncached_tokens`` is the rest;
* ``output_tokens`` is everything the model wrote, and ``reasoning_tokens`` is the hidden part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from pydantic_core.core_schema import ValidationInfo

from palaver.messages.frozen import STORED, FrozenDict, freeze, freeze_json
from palaver.messages.value import Value, listed

# The words of all providers for each figure, tried in order; a dot steps into a nested mapping. Sources: OpenAI chat completions
# (platform.openai.com/docs/api-reference/chat/object) and Responses, Codex rollouts; LiteLLM, which adds Anthropic's words while prompt_tokens
# includes them; Anthropic Messages (docs.anthropic.com/en/api/messages, usage); Inspect (inspect.aisi.org.uk, ModelUsage); Gemini
# (ai.google.dev/api/generate-content, UsageMetadata), in JSON and in Python, and its Interactions; pi's Usage type; Gemini CLI chat files; Vercel's SDK, Cline;
# LangChain (input_token_details) and pydantic-ai; ATIF (cached_tokens, extra); palaver's own words.
_INPUT = "prompt_tokens input_tokens promptTokenCount prompt_token_count total_input_tokens input inputTokens"
_ADDED_INPUT = (
    "toolUsePromptTokenCount tool_use_prompt_token_count total_tool_use_tokens tool"  # left out of the figure above
)
_OUTPUT = "completion_tokens output_tokens candidatesTokenCount candidates_token_count total_output_tokens output outputTokens"
_CACHE_READ = (
    "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cache_read_input_tokens prompt_cache_hit_tokens"
    " input_tokens_cache_read cached_input_tokens cache_read_tokens cachedContentTokenCount cached_content_token_count"
    " total_cached_tokens cacheRead cached cached_tokens cachedInputTokens cacheReadTokens input_token_details.cache_read"
)
_CACHE_WRITE = (
    "prompt_tokens_details.cache_creation_tokens cache_creation_input_tokens input_tokens_cache_write cache_write_tokens"
    " cacheWrite cacheWriteTokens input_token_details.cache_creation extra.cache_creation_input_tokens"
)
_REASONING = (
    "completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens reasoning_output_tokens reasoning_tokens"
    " thoughtsTokenCount thoughts_token_count total_thought_tokens reasoning thoughts reasoningTokens"
    " output_token_details.reasoning output_reasoning_tokens extra.reasoning_tokens"
)
_TOTAL = "total_tokens totalTokenCount total_token_count totalTokens total"
_CACHED_APART = frozenset({
    "cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens_cache_read", "input_tokens_cache_write",
    "cacheRead", "cacheWrite",
})  # fmt: skip
"""Words that count tokens which the input leaves out, unless it is called `prompt_tokens`."""
_THOUGHTS_APART = frozenset({"thoughtsTokenCount", "thoughts_token_count", "total_thought_tokens", "thoughts"})
"""Words that count reasoning which the output leaves out."""


@dataclass(frozen=True, slots=True)
class UsageCost:
    """What a call cost, in US dollars, by kind of token; all zero if unknown."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class InvokeCost:
    """Tokens and US dollars of one call, or of several added up.

    ``prompt_tokens`` includes the cached ones, ``completion_tokens`` the reasoning. The three rates are dollars per token of one
    call; a sum has none. ``estimated`` is the part of ``cost`` that comes from the price list, because the provider gave no dollars.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_prompt_tokens: int = 0
    reasoning_tokens: int = 0
    audio_prompt_tokens: int = 0
    audio_completion_tokens: int = 0
    input_cost_per_token: float = 0.0
    output_cost_per_token: float = 0.0
    cache_read_input_token_cost: float = 0.0
    prompt_cost: float = 0.0
    completion_cost: float = 0.0
    cost: float = 0.0
    estimated: float = 0.0

    def __add__(self, other: InvokeCost) -> InvokeCost:
        """Add tokens and dollars; rates of different calls have no sum and become zero."""
        if not isinstance(other, InvokeCost):
            return NotImplemented
        added = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name not in _RATES
        }
        return InvokeCost(**added)

    def __repr__(self) -> str:
        """Show what is not zero, without the rates."""
        shown = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _RATES}
        return f"InvokeCost({', '.join(f'{name}={round(value, 8)}' for name, value in shown.items() if value)})"


_RATES = frozenset({"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"})


class Usage(FrozenDict):
    """The provider's usage record: a read-only mapping with typed attributes that mean the same for all providers.

    ``usage["input_tokens"]`` is the provider's own figure; ``usage.input_tokens`` is everything the model read. Keywords make a
    record in palaver's own words: ``Usage(input_tokens=10, cost=UsageCost(total=0.2))``. Numbers are tokens, costs dollars.
    """

    __slots__ = ()

    def __init__(self, raw: Mapping[str, Any] | None = None, /, **own: float | UsageCost) -> None:
        """Copy the provider's record, or figures in palaver's own words."""
        figures = {key: asdict(value) if isinstance(value, UsageCost) else value for key, value in own.items()}
        dict.__init__(self, freeze({**(raw or {}), **figures}, "usage"))  # counts and prices: no change to record

    @classmethod
    def _validated(cls, value: object, info: ValidationInfo) -> Usage:
        if isinstance(value, Usage):
            return value
        if isinstance(value, Mapping):
            if not value:
                return NO_USAGE
            frozen = freeze_json(value, info) if info.context is STORED else freeze(dict(value), "usage")
            usage: Usage = dict.__new__(cls)
            dict.update(usage, frozen)
            return usage
        dump = getattr(value, "model_dump", None)  # the usage object of a provider's package
        if callable(dump):
            return cls(dump(mode="json"))
        raise ValueError("usage must be a mapping")

    @property
    def input_tokens(self) -> int:
        """Everything the model read in this call, cached or not."""
        plain = self._count(_INPUT) + self._count(_ADDED_INPUT)
        cached = self.cache_read_tokens + self.cache_write_tokens
        apart = "prompt_tokens" not in self and not _CACHED_APART.isdisjoint(self)
        return plain + cached if apart or cached > plain else plain

    @property
    def output_tokens(self) -> int:
        """Everything the model wrote in this call, reasoning included."""
        apart = 0 if _THOUGHTS_APART.isdisjoint(self) else self.reasoning_tokens
        return self._count(_OUTPUT) + apart

    @property
    def cache_read_tokens(self) -> int:
        """The part of ``input_tokens`` that came from the provider's cache."""
        return self._count(_CACHE_READ)

    @property
    def cache_write_tokens(self) -> int:
        """The part of ``input_tokens`` that was written to the provider's cache."""
        return self._count(_CACHE_WRITE)

    @property
    def uncached_tokens(self) -> int:
        """The part of ``input_tokens`` that was neither read from nor written to the cache."""
        return max(0, self.input_tokens - self.cache_read_tokens - self.cache_write_tokens)

    @property
    def reasoning_tokens(self) -> int:
        """The part of ``output_tokens`` that went into reasoning, as far as the provider reports it."""
        return self._count(_REASONING)

    @property
    def total_tokens(self) -> int:
        """The provider's total, else input and output together."""
        return self._count(_TOTAL) or self.input_tokens + self.output_tokens

    @property
    def context_tokens(self) -> int:
        """What this one request and its answer occupied of the model's window.

        The record of a turn with several calls may hold sums over them while its total is that of the last one, so a total smaller
        than the sum of the parts is the right one.
        """
        parts = self.input_tokens + self.output_tokens
        return min(self.total_tokens, parts) if parts else self.total_tokens

    @property
    def cost(self) -> UsageCost:
        """Dollars as recorded; a bare number is the total."""
        cost = self.get("cost")
        if isinstance(cost, Mapping):
            return UsageCost(
                input=_dollars(cost, "input"),
                output=_dollars(cost, "output"),
                cache_read=_dollars(cost, "cache_read", "cacheRead"),
                cache_write=_dollars(cost, "cache_write", "cacheWrite"),
                total=_dollars(cost, "total"),
            )
        total = _dollars(self, "cost", "response_cost")
        return UsageCost(input=_dollars(self, "prompt_cost"), output=_dollars(self, "completion_cost"), total=total)

    @property
    def invoke_cost(self) -> InvokeCost:
        """The same figures as an InvokeCost, which can be added up."""
        cost = self.cost
        prompt_cost = cost.input + cost.cache_read + cost.cache_write
        read, wrote = self.input_tokens, self.output_tokens
        return InvokeCost(
            prompt_tokens=read,
            completion_tokens=wrote,
            total_tokens=self._count(_TOTAL) or read + wrote,
            cached_prompt_tokens=self.cache_read_tokens,
            reasoning_tokens=self.reasoning_tokens,
            audio_prompt_tokens=self._count("prompt_tokens_details.audio_tokens"),
            audio_completion_tokens=self._count("completion_tokens_details.audio_tokens"),
            input_cost_per_token=_dollars(self, "input_cost_per_token"),
            output_cost_per_token=_dollars(self, "output_cost_per_token"),
            cache_read_input_token_cost=_dollars(self, "cache_read_input_token_cost"),
            prompt_cost=prompt_cost,
            completion_cost=cost.output,
            cost=cost.total or prompt_cost + cost.output,
        )

    def _count(self, paths: str) -> int:
        """Return the first positive number at one of the paths, else 0."""
        for path in paths.split():
            name, _, inner = path.partition(".")
            value: Any = self.get(name)
            if inner:
                value = value.get(inner) if isinstance(value, Mapping) else None
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return int(value)
        return 0


def _dollars(record: Mapping[str, Any], *names: str) -> float:
    """Return the first number under one of the names, else 0."""
    for name in names:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return 0.0


NO_USAGE = Usage()
"""The usage of a message without one."""


class TokenLogprob(Value):
    """The log probability of one token, natural logarithm; a bare number or text is read as one."""

    _free: ClassVar[frozenset[str]] = frozenset({"logprob"})  # minus infinity is a log probability, and not JSON

    token: str = ""
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None
    top_logprobs: tuple[TokenLogprob, ...] = ()

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values | {"top_logprobs": read_logprobs(values.get("top_logprobs"))}


def read_logprobs(items: object) -> tuple[Any, ...]:
    """Return log probabilities as any provider writes them in a form that `TokenLogprob` validates.

    Raises:
        InvalidMessage: They are not a list.
    """
    return tuple(map(_logprob, listed(items, "Log probabilities")))


def _logprob(item: Any) -> Any:  # noqa: ANN401 - whatever a provider gave
    if isinstance(item, TokenLogprob | dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"logprob": item}
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else {"token": str(item)}
