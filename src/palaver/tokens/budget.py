"""Budgets: how much one request may occupy, in the words that the reader is used to.

Every context library divides a model's window in its own words. They all come to one division, in tokens::

    window = answer + buffer + limit + unused

``answer`` is kept free for what the model writes and ``buffer`` for what counting gets wrong. ``limit`` is what a request may occupy: a policy acts when a view
exceeds it, and then cuts down to between ``target`` and ``limit``. A budget without room for any input raises :class:`~palaver.errors.InfeasibleBudget`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from palaver.errors import InfeasibleBudget, InvalidInput, warn
from palaver.tokens.catalogue import ModelInfo, model_info
from palaver.tokens.names import UnknownModelWarning

SAFETY_BUFFER = 5_000
"""Tokens kept free unless the caller says otherwise, on windows of 15,000 tokens and more."""

_SMALLEST_SHARE = 3
"""The buffer is at most a third of what the model can read."""

_TARGET_SHARE = 2
"""The target is half of the limit unless the caller says otherwise (OpenHands, too, condenses to half)."""

_RATIO = 0.8  # dynamiq, SummarizationConfig: context_usage_ratio
_PI_RESERVE = 16_384  # pi coding agent, compaction settings: reserveTokens
_PI_KEEP_RECENT = 20_000  # the same: keepRecentTokens
_OPENCODE_BUFFER = 20_000  # OpenCode, session compaction: buffer in addition to the longest answer
_OPENCODE_ANSWER = 32_000  # OpenCode, provider/transform.ts: of the longest answer at most so much counts
_USUAL_ANSWER = 16_384
_ANSWER_SHARE = 4
"""Unless the caller says otherwise, a quarter of the window and at most 16,384 tokens are kept for the answer."""

_TRUST = 20_000
"""How many tokens a count weighs against what a provider reports."""

_STRAY = 2.0
"""A report that differs from the count by more than this factor corrects by this factor."""

_STEPS = 16
"""Corrections are rounded up to a sixteenth, so that a cut does not move with every report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one request may occupy.

    ``Budget(max_tokens=32_000)`` is the plain form: 32,000 tokens less the buffer. The other constructors use the options of other libraries, and
    :meth:`parse` reads a configuration in any of them.

    Attributes:
        max_tokens: The window: what the request and its answer may occupy together, in tokens, at least 1.
        reserve: Tokens of it kept for the answer.
        safety_buffer: Tokens kept free for what counting gets wrong; at most a third of what the model can read.
        max_input: The most that the model reads, however short the answer; None for no such limit.
        target_tokens: Down to about how many tokens a policy cuts; below the limit. None for half of the limit.
        keep_recent: Tokens at the end of a dialog that a policy leaves alone.
        keep_last: Messages at the end of a dialog that a policy leaves alone.
        max_bytes: The largest request body in bytes, media included as they are sent; None for no limit.
        max_media: The most images and sounds in one request; None for no limit.
    """

    max_tokens: int
    reserve: int = 0
    safety_buffer: int = SAFETY_BUFFER
    max_input: int | None = None
    target_tokens: int | None = None
    keep_recent: int = 0
    keep_last: int = 0
    max_bytes: int | None = None
    max_media: int | None = None

    def __post_init__(self) -> None:
        """Check every figure.

        Raises:
            InvalidInput: A figure is not a whole number or out of bounds, or the target is not below the limit.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        for name in ("reserve", "safety_buffer", "keep_recent", "keep_last"):
            _check(name, getattr(self, name), least=0)
        for name in ("max_input", "max_bytes", "max_media", "target_tokens"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), least=0 if name in {"max_media", "target_tokens"} else 1)
        _check("max_tokens", self.max_tokens, least=1)
        _check_reserve(self.reserve, self.max_tokens)
        if self.target_tokens is not None and self.target_tokens >= self.limit:
            raise InvalidInput(
                f"The target is {self.target_tokens:,} tokens, and the limit is {self.limit:,}.",
                hint="Set a target below the limit.",
            )

    @property
    def buffer(self) -> int:
        """Tokens kept free: ``safety_buffer``, or less on a small window."""
        return min(self.safety_buffer, self._readable // _SMALLEST_SHARE)

    @property
    def limit(self) -> int:
        """What a request may occupy, in tokens: instructions, tool schemas, messages and media. At least 1."""
        return self._readable - self.buffer

    @property
    def target(self) -> int:
        """Down to about how many tokens a policy cuts, below the limit."""
        return self.limit // _TARGET_SHARE if self.target_tokens is None else self.target_tokens

    @property
    def _readable(self) -> int:
        """What the model can read if it is to answer, in tokens."""
        left = self.max_tokens - self.reserve
        return left if self.max_input is None else min(left, self.max_input)

    def with_limit(self, tokens: int) -> Budget:
        """Return the same budget with another limit, at least 1, and the target in the same proportion."""
        limit = max(tokens, 1)
        target = None if self.target_tokens is None else min(self.target_tokens * limit // self.limit, limit - 1)
        return replace(self, max_tokens=limit, reserve=0, safety_buffer=0, max_input=None, target_tokens=target)

    def corrected(self, counted: int, reported: int) -> Budget:
        """Return the budget in counted tokens that is as large as this one in the provider's.

        A report of fewer tokens than were counted makes no room: a limit that somebody set also applies to the count that they see.

        Args:
            counted: What the last request counted, in tokens.
            reported: What the provider said that it read of it, cached or not; 0 where it said nothing.
        """
        if reported <= counted or counted <= 0:
            return self
        most = min(reported, counted * _STRAY)
        factor = math.ceil((_TRUST + most) / (_TRUST + counted) * _STEPS) / _STEPS
        return self.with_limit(int(self.limit / factor))

    # --- the words of others ----------------------------------------------------------------------------------------------

    @classmethod
    def of_input(cls, tokens: int) -> Budget:
        """Return a budget with a limit and nothing kept aside."""
        return cls(max_tokens=tokens, safety_buffer=0)

    @classmethod
    def from_window(
        cls,
        model: str | ModelInfo,
        *,
        max_tokens: int | None = None,
        reserve: int | None = None,
        safety_buffer: int = SAFETY_BUFFER,
    ) -> Budget:
        """Return the window of a model, with room for its answer.

        Args:
            model: The model. An unknown one has a default window, and an :class:`UnknownModelWarning` says so.
            max_tokens: A smaller window, less only the buffer. The answer has its own room after it, as far as the model's window allows; a known window is never
                exceeded.
            reserve: Tokens for the answer. Default: the longest answer, at most a quarter of the window and 16,384.
            safety_buffer: Tokens kept free.

        Raises:
            InvalidInput: A figure is out of bounds.
            InfeasibleBudget: The answer leaves no token of the model's window for any input.
        """
        info = info_of(model)
        if max_tokens is not None:
            _check("max_tokens", max_tokens, least=1)
        if reserve is not None:
            _check("reserve", reserve, least=0)
            _check_reserve(reserve, info.context_window)
        else:
            reserve = min(info.max_output or _USUAL_ANSWER, _USUAL_ANSWER, info.context_window // _ANSWER_SHARE)
        if max_tokens is None:
            if info.warning:
                hint = f"Set the model's own: budget={{'max_tokens': {info.context_window}}}."
                warn(f"{info.warning} {hint}", UnknownModelWarning)
            return cls(
                max_tokens=info.context_window, reserve=reserve, safety_buffer=safety_buffer, max_input=info.max_input
            )
        if not info.known:
            return cls(max_tokens=max_tokens, safety_buffer=safety_buffer)
        most = min(info.max_input, info.context_window - reserve)
        return cls(max_tokens=min(max_tokens, info.context_window), safety_buffer=safety_buffer, max_input=most)

    @classmethod
    def from_ratio(
        cls,
        model: str | ModelInfo | None = None,
        *,
        max_token_context_length: int | None = None,
        context_usage_ratio: float = _RATIO,
        preserve_last_messages: int = 2,
    ) -> Budget:
        """Return a budget whose limit is a length or a share of the model's window, whichever is less (dynamiq's options).

        Args:
            model: The model, or None to go by the length alone.
            max_token_context_length: The length in tokens, or None to go by the share alone.
            context_usage_ratio: The share, more than 0 and at most 1.
            preserve_last_messages: Messages at the end to leave alone.

        Raises:
            InvalidInput: The share is out of range, or there is neither a model nor a length.
        """
        if type(context_usage_ratio) not in {int, float} or not 0 < context_usage_ratio <= 1:
            raise InvalidInput(
                f"context_usage_ratio is {context_usage_ratio!r}.", hint="Set a share of the window: 0 < ratio <= 1."
            )
        limits = []
        if max_token_context_length is not None:
            _check("max_token_context_length", max_token_context_length, least=1)
            limits.append(max_token_context_length)
        if model is not None:
            info = info_of(model)
            limits += [int(info.context_window * context_usage_ratio), info.max_input]
        if not limits:
            raise InvalidInput(
                "context_usage_ratio is a share of a model's window, but there is no model.",
                hint="Pass the model, or max_token_context_length.",
            )
        return cls(max_tokens=min(limits), safety_buffer=0, keep_last=preserve_last_messages)

    @classmethod
    def from_reserve(
        cls, model: str | ModelInfo, *, reserve: int | None = None, keep_recent: int | None = None
    ) -> Budget:
        """Return a budget that keeps tokens for the answer and leaves the newest ones alone (pi's options).

        Args:
            model: The model.
            reserve: Tokens for the answer. Default: 16,384, at most half the window.
            keep_recent: Tokens to leave alone. Default: 20,000, at most a quarter of the window.
        """
        info = info_of(model)
        return cls(
            max_tokens=info.context_window,
            reserve=min(_PI_RESERVE, info.context_window // 2) if reserve is None else reserve,
            safety_buffer=0,
            max_input=info.max_input,
            keep_recent=min(_PI_KEEP_RECENT, info.context_window // 4) if keep_recent is None else keep_recent,
        )

    @classmethod
    def from_headroom(cls, model: str | ModelInfo, *, buffer: int = _OPENCODE_BUFFER) -> Budget:
        """Return a budget with a buffer and the model's longest answer, at most 32,000 tokens and half the window (OpenCode's options)."""
        info = info_of(model)
        answer = min(info.max_output or _USUAL_ANSWER, _OPENCODE_ANSWER, info.context_window // 2)
        return cls(max_tokens=info.context_window, reserve=answer, safety_buffer=buffer, max_input=info.max_input)

    @classmethod
    def parse(cls, config: BudgetLike | None, model: str | ModelInfo | None = None) -> Budget:
        """Read a budget from a configuration.

        Args:
            config: A budget; a number of tokens, which is the limit (:meth:`of_input`), but never more than a known model can read; None for the model's
                window; or keys in any of the vocabularies (``palaver.tokens.BUDGET_KEYS``). The first of these words that is there decides how the window is
                divided, and every other word replaces one figure: ``max_token_context_length`` and ``context_usage_ratio`` (:meth:`from_ratio`),
                ``reserve_tokens`` (:meth:`from_reserve`), ``buffer`` (:meth:`from_headroom`), else :meth:`from_window`.
            model: The model, unless the configuration names one.

        Raises:
            InvalidInput: A key is unknown, a value is out of bounds, or there is neither a window nor a model.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        if isinstance(config, Budget):
            return config
        if config is not None and not isinstance(config, Mapping):
            return _of_number(config, model)
        words: dict[str, Any] = read_words(config or {})
        base = _base(words, words.pop("model", model))
        for word, own in _UNDECIDING.items():
            if word in words:
                words.setdefault(own, words.pop(word))
        return replace(base, **words)  # every value is checked there


BudgetLike: TypeAlias = Budget | int | Mapping[str, object]
"""A budget, the number of tokens that a request may occupy, or a configuration in any vocabulary of `Budget`."""

ANY_MODEL = ModelInfo("", context_window=2**53)
"""A model with room for everything: with it, `Budget.parse` checks a configuration before a model is known."""

_FORMS = (
    "Give a whole number of tokens, at least 1, that the request may occupy; a Budget; "
    'or a dict such as {"max_tokens": 32000} or {"context_usage_ratio": 0.5}.'
)

_UNDECIDING = {"reserve_tokens": "reserve", "buffer": "safety_buffer"}
"""The meaning of deciding words after one that comes before them."""


def _of_number(number: object, model: str | ModelInfo | None) -> Budget:
    """Return the budget whose limit is a number, as far as the model can read it."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidInput(f"The budget is {number!r}.", hint=_FORMS)
    info = None if model is None else info_of(model)
    if info is None or not info.known or number <= info.max_input:
        return Budget.of_input(number)
    return Budget(max_tokens=number, safety_buffer=0, max_input=info.max_input)


def _base(words: dict[str, Any], model: str | ModelInfo | None) -> Budget:
    """Return the budget that the deciding words ask for, and remove those words."""
    ratio = {key: words.pop(key) for key in ("max_token_context_length", "context_usage_ratio") if key in words}
    if ratio:
        if "max_tokens" in words:
            share = next(iter(ratio))
            hint = f"max_token_context_length with context_usage_ratio uses the smaller of the two; {share} alone is of the model's window."
            raise InvalidInput(f"max_tokens and {share} both set the size of the window.", hint=hint)
        return Budget.from_ratio(model, **ratio)
    most: Any = words.get("max_tokens")
    if model is None and most is None:
        raise InvalidInput("There is neither a window nor a model.", hint="Pass max_tokens, or a model.")
    if model is None:
        _check("max_tokens", most, least=1)
    given = ModelInfo("", context_window=most) if model is None else model
    if "reserve_tokens" in words:
        return Budget.from_reserve(given, reserve=words.pop("reserve_tokens"))
    if "buffer" in words:
        return Budget.from_headroom(given, buffer=words.pop("buffer"))
    if model is None:
        return Budget(max_tokens=most, reserve=words.get("reserve", 0))
    return Budget.from_window(model, max_tokens=words.pop("max_tokens", None), reserve=words.pop("reserve", None))


def info_of(model: str | ModelInfo) -> ModelInfo:
    """Return a model's data, looked up if it is a name."""
    if not isinstance(model, str | ModelInfo):
        raise InvalidInput(f"The model is {model!r}.", hint="Pass a model's name.")
    return model if isinstance(model, ModelInfo) else model_info(model)


def _check_reserve(reserve: int, window: int) -> None:
    """Raise InfeasibleBudget where the answer leaves no token for any input."""
    if reserve >= window:
        needed = {"answer": reserve, "input": 1}
        raise InfeasibleBudget(
            window, sum(needed.values()), needed, hint="Reserve less for the answer, or use a larger window."
        )


def _check(name: str, value: object, *, least: int) -> None:
    """Raise InvalidInput unless a value is a whole number that is large enough."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name} is {value!r}.", hint=f"Give a whole number of at least {least}.")


_WORDS: Mapping[str, tuple[str, ...]] = {
    # palaver's own word, and after it everybody else's for the same thing
    "model": ("model_name",),
    "max_tokens": ("window", "context_window"),
    "reserve": ("max_output", "max_output_tokens", "output_reserve"),
    "safety_buffer": (),
    "keep_recent": ("keep_recent_tokens", "max_preserved_tokens"),
    "keep_last": ("preserve_last_messages",),
    "max_token_context_length": (),
    "context_usage_ratio": (),
    "reserve_tokens": (),
    "buffer": ("reserved",),
    "target_tokens": ("target",),
    "max_bytes": (),
    "max_media": ("max_images",),
}

BUDGET_KEYS = frozenset(_WORDS) | {word for others in _WORDS.values() for word in others}
"""Every key a configuration may have, in snake case; camel case and upper case are read as the same."""

_MEANING = {word: own for own, others in _WORDS.items() for word in (own, *others)}


def read_words(config: Mapping[str, object]) -> dict[str, object]:
    """Translate a configuration into palaver's own words.

    A value of None counts as absent.

    Args:
        config: Keys in any of the vocabularies, also mixed; ``reserveTokens`` and ``SAFETY_BUFFER`` are read as well.

    Returns:
        The values by palaver's own words.

    Raises:
        InvalidInput: A key is unknown (the error names the closest ones), or two keys for one thing have different values.
    """
    said: dict[str, object] = {}
    for key, value in config.items():
        meaning = _MEANING.get(_snake(key))
        if meaning is None:
            close = difflib.get_close_matches(_snake(key), sorted(BUDGET_KEYS), n=3, cutoff=0.5)
            known = ", ".join(close or sorted(BUDGET_KEYS))
            raise InvalidInput(
                f"{key!r} is not a word for a budget.", hint=f"{'Close' if close else 'Known'}: {known}."
            )
        if value is None:
            continue
        if said.setdefault(meaning, value) != value:
            raise InvalidInput(f"{key!r} is {value!r}, and another word for the same is {said[meaning]!r}.")
    return said


def _snake(key: str) -> str:
    """Write a key in snake case."""
    if key.isupper():
        return key.lower()
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).replace("-", "_").lstrip("_")
