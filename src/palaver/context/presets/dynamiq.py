"""The preset `dynamiq`: tool outputs become references, and only if that is not enough the middle becomes a summary.

Source: dynamiq-ai/dynamiq, dynamiq/nodes/agents/utils.py, SummarizationConfig, and the RFC "Long-Running Conversational Agent Support", changes 3 to
5: context_usage_ratio 0.8, preserve_last_messages 2, compaction_token_threshold 500; the layout is prefix, summary, last messages. Its releases
since count max_preserved_tokens 10,000 in the place of messages, and pin the original request; both are understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from palaver.context.ground import Room
from palaver.context.keeps import first_asks
from palaver.context.ledger import Ledger
from palaver.context.operators import Cut, Operator, dropping, in_phases, offload
from palaver.context.parameters import Parameters, count, ratio, require, switch
from palaver.context.presets.preset import Preset, Recipe, tail
from palaver.context.record import RecordOf
from palaver.context.summary.request import HEADINGS
from palaver.errors import InvalidInput
from palaver.tokens import Budget, ModelInfo, model_info
from palaver.tokens.vocabulary import read_words

__all__ = ["Dynamiq", "SummarizationConfig"]

_RATIO = 0.8
_LIMITS = ("max_token_context_length", "context_usage_ratio")
"""Its words for beyond how many tokens something is done: beyond either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationConfig:
    """The original's configuration, with its names and defaults.

    Attributes:
        enabled: Whether anything is done.
        max_token_context_length: Tokens beyond which something is done, or None to go by the ratio alone.
        context_usage_ratio: The share of the model's window beyond which something is done, more than 0 and at most 1.
        preserve_last_messages: Messages at the end that stay verbatim.
        incremental: Whether a later summary goes on from the one before; else it is made anew from the sources.
        compaction_enabled: Whether tool outputs become references first.
        compaction_token_threshold: Outputs of more tokens do.
        max_preserved_tokens: Tokens at the end that stay verbatim, in the place of messages, or None.
        token_budget_ratio: Which share of its model's window the summary's own input may have.
    """

    enabled: bool = False
    max_token_context_length: int | None = None
    context_usage_ratio: float = _RATIO
    preserve_last_messages: int = 2
    incremental: bool = True
    compaction_enabled: bool = True
    compaction_token_threshold: int = 500
    max_preserved_tokens: int | None = None
    token_budget_ratio: float = 0.75

    def __post_init__(self) -> None:
        """Refuse what is none.

        Raises:
            InvalidInput: A ratio is out of range, or a count is negative.
        """
        require(_FIELDS, {name: getattr(self, name) for name in _FIELDS})


_FIELDS: Parameters = MappingProxyType(
    {
        "enabled": switch(),
        "max_token_context_length": count(1, none=True),
        "context_usage_ratio": ratio(),
        "preserve_last_messages": count(),
        "incremental": switch(),
        "compaction_enabled": switch(),
        "compaction_token_threshold": count(),
        "max_preserved_tokens": count(none=True),
        "token_budget_ratio": ratio(),
    }
)


class Dynamiq(Preset):
    """Compacts outputs, checks again, and only then summarises the middle.

    Whoever names the policy wants it, so `enabled` is true here unless said otherwise.

    Attributes:
        config: The configuration.
    """

    name: ClassVar[str] = "dynamiq"
    headings: ClassVar[tuple[str, ...]] = HEADINGS

    def __init__(
        self,
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        config: SummarizationConfig | None = None,
        **words: Any,  # noqa: ANN401 - the fields of the configuration, and further words of a budget
    ) -> None:
        """Make the policy for a model, from a configuration or from its words.

        Raises:
            InvalidInput: A word is not known, or its value cannot be used.
        """
        if config is not None and not isinstance(config, SummarizationConfig):
            raise InvalidInput(
                f"config is {config!r}.", hint="It is a SummarizationConfig; or say its words themselves."
            )
        own = {name: words.pop(name) for name in SummarizationConfig.__dataclass_fields__ if name in words}
        base = asdict(config) if config is not None else {"enabled": True}
        self.config = SummarizationConfig(**{**base, **own})
        said = own if config is None else base | own
        self._limited = any(said.get(word) is not None for word in _LIMITS)
        super().__init__(model_name, max_tokens, **{**self._limits(said), **words})

    def _limits(self, said: Mapping[str, object]) -> Mapping[str, object]:
        """Give what the configuration says of a budget, in its words."""
        config = self.config
        limits: dict[str, object] = {word: getattr(config, word) for word in (*_LIMITS, "max_preserved_tokens")}
        if "preserve_last_messages" in said:
            limits["preserve_last_messages"] = config.preserve_last_messages
        return limits

    @cached_property
    def budget(self) -> Budget:
        """What one request may occupy: the lesser of the length and the share of the window, as in the original.

        The window is the model's or `max_tokens`, whichever is less. A default that nobody said gives way to `max_tokens`; a whole configuration was said.

        Raises:
            InvalidInput: The policy was made without a model and without a window.
        """
        words = read_words(self._words)
        if "max_tokens" not in words:
            return super().budget
        if not self._limited:
            return Budget.parse(
                {word: value for word, value in words.items() if word not in _LIMITS}, self.model_name or None
            )
        most = Budget.parse({"max_tokens": words.pop("max_tokens")}).max_tokens
        return Budget.parse(words, _windowed(self.model_name, most))

    @property
    def enabled(self) -> bool:
        """Whether the configuration says that anything is done."""
        return self.config.enabled

    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Compact, then summarise; what stays verbatim is the same for both."""
        config = self.config
        if config.max_preserved_tokens is not None:
            last, recent = 0, config.max_preserved_tokens
            room, cut = tail(replace(room, keep_last=0, keep_recent=0), recent), Cut(border=False)
        else:
            said = bool(room.keep_last) or "keep_last" in self.left_alone
            last, recent = room.keep_last if said else config.preserve_last_messages, 0
            room, cut = replace(room, keep_last=last), Cut(border=False, messages=last)
        first: tuple[Operator, ...] = ()
        if config.compaction_enabled:
            first = (offload(config.compaction_token_threshold, last, recent),)
        return Recipe(
            room=room,
            edit=in_phases(*first, dropping(cut)),
            stand_in=RecordOf(ledger.sources, ledger.constraints),
            keeps=(first_asks(),),
        )


def _windowed(model_name: str, most: int) -> ModelInfo:
    """Give the model with a window of at most so many tokens; of a model that nobody knows, or of none, that is its window."""
    info = model_info(model_name) if model_name else None
    if info is None or not info.known:
        return ModelInfo(model_name, context_window=most)
    return replace(info, context_window=min(info.context_window, most), max_input=min(info.max_input, most))
