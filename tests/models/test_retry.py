"""Retries: bounded, drawn apart, as long as the provider asks, and seen one by one. No test sleeps."""

from dataclasses import dataclass, field

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput, ProviderDown, ProviderError, RateLimited, RequestRefused
from palaver.models import Attempt, Retry, with_retries


@dataclass
class Watch:
    """A clock that only sleeping moves, and that counts the naps."""

    time: float = 0.0
    naps: list[float] = field(default_factory=list)

    def clock(self) -> float:
        """Give the time."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.naps.append(seconds)
        self.time += seconds


def run(retry: Retry, failures: list[BaseException]) -> list[Attempt]:
    """Try a call that fails with each of these and then succeeds, and give the attempts."""
    left = iter(failures)
    seen: list[Attempt] = []

    async def trying() -> None:
        async for attempt in with_retries(retry):
            seen.append(attempt)
            with attempt:
                error = next(left, None)
                if error is not None:
                    raise error

    anyio.run(trying)
    return seen


def retry(watch: Watch, **fields: float) -> Retry:
    """Make a policy on a watch, that draws the upper bound."""
    return Retry(clock=watch.clock, sleep=watch.sleep, draw=lambda: 1.0, **fields)  # type: ignore[arg-type]


def test_a_call_that_succeeds_is_tried_once() -> None:
    """Nothing is slept and nothing is counted."""
    watch = Watch()
    attempts = run(retry(watch), [])
    assert [(attempt.number, attempt.error, attempt.wait) for attempt in attempts] == [(1, None, None)]
    assert watch.naps == []


def test_waits_double_up_to_the_cap() -> None:
    """1, 2, 4 … seconds at most, never more than the cap."""
    watch = Watch()
    run(retry(watch, attempts=6, base=1.0, cap=5.0), [ProviderDown("x")] * 5)
    assert watch.naps == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_jitter_is_full() -> None:
    """The wait is the drawn share of the bound, down to nothing: clients that failed together come back apart."""
    watch = Watch()
    draws = iter([0.0, 0.5, 0.25])
    policy = Retry(base=8.0, cap=1000.0, clock=watch.clock, sleep=watch.sleep, draw=lambda: next(draws))
    run(policy, [ProviderDown("x")] * 3)
    assert watch.naps == [0.0, 8.0, 8.0]


def test_the_last_failure_is_raised() -> None:
    """After the last attempt the error is the caller's, with all attempts seen."""
    watch = Watch()
    seen = []

    async def trying() -> None:
        async for attempt in with_retries(retry(watch, attempts=3)):
            seen.append(attempt)
            with attempt:
                raise ProviderDown(f"no {attempt.number}")

    with pytest.raises(ProviderDown, match="no 3"):
        anyio.run(trying)
    assert [attempt.number for attempt in seen] == [1, 2, 3]
    assert [attempt.wait for attempt in seen] == [1.0, 2.0, None]


@pytest.mark.parametrize(
    "error", [RequestRefused("no"), ValueError("a defect"), RateLimited("no credit", retryable=False)]
)
def test_what_cannot_succeed_later_is_raised_at_once(error: Exception) -> None:
    """A refused request, a defect, a limit that waiting does not lift: one attempt."""
    watch = Watch()
    with pytest.raises(type(error)):
        run(retry(watch), [error])
    assert watch.naps == []


def test_the_provider_s_wish_is_waited_out() -> None:
    """Retry-After is waited at least, also above the cap of our own waits."""
    watch = Watch()
    run(retry(watch, cap=2.0), [RateLimited("later", retry_after=20.0)])
    assert watch.naps == [20.0]


def test_a_wish_beyond_our_patience_fails_at_once() -> None:
    """To ask earlier than told gains nothing; the error tells the caller when to come back."""
    watch = Watch()
    with pytest.raises(RateLimited) as caught:
        run(retry(watch, patience=60.0), [RateLimited("tomorrow", retry_after=3600.0)])
    assert caught.value.retry_after == 3600.0
    assert watch.naps == []


def test_rate_limits_count_like_other_failures_and_are_counted() -> None:
    """They use up attempts, unlike loops that wait on them for ever."""
    watch = Watch()
    attempts = run(retry(watch, attempts=4), [RateLimited("a"), ProviderDown("b"), RateLimited("c")])
    assert [attempt.rate_limits for attempt in attempts] == [1, 1, 2, 2]
    with pytest.raises(RateLimited):
        run(retry(Watch(), attempts=3), [RateLimited("a")] * 3)


def test_no_attempt_begins_after_the_time_is_up() -> None:
    """A wait that would end too late is not begun."""
    watch = Watch()
    with pytest.raises(ProviderDown):
        run(retry(watch, attempts=100, base=10.0, cap=10.0, max_elapsed=25.0), [ProviderDown("x")] * 100)
    assert watch.naps == [10.0, 10.0]


@given(
    st.integers(1, 80),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
    st.floats(0, 1),
    st.integers(1, 200),
)
def test_a_wait_is_within_its_bounds(
    attempts: int, base: float, cap: float, asked: float | None, draw: float, failures: int
) -> None:
    """Never negative, never above cap and wish, never below the wish, and none after the last attempt."""
    policy = Retry(attempts=attempts, base=base, cap=cap, max_elapsed=1e9, draw=lambda: draw)
    wait = policy.wait(ProviderError("x", retryable=True, retry_after=asked), failures, 0.0)
    if failures >= attempts or (asked or 0.0) > policy.patience:
        assert wait is None
    else:
        assert wait is not None
        assert (asked or 0.0) <= wait <= max(cap, asked or 0.0)


@pytest.mark.parametrize("fields", [{"attempts": 0}, {"base": -1.0}, {"patience": -0.5}])
def test_figures_that_say_nothing_are_refused(fields: dict[str, float]) -> None:
    """Zero attempts, negative times."""
    with pytest.raises(InvalidInput):
        Retry(**fields)  # type: ignore[arg-type]
