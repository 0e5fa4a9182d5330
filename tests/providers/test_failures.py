"""Failures of providers: their kind by status, code and wording, and the time to retry."""

import json
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import ContextOverflow, ProviderError, RateLimited
from palaver.providers import Attempt, Retry, with_retries
from palaver.providers.failures import client_error, failed, retry_after

FIXTURES = Path(__file__).parent / "fixtures"
CASES = json.loads((FIXTURES / "failures.json").read_text(encoding="utf-8"))
OVERFLOWS = json.loads((FIXTURES / "overflows.json").read_text(encoding="utf-8"))
CLASSES = {"overflow": ContextOverflow, "rate": RateLimited}


def test_failure_has_its_kind() -> None:
    """Provider, model and the provider's words are in the error."""
    for case in CASES:
        message, kind = case["message"], case["kind"]
        error = failed("acme", message, model="m-1", status=case["status"], codes=tuple(case["codes"]))
        assert (type(error), error.kind) == (CLASSES.get(kind, ProviderError), kind), case["case"]
        assert (error.provider, error.model) == ("acme", "m-1")
        assert error.message.startswith("acme ")
        assert " ".join(message.split()) in error.message


def test_words_of_the_provider_are_a_sentence() -> None:
    """What to do follows as a sentence of its own, whether or not the provider ended its own."""
    for said in ("Rate limit reached", "Rate limit reached."):
        assert str(failed("acme", said, status=429)) == (
            "acme limits the rate: Rate limit reached. Wait, or ask less often."
        )


def test_overflow_has_its_figures() -> None:
    """Each wording is one that was seen, and its longer pattern is tried first."""
    for case in OVERFLOWS:
        error = failed("acme", case["message"], status=400)
        assert isinstance(error, ContextOverflow), case["by"]
        assert (error.limit, error.asked) == (case["limit"], case["asked"]), case["by"]
        assert not error.retryable


def test_servers_reason_is_in_the_error() -> None:
    """A client's message has it, or only its body: servers of other makers have no field for a message."""

    class UnprocessableEntityError(Exception):
        __module__ = "openai._exceptions"
        status_code, body = 422, {"detail": [{"type": "extra_forbidden", "loc": ["messages", 1]}]}

    for text in ("Error code: 422", f"Error code: 422 - {UnprocessableEntityError.body}"):
        found = client_error(UnprocessableEntityError(text), "openai", "acme", "m")
        assert found is not None
        assert found.message.count("extra_forbidden") == 1


def test_retryable() -> None:
    """The provider's wish counts first, then the kind of the error."""
    cases: list[tuple[int, str, dict[str, str], bool]] = [
        (429, "slow down", {}, True),
        (503, "busy", {}, True),
        (401, "no", {}, False),
        (501, "x", {}, False),
        (400, "x", {"x-should-retry": "true"}, True),
        (500, "x", {"x-should-retry": "false"}, False),
        (429, "tokens per min (TPM): Limit 30000, Used 29000, Requested 1211.", {}, True),
        (429, "tokens per min (TPM): Limit 30000, Requested 41211.", {}, False),  # more than a whole minute has
    ]
    found = [failed("acme", message, status=status, headers=headers).retryable for status, message, headers, _ in cases]
    assert found == [retryable for *_, retryable in cases]


def test_retry_after() -> None:
    """Seconds, milliseconds, an HTTP date, Google's delay, or words."""
    cases: list[tuple[dict[str, str], str, object, float | None]] = [
        ({"retry-after": "7"}, "", None, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, "", None, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, "", None, 10.0),
        ({}, "Please try again in 1.898s.", None, 1.898),
        ({}, "Please try again in 2m3.5s. Visit us.", None, 123.5),
        ({}, "Please try again in 20ms.", None, 0.02),
        ({}, "", {"error": {"details": [{"@type": "x"}, {"retryDelay": "27s"}]}}, 27.0),
        ({}, "slow down", None, None),
        ({"retry-after": "-5"}, "", None, None),
    ]
    found = [retry_after(headers, message, details, clock=lambda: 1000.0) for headers, message, details, _ in cases]
    assert found == [seconds if seconds is None else pytest.approx(seconds) for *_, seconds in cases]


@given(
    st.none() | st.integers(100, 600),
    st.text(max_size=60),
    st.lists(st.text(max_size=10), max_size=2),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text(max_size=20)),
)
def test_any_failure_is_an_error(status: int | None, message: str, codes: list[str], headers: dict[str, str]) -> None:
    """It reads as one line, and a time to retry is never negative."""
    error = failed("acme", message, status=status, codes=tuple(codes), headers=headers)
    assert "\n" not in str(error)
    assert error.retry_after is None or error.retry_after >= 0


# --- retries: bounded, as long as the provider asks, and seen one by one ----------------------------------------------------

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
