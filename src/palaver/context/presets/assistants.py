"""Presets of assistants that are not bound to code: Manus, CAT, Letta, dynamiq."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

from palaver.context.cut import Phase
from palaver.context.layout import Layout
from palaver.context.operators import clear, drop
from palaver.context.parameters import SWITCH, Parameters, count, require, share
from palaver.context.presets import Preset, newest_outputs, outputs_in
from palaver.context.presets.own import REFERENCE
from palaver.context.summary import HEADINGS
from palaver.errors import InvalidInput, require_known
from palaver.tokens import Budget, ModelInfo
from palaver.tokens.budget import info_of, read_words


def _after_task(layout: Layout) -> int:
    """Return the index after the human's first message, if the conversation begins with it; else 0."""
    return 1 if layout.beginning and layout.humans[:1] == [0] else 0


# --- Manus, CAT, Letta --------------------------------------------------------------------------------------------------


class Manus(Preset):
    """Make the oldest half of the results compact; else fold the oldest exchanges. The record has the newest plan.

    Source: Manus, "Context Engineering for AI Agents" (manus.im/blog), and the notes of the talk on it (rlancemartin.github.io, 2025-10-15): what can be brought back goes first;
    the oldest half of the calls is made compact and the newest stay in full; a summary only when that yields little. No sizes are published.

    Attributes:
        share: The share of the results that stays in full.
    """

    name = "manus"
    parameters: ClassVar[Parameters] = MappingProxyType({"share": share()})
    headings = ("Goal", "What was done", "Files", "Findings", "Errors", "Where the work stands", "Next step")
    share: float = 0.5

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Compact; then summarise."""
        kept = max(int(sum(map(outputs_in, layout.view.exchanges)) * self.share), 1)
        return (Phase(clear, stop=newest_outputs(layout, kept)), Phase(drop))


class CAT(Preset):
    """Keep the task as it was said, a condensed memory of the past, and the last turns in full.

    Source: "Context as a Tool", arXiv 2512.22087: a workspace of stable task, condensed memory and turns of high fidelity. No sizes are published.
    """

    name = "cat"
    headings = ("Task", "What was found", "What was changed", "What failed", "What is open")

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Fold what is neither task nor last turns."""
        return (Phase(partial(drop, first=_after_task(layout))),)


