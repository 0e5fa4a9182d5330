"""Asking again after a failure, as a policy: how often, how long to wait, and when to give up.

The wait before retry n is drawn between nothing and `base · 2ⁿ⁻¹`, at most `cap`: exponential backoff with full jitter, which of the
known ways makes the fewest calls when many clients fail together (Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015). Where the provider says how long to wait (RFC 9110, section 10.2.3, Retry-After), that is waited at least. When it asks for
more than `patience`, nothing is gained by asking earlier, and the call fails at once with what the provider said.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio

from palaver.errors import InvalidInput, ProviderError, RateLimited
from palaver.models.scripted import Sleep

__all__ = ["Attempt", "Retry", "with_retries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When a failed call is tried again. Rate limits count like every other failure.

    Attributes:
        attempts: Tries in all, the first included; 1 for none but it.
        base: Seconds that the first wait has at most.
        cap: Seconds that any wait has at most, where the provider does not ask for more.
        patience: Seconds that a provider may ask to wait; more fails the call at once.
        max_elapsed: Seconds after the first try within which the last one begins.
        jitter: Whether waits are drawn at random below their bound; without, they are the bound.
        clock: Gives seconds of a clock that never goes back.
        sleep: Waits a number of seconds.
        draw: Gives a number from 0 to 1, drawn anew each time.
    """

    attempts: int = 5
    base: float = 1.0
    cap: float = 30.0
    patience: float = 60.0
    max_elapsed: float = 300.0
    jitter: bool = True
    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = anyio.sleep
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        """Refuse figures that say nothing.

        Raises:
            InvalidInput: There is no first try, or a time is negative.
        """
        if self.attempts < 1:
            raise InvalidInput(f"A call is tried at least once, not {self.attempts} times.")
        for name in ("base", "cap", "patience", "max_elapsed"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"{name!r} is a number of seconds, not {getattr(self, name)!r}.")

    def wait(self, error: ProviderError, failures: int, elapsed: float) -> float | None:
        """Give the seconds to wait after a failure, or None to give up.

        Args:
            error: The newest failure.
            failures: How many there were, it included.
            elapsed: Seconds since the first try.
        """
        if not error.retryable or failures >= self.attempts:
            return None
        bound = min(self.cap, self.base * 2.0 ** min(failures - 1, _MANY))
        wait = bound * self.draw() if self.jitter else bound
        if error.retry_after is not None:
            if error.retry_after > self.patience:
                return None
            wait = max(wait, error.retry_after)
        return wait if elapsed + wait <= self.max_elapsed else None


_MANY = 64
"""Doublings after which any bound is above every cap."""


class Attempt:
    """One try, entered with `with`: a failure that is to be tried again stays in :attr:`error`, any other one is raised.

    Attributes:
        number: Which one it is, starting at 1.
        error: How it failed, or None.
        wait: Seconds until the next try; None where there is none.
        rate_limits: Tries that a rate limit has refused so far, this one included.
    """

    def __init__(self, retry: Retry, number: int, began: float, rate_limits: int) -> None:
        self.number = number
        self.error: ProviderError | None = None
        self.wait: float | None = None
        self.rate_limits = rate_limits
        self._retry = retry
        self._began = began

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _at: TracebackType | None
    ) -> bool:
        """Keep the failure if there is a next try."""
        if not isinstance(error, ProviderError):
            return False
        self.error = error
        self.rate_limits += isinstance(error, RateLimited)
        self.wait = self._retry.wait(error, self.number, self._retry.clock() - self._began)
        return self.wait is not None


def with_retries(retry: Retry) -> AsyncIterator[Attempt]:
    """Yield attempts until one succeeds or the policy gives up; between them the wait is slept.

    The caller sees each failure before the next try, and can record it:

        async for attempt in with_retries(retry):
            with attempt:
                message = await collect(provider.stream(request))
            if attempt.error is not None:
                record(attempt.error)
    """
    return _Attempts(retry)


class _Attempts(AsyncIterator[Attempt]):
    """The attempts of one call. No generator: leaving the loop by an exception leaves nothing to be closed."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._began = retry.clock()
        self._last: Attempt | None = None

    async def __anext__(self) -> Attempt:
        """Give the next attempt, after the wait that the last one asked for."""
        last = self._last
        if last is not None:
            if last.wait is None:
                raise StopAsyncIteration
            await self._retry.sleep(last.wait)
        number, rate_limits = (1, 0) if last is None else (last.number + 1, last.rate_limits)
        self._last = Attempt(self._retry, number, self._began, rate_limits)
        return self._last
