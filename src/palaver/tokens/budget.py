"""Budgets: how much one request may occupy, said in whichever words the reader is used to.

Every context library divides a model's window in its own words. They all come to one division, in tokens::

    window = answer + buffer + input + unused

``answer`` is kept free for what the model writes, ``buffer`` for what counting gets wrong, and ``input`` is what a view may
fill. A budget without room for any input cannot be made: that is :class:`~palaver.errors.InfeasibleBudget`, with the division.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.tokens.catalogue import ModelInfo, model_info
from palaver.tokens.vocabulary import read_words

__all__ = ["SAFETY_BUFFER", "Budget"]

SAFETY_BUFFER = 5_000
"""Tokens kept free unless the caller says otherwise, on windows of 15,000 tokens and more."""

_SMALLEST_SHARE = 3
"""The buffer never takes more than a third of what the model can read."""

_RATIO = 0.8
_PI_RESERVE = 16_384  # pi coding agent, compaction settings: reserveTokens
_PI_KEEP_RECENT = 20_000  # the same: keepRecentTokens
_OPENCODE_BUFFER = 20_000  # OpenCode, session compaction: buffer beside the longest answer
_OPENCODE_ANSWER = 32_000  # OpenCode, provider/transform.ts: of the longest answer at most so much counts
_USUAL_ANSWER = 16_384
_ANSWER_SHARE = 4
"""Unless the caller says otherwise, a quarter of the window and at most 16,384 tokens are kept for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one request may occupy.

    ``Budget(max_tokens=32_000)`` is the plain form: 32,000 tokens less the buffer. The other constructors take the words of
    other libraries, and :meth:`parse` reads a configuration in any of them.

    Attributes:
        max_tokens: The window: what the request and its answer may occupy together, in tokens, at least 1.
        reserve: Tokens of it kept for the answer.
        safety_buffer: Tokens kept free of what the model can read, for what counting gets wrong. On a small window less is
            kept: at most a third.
        max_input: The most that the model reads, however short the answer, or None.
        keep_recent: Tokens at the end of a dialog that a policy should leave alone.
        keep_last: Messages at the end of a dialog that a policy should leave alone.
        max_bytes: The largest request body in bytes, media included as they are sent, or None.
        max_media: The most images and sounds in one request, or None.
    """

    max_tokens: int
    reserve: int = 0
    safety_buffer: int = SAFETY_BUFFER
    max_input: int | None = None
    keep_recent: int = 0
    keep_last: int = 0
    max_bytes: int | None = None
    max_media: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no budget.

        Raises:
            InvalidInput: A figure is no whole number, or negative, or a limit that is not at least 1.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        for name in ("reserve", "safety_buffer", "keep_recent", "keep_last"):
            _check(name, getattr(self, name), least=0)
        for name in ("max_input", "max_bytes", "max_media"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), least=0 if name == "max_media" else 1)
        _check("max_tokens", self.max_tokens, least=1)
        _check_reserve(self.reserve, self.max_tokens)

    @property
    def window(self) -> int:
        """The window, in tokens."""
        return self.max_tokens

    @property
    def buffer(self) -> int:
        """Tokens kept free: ``safety_buffer``, or less on a small window."""
        return min(self.safety_buffer, self._readable // _SMALLEST_SHARE)

    @property
    def for_input(self) -> int:
        """What a request may occupy, in tokens: instructions, tool schemas, messages and media. Always at least 1."""
        return self._readable - self.buffer

    def for_estimate(self, bound: float) -> int:
        """Tell how large an estimate may be, so that the request fits even if the estimate is as wrong as it can be.

        The buffer covers a part of the error already; the rest is taken from the input.

        Args:
            bound: The error bound of the counter, ``ModelCounter.bound``: a fraction of the estimate, at least 0.

        Returns:
            Tokens, at least 1 and at most ``for_input``.
        """
        return max(1, min(self.for_input, int(self._readable / (1 + bound))))

    @property
    def _readable(self) -> int:
        """What the model can read if it is to answer, in tokens."""
        left = self.max_tokens - self.reserve
        return left if self.max_input is None else min(left, self.max_input)

    @property
    def parts(self) -> Mapping[str, int]:
        """The division of the window, in tokens: answer, buffer, input, unused. The parts add up to the window."""
        unused = self.max_tokens - self.reserve - self.buffer - self.for_input
        return MappingProxyType(
            {"answer": self.reserve, "buffer": self.buffer, "input": self.for_input, "unused": unused}
        )

    def fits(self, tokens: int, *, size: int = 0, media: int = 0) -> bool:
        """Tell whether a request fits.

        Args:
            tokens: What it counts.
            size: Its body in bytes.
            media: Its images and sounds.
        """
        return (
            tokens <= self.for_input
            and (self.max_bytes is None or size <= self.max_bytes)
            and (self.max_media is None or media <= self.max_media)
        )

    def require(self, needed: Mapping[str, int]) -> None:
        """Insist that what must be sent fits.

        Args:
            needed: Tokens by what they are for, such as ``{"instructions": 900, "tools": 2_000}``.

        Raises:
            InfeasibleBudget: They are more than ``for_input``; the error has them as its breakdown.
        """
        total = sum(needed.values())
        if total > self.for_input:
            raise InfeasibleBudget(self.for_input, total, needed)

    # --- the words of others ----------------------------------------------------------------------------------------------

    @classmethod
    def of_input(cls, tokens: int) -> Budget:
        """Allow exactly so many tokens of input, nothing kept aside."""
        return cls(max_tokens=tokens, safety_buffer=0)

    def with_input(self, tokens: int) -> Budget:
        """Give the same limits with exactly so many tokens of input, at least one, nothing kept aside."""
        return replace(self, max_tokens=max(tokens, 1), reserve=0, safety_buffer=0, max_input=None)

    @classmethod
    def from_window(
        cls,
        model: str | ModelInfo,
        *,
        max_tokens: int | None = None,
        reserve: int | None = None,
        safety_buffer: int = SAFETY_BUFFER,
    ) -> Budget:
        """Take the window of a model, with room for its answer.

        Args:
            model: The model. One that nobody knows has a default window; ``model_info(name).warning`` says so.
            max_tokens: A smaller window of your own, less only the buffer. The answer has its room beside it, as far as the
                model's window allows; where that is known, it is never exceeded.
            reserve: Tokens for the answer. Unless given, the longest answer, at most a quarter of the window and 16,384.
            safety_buffer: Tokens kept free.

        Raises:
            InvalidInput: A figure cannot be used.
            InfeasibleBudget: The answer leaves no token of the model's window for any input.
        """
        info = _info(model)
        if max_tokens is not None:
            _check("max_tokens", max_tokens, least=1)
        if reserve is not None:
            _check("reserve", reserve, least=0)
            _check_reserve(reserve, info.context_window)
        else:
            reserve = min(info.max_output or _USUAL_ANSWER, _USUAL_ANSWER, info.context_window // _ANSWER_SHARE)
        if max_tokens is None:
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
        """Act when a request exceeds a length, or a share of the model's window, whichever is less.

        Args:
            model: The model, or None to go by the length alone.
            max_token_context_length: The length in tokens, or None to go by the share alone.
            context_usage_ratio: The share, more than 0 and at most 1.
            preserve_last_messages: Messages at the end to leave alone.

        Raises:
            InvalidInput: The share is out of range, or neither model nor length was given.
        """
        _check_share("context_usage_ratio", context_usage_ratio)
        limits = []
        if max_token_context_length is not None:
            _check("max_token_context_length", max_token_context_length, least=1)
            limits.append(max_token_context_length)
        if model is not None:
            info = _info(model)
            limits += [int(info.context_window * context_usage_ratio), info.max_input]
        if not limits:
            raise InvalidInput("A share of what?", hint="Give the model, or max_token_context_length.")
        return cls(max_tokens=min(limits), safety_buffer=0, keep_last=preserve_last_messages)

    @classmethod
    def from_reserve(
        cls, model: str | ModelInfo, *, reserve: int | None = None, keep_recent: int | None = None
    ) -> Budget:
        """Keep tokens for the answer and leave the newest ones alone (the words of pi).

        Args:
            model: The model.
            reserve: Tokens for the answer; unless given 16,384, at most half the window.
            keep_recent: Tokens to leave alone; unless given 20,000, at most a quarter of the window.
        """
        info = _info(model)
        return cls(
            max_tokens=info.context_window,
            reserve=min(_PI_RESERVE, info.context_window // 2) if reserve is None else reserve,
            safety_buffer=0,
            max_input=info.max_input,
            keep_recent=min(_PI_KEEP_RECENT, info.context_window // 4) if keep_recent is None else keep_recent,
        )

    @classmethod
    def from_headroom(cls, model: str | ModelInfo, *, buffer: int = _OPENCODE_BUFFER) -> Budget:
        """Keep a buffer beside the model's longest answer, of which at most 32,000 tokens count, and half the window (the words of OpenCode)."""
        info = _info(model)
        answer = min(info.max_output or _USUAL_ANSWER, _OPENCODE_ANSWER, info.context_window // 2)
        return cls(max_tokens=info.context_window, reserve=answer, safety_buffer=buffer, max_input=info.max_input)

    @classmethod
    def parse(cls, config: Budget | int | Mapping[str, object] | None, model: str | ModelInfo | None = None) -> Budget:
        """Read a budget from a configuration.

        Args:
            config: A budget; a number of tokens, which is what a request may occupy, nothing kept aside (:meth:`of_input`), and
                never more than the model can read where that is known; None for the model's window; or keys in any of the
                vocabularies (``palaver.tokens.BUDGET_KEYS``), also mixed, unless two of them say how large the window is. The first of these words that is there decides how
                the window is divided; whatever else is said replaces that one figure: ``max_token_context_length`` and
                ``context_usage_ratio`` (:meth:`from_ratio`), ``reserve_tokens`` (:meth:`from_reserve`), ``buffer``
                (:meth:`from_headroom`), else :meth:`from_window`.
            model: The model, unless the configuration names one.

        Raises:
            InvalidInput: A key is not known, a value cannot be used, or neither window nor model is there.
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


_FORMS = (
    "Give a whole number of tokens, at least 1, that the request may occupy; a Budget; "
    'or a dict such as {"max_tokens": 32000} or {"context_usage_ratio": 0.5}.'
)

_UNDECIDING = {"reserve_tokens": "reserve", "buffer": "safety_buffer"}
"""What deciding words mean beside one that comes before them."""


def _of_number(number: object, model: str | ModelInfo | None) -> Budget:
    """Give the budget that is meant by a number: what the request may occupy, as far as the model can read it."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidInput(f"The budget is {number!r}.", hint=_FORMS)
    info = None if model is None else _info(model)
    if info is None or not info.known or number <= info.max_input:
        return Budget.of_input(number)
    return Budget(max_tokens=number, safety_buffer=0, max_input=info.max_input)


def _base(words: dict[str, Any], model: str | ModelInfo | None) -> Budget:
    """Make the budget that the deciding words ask for, and take those words away."""
    ratio = {key: words.pop(key) for key in ("max_token_context_length", "context_usage_ratio") if key in words}
    if ratio:
        if (
            "max_tokens" in words
        ):  # it would be put in place of what the share came to, and nobody would hear of the share
            share = next(iter(ratio))
            hint = f"max_token_context_length with context_usage_ratio takes the lesser of the two; {share} alone is of the model's window."
            raise InvalidInput(f"max_tokens and {share} both say how large the window is.", hint=hint)
        return Budget.from_ratio(model, **ratio)
    most: Any = words.get("max_tokens")
    if model is None and most is None:
        raise InvalidInput("Neither the window nor the model is said.", hint="Give max_tokens, or a model.")
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


def _info(model: str | ModelInfo) -> ModelInfo:
    """Look a model up, unless that was done."""
    if not isinstance(model, str | ModelInfo):
        raise InvalidInput(f"{model!r} is no model.", hint="Give a model's name.")
    return model if isinstance(model, ModelInfo) else model_info(model)


def _check_share(name: str, value: object) -> None:
    """Refuse anything but a number above 0 and up to 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise InvalidInput(f"{name} is {value!r}.", hint="Give a share of the window: 0 < ratio <= 1.")


def _check_reserve(reserve: int, window: int) -> None:
    """Refuse an answer that leaves no token for any input."""
    if reserve >= window:
        needed = {"answer": reserve, "input": 1}
        raise InfeasibleBudget(
            window, sum(needed.values()), needed, hint="Reserve less for the answer, or take a larger window."
        )


def _check(name: str, value: object, *, least: int) -> None:
    """Refuse anything but a whole number that is large enough."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name} is {value!r}.", hint=f"Give a whole number of at least {least}.")
