"""Retries of failed calls: how often, how long to wait, when to give up. Built on `stamina`.

The wait before retry n is `base · 2ⁿ⁻¹` seconds plus a random part of up to `base`, at most `cap`. If a provider says how long to wait
(RFC 9110, section 10.2.3, Retry-After), that time is used; if it exceeds `patience`, the call fails at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import stamina

from palaver.errors import InvalidInput, ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A retry policy. Rate limits count like every other failure.

    Attributes:
        attempts: Attempts in all, including the first; 1 disables retries.
        base: The first wait in seconds; 0 retries at once.
        cap: The longest wait in seconds that the policy itself chooses.
        patience: The longest wait in seconds that a provider may ask for.
        max_elapsed: Seconds after the first attempt from which no further one begins.
        jitter: Whether a random part of up to `base` seconds is added to each wait.
    """

    attempts: int = 5
    base: float = 1.0
    cap: float = 30.0
    patience: float = 60.0
    max_elapsed: float = 300.0
    jitter: bool = True

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInput: `attempts` is less than 1, `max_elapsed` is not positive, or another time is negative.
        """
        if self.attempts < 1:
            raise InvalidInput(f"attempts must be at least 1, not {self.attempts!r}.")
        if self.max_elapsed <= 0:
            raise InvalidInput(f"max_elapsed must be more than 0 seconds, not {self.max_elapsed!r}.")
        for name in ("base", "cap", "patience"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"{name} must be 0 seconds or more, not {getattr(self, name)!r}.")

    def wait(self, error: BaseException, attempt: int) -> float | None:
        """Return the least seconds to wait after a failed attempt, or None to give up.

        Args:
            error: The failure.
            attempt: The number of the attempt, starting at 1.
        """
        if not isinstance(error, ProviderError) or not error.retryable or attempt >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.patience else None
        return min(self.cap, self.base * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))

    def backoff(self, error: Exception) -> bool | float:
        """Return the value that stamina needs after a failure: the provider's wait in seconds, or else whether to retry."""
        wait = self.wait(error, 0)
        if isinstance(error, ProviderError) and error.retry_after is not None and wait is not None:
            return wait
        return wait is not None


_MOST_DOUBLINGS = 64
"""Doublings after which a wait exceeds every cap; more would overflow a float."""


class Attempt:
    """One attempt, entered with `with`. It suppresses a failure that is retried, and raises any other.

    Attributes:
        number: The number of the attempt, starting at 1.
        error: The failure, or None.
        wait: The least seconds until the next attempt, or None where there is none.
    """

    def __init__(self, policy: Retry, attempt: stamina.Attempt) -> None:
        self.number = attempt.num
        self.error: ProviderError | None = None
        self.wait: float | None = None
        self._policy = policy
        self._attempt = attempt

    def __enter__(self) -> Self:
        """Begin the attempt."""
        self._attempt.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        """Keep the failure if it is retried."""
        if error is not None:
            self.wait = self._policy.wait(error, self.number)
            if not isinstance(error, ProviderError) or self.wait is None:
                return False
            self.error = error
        return bool(self._attempt.__exit__(kind, error, at))


def with_retries(retry: Retry) -> AsyncIterator[Attempt]:
    """Iterate over attempts until one succeeds or the policy gives up, and wait between them.

    The caller sees each failure before the next attempt:

        async for attempt in with_retries(retry):
            with attempt:
                return await collect(provider.stream(request))
            log(attempt.error, attempt.wait)
    """
    return _Attempts(retry)


class _Attempts(AsyncIterator[Attempt]):
    """The attempts of one call. A class and not a generator: a loop left by `return` leaves nothing to close."""

    def __init__(self, policy: Retry) -> None:
        self._policy = policy
        self._attempts = aiter(
            stamina.retry_context(
                on=policy.backoff,
                attempts=policy.attempts,
                timeout=policy.max_elapsed,
                wait_initial=policy.base,
                wait_max=policy.cap,
                wait_jitter=policy.base if policy.jitter else 0.0,
            )
        )

    async def __anext__(self) -> Attempt:
        """Wait as long as the last failure asks for, and return the next attempt."""
        return Attempt(self._policy, await anext(self._attempts))