class Letta(Preset):
    """When the window is full, evict the oldest part into the record.

    Source: letta-ai/letta 0.16.1, letta/services/summarizer/summarizer_sliding_window.py: acts at the whole window, sliding_window_percentage 0.30: at most 70 % of the window
    is kept.

    Attributes:
        evict: The share of the window that is evicted, more than 0 and less than 1.
    """

    name = "letta"
    words: ClassVar = {"safety_buffer": 0}
    parameters: ClassVar[Parameters] = MappingProxyType({"evict": share(above=True, below=True)})
    headings = ("Summary",)
    evict: float = 0.30

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Evict the oldest."""
        return (Phase(drop, target=int(layout.limit * (1 - self.evict))),)


# --- dynamiq ------------------------------------------------------------------------------------------------------------

_RATIO = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationConfig(Mapping[str, Any]):
    """The configuration of dynamiq, with its names and defaults. It is a mapping with `type`: pass it wherever a policy's configuration is accepted.

    Attributes:
        enabled: Whether the policy does anything.
        max_token_context_length: Tokens beyond which it acts, or None to go by the ratio alone.
        context_usage_ratio: The share of the model's window beyond which it acts, more than 0 and at most 1.
        preserve_last_messages: Messages at the end that stay verbatim.
        incremental: Whether a later summary starts from the one before; otherwise everything is summarised again.
        compaction_enabled: Whether tool outputs become references first.
        compaction_token_threshold: Outputs of more tokens do.
        max_preserved_tokens: Tokens at the end that stay verbatim, in place of messages, or None.
    """

    enabled: bool = False
    max_token_context_length: int | None = None
    context_usage_ratio: float = _RATIO
    preserve_last_messages: int = 2
    incremental: bool = True
    compaction_enabled: bool = True
    compaction_token_threshold: int = 500
    max_preserved_tokens: int | None = None

    def __new__(cls, **given: object) -> Self:
        """Refuse a name that is not a field.

        Raises:
            InvalidInput: There is no such field.
        """
        require_known("SummarizationConfig has no field", given, _FIELDS)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InvalidInput: A ratio is out of range, or a count is negative.
        """
        require(_FIELDS, {name: getattr(self, name) for name in _FIELDS})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a value of a configuration
        """Return a value of the configuration, or `dynamiq` for `type`."""
        return Dynamiq.name if name == "type" else asdict(self)[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over `type` and the names of the fields."""
        return iter(("type", *_FIELDS))

    def __len__(self) -> int:
        """Return the number of names."""
        return 1 + len(_FIELDS)


_FIELDS: Parameters = MappingProxyType(
    {
        "enabled": SWITCH,
        "max_token_context_length": count(1, none=True),
        "context_usage_ratio": share(above=True),
        "preserve_last_messages": count(),
        "incremental": SWITCH,
        "compaction_enabled": SWITCH,
        "compaction_token_threshold": count(),
        "max_preserved_tokens": count(none=True),
    }
)


class Dynamiq(Preset):
    """Make old outputs references; check again; only then summarise all but the original request and the last messages.

    Source: dynamiq-ai/dynamiq, RFC "Long-Running Conversational Agent Support", changes 3 to 5, and SummarizationConfig: context_usage_ratio 0.8, preserve_last_messages 2,
    compaction_token_threshold 500. Releases since count max_preserved_tokens (10,000) in place of messages (history_manager.py).

    Who names the policy wants it: `enabled` is true unless said otherwise.

    Attributes:
        config: The configuration.
    """

    name = "dynamiq"
    headings = HEADINGS

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        config: SummarizationConfig | None = None,
        **words: Any,  # noqa: ANN401 - the fields of the configuration, and further words of a budget
    ) -> None:
        """Make the policy for a model, from a configuration or its fields.

        Raises:
            InvalidInput: A word is unknown or its value is out of bounds.
        """
        if config is not None and not isinstance(config, SummarizationConfig):
            raise InvalidInput(f"config is {config!r}.", hint="Pass a SummarizationConfig, or its fields.")
        own = {name: words.pop(name) for name in _FIELDS if name in words}
        base = asdict(config) if config is not None else {"enabled": True}
        self.config = SummarizationConfig(**{**base, **own})
        self.enabled, self.incremental = self.config.enabled, self.config.incremental
        said = own if config is None else base | own
        limits = {name: getattr(self.config, name) for name in ("max_token_context_length", "context_usage_ratio")}
        if max_tokens is not None and not any(said.get(name) is not None for name in limits):
            limits = {}  # a window without a ratio is what the request may occupy
        super().__init__(model_name, max_tokens, **limits, **words)

    def budget_for(self, model: str | ModelInfo) -> Budget:
        """Return the lesser of the length and the share of the window, which is the model's or `max_tokens`."""
        words = read_words(self._words)
        asked = self.model_name or model
        info = info_of(asked) if asked else None
        if "max_tokens" in words and "context_usage_ratio" in words:
            most = Budget.parse({"max_tokens": words.pop("max_tokens")}).max_tokens
            known = info if info is not None and info.known else ModelInfo("", context_window=most)
            info = replace(known, context_window=min(known.context_window, most), max_input=min(known.max_input, most))
        return Budget.parse(words, info)

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Compact; then summarise."""
        config = self.config
        if config.max_preserved_tokens is None:
            stop = layout.newest_messages(config.preserve_last_messages)
            tail = largest_messages(layout, config.preserve_last_messages)
        else:
            stop, tail = layout.newest(config.max_preserved_tokens), config.max_preserved_tokens
        refer = partial(clear, least=config.compaction_token_threshold, words=REFERENCE)
        summarise = Phase(partial(drop, first=_after_task(layout)), target=layout.fixed + tail, stop=stop)
        return (Phase(refer, stop=stop), summarise) if config.compaction_enabled else (summarise,)


def largest_messages(layout: Layout, messages: int) -> int:
    """Return the most tokens of this many messages in a row, by recorded bytes: it never shrinks as the log grows."""
    most = size = number = start = 0
    exchanges = layout.view.exchanges
    for exchange in exchanges if messages else ():
        size, number = size + exchange.size, number + exchange.messages
        while number - exchanges[start].messages >= messages:
            size, number = size - exchanges[start].size, number - exchanges[start].messages
            start += 1
        most = max(most, size)
    return int(most / layout.meter.recorded_per_unit)
