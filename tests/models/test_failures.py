"""Failures of providers: their kind by status, code and wording, and the time to retry."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import ContextOverflow, ProviderError, RateLimited
from palaver.models.failures import failed, retry_after

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


def test_overflow_has_its_figures() -> None:
    """Each wording is one that was seen, and its longer pattern is tried first."""
    for case in OVERFLOWS:
        error = failed("acme", case["message"], status=400)
        assert isinstance(error, ContextOverflow), case["by"]
        assert (error.limit, error.asked) == (case["limit"], case["asked"]), case["by"]
        assert not error.retryable


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
        ({"retry-after": "1.5"}, "", None, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, "", None, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, "", None, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, "", None, 0.0),
        ({}, "Please try again in 1.898s.", None, 1.898),
        ({}, "Please try again in 2m3.5s. Visit us.", None, 123.5),
        ({}, "Please try again in 20ms.", None, 0.02),
        ({}, "", {"error": {"details": [{"@type": "x"}, {"retryDelay": "27s"}]}}, 27.0),
        ({}, "slow down", None, None),
        ({"retry-after": "soon"}, "", None, None),
        ({"retry-after": "-5"}, "", None, None),
        ({"retry-after": "nan"}, "", None, None),
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


def test_long_message_is_shortened() -> None:
    """A page of HTML does not fill the screen."""
    assert len(str(failed("acme", "<html>" + "x" * 100_000, status=502))) < 1000
