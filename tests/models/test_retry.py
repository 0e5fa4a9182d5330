"""Retries: bounded, as long as the provider asks, and seen one by one."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput, ProviderError, RateLimited
from palaver.models import Attempt, Retry, with_retries

AT_ONCE = Retry(attempts=4, base=0.0)


def down(message: str = "x") -> ProviderError:
    """Return a failure that is worth a retry."""
    return ProviderError(message, kind="down")


def run(policy: Retry, *failures: Exception) -> list[Attempt]:
    """Make a call that fails with each of these and then succeeds, and return the attempts."""
    left, seen = iter(failures), []

    async def call() -> None:
        async for attempt in with_retries(policy):
            seen.append(attempt)
            with attempt:
                error = next(left, None)
                if error is not None:
                    raise error

    anyio.run(call)
    return seen


def test_success_is_one_attempt() -> None:
    """Nothing is waited for."""
    assert [(one.number, one.error, one.wait) for one in run(AT_ONCE)] == [(1, None, None)]


def test_each_failure_is_seen() -> None:
    """Rate limits count like every other failure."""
    failures = [down(), RateLimited("later", retry_after=0.01), down()]
    attempts = run(AT_ONCE, *failures)
    assert [one.error for one in attempts] == [*failures, None]
    assert [one.wait for one in attempts] == [0.0, 0.01, 0.0, None]


def test_last_failure_is_raised() -> None:
    """After the last attempt the error is the caller's."""
    with pytest.raises(ProviderError, match="no 4"):
        run(AT_ONCE, *(down(f"no {number}") for number in range(1, 9)))


def test_hopeless_failure_is_raised_at_once() -> None:
    """A refusal, a defect, or a longer wait than the policy has patience for."""
    cases: list[Exception] = [
        ProviderError("no", kind="refused"),
        ValueError("a defect"),
        RateLimited("no credit", retryable=False),
        RateLimited("tomorrow", retry_after=3600.0),
    ]
    for error in cases:
        with pytest.raises(type(error)) as caught:
            run(AT_ONCE, error)
        assert caught.value is error


def test_no_attempt_begins_after_max_elapsed() -> None:
    """The time is up long before the attempts are."""
    with pytest.raises(ProviderError):
        run(Retry(attempts=1000, base=0.02, cap=0.02, max_elapsed=0.01), *[down()] * 999)


@given(st.integers(1, 80), st.floats(0, 1e6), st.floats(0, 1e6), st.none() | st.floats(0, 1e6), st.integers(1, 200))
def test_wait_is_within_bounds(attempts: int, base: float, cap: float, asked: float | None, attempt: int) -> None:
    """Never below what the provider asks, never above the cap, and none after the last attempt."""
    policy = Retry(attempts=attempts, base=base, cap=cap)
    wait = policy.wait(ProviderError("x", retryable=True, retry_after=asked), attempt)
    if attempt >= attempts or (asked or 0.0) > policy.patience:
        assert wait is None
    else:
        assert wait == asked if asked is not None else wait is not None and min(base, cap) <= wait <= cap


def test_impossible_policy_is_refused() -> None:
    """Zero attempts, negative times."""
    cases: list[dict[str, float]] = [{"attempts": 0}, {"base": -1.0}, {"patience": -0.5}, {"max_elapsed": 0}]
    for fields in cases:
        with pytest.raises(InvalidInput):
            Retry(**fields)  # type: ignore[arg-type]
