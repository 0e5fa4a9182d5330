"""What went wrong, by status, code and wording, and when to come back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    ProviderDown,
    ProviderError,
    RateLimited,
    RequestRefused,
)
from palaver.models.failures import Fault, failed, retry_after


def fault(status: int | None = None, message: str = "", *codes: str, **more: Any) -> Fault:  # noqa: ANN401 - fields of a Fault
    """Make a fault of somebody's."""
    return Fault(provider="acme", model="m-1", status=status, message=message, codes=codes, **more)


CASES: dict[str, tuple[Fault, type[ProviderError]]] = {
    "wrong key": (fault(401, "Incorrect API key provided: sk-x.", "invalid_api_key"), AuthenticationFailed),
    "no right": (fault(403, "Your account may not do this", "permission_error"), AuthenticationFailed),
    "Gemini's wrong key": (
        fault(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
        AuthenticationFailed,
    ),
    "no key at all": (fault(400, "The api_key client option must be set"), AuthenticationFailed),
    "no credit": (fault(402, "Insufficient Balance"), AuthenticationFailed),
    "OpenAI's quota": (
        fault(429, "You exceeded your current quota, please check your plan", "insufficient_quota"),
        AuthenticationFailed,
    ),
    "Anthropic's credit": (
        fault(400, "Your credit balance is too low to access the Anthropic API."),
        AuthenticationFailed,
    ),
    "Gemini's quota": (
        fault(429, "You exceeded your current quota, please check your plan", "RESOURCE_EXHAUSTED"),
        RateLimited,
    ),
    "OpenAI's model": (
        fault(404, "The model `gpt-99` does not exist or you do not have access to it.", "model_not_found"),
        ModelUnavailable,
    ),
    "OpenAI's project": (
        fault(403, "Project `p` does not have access to model `m`", "model_not_found"),
        ModelUnavailable,
    ),
    "Anthropic's model": (fault(404, "model: claude-99", "not_found_error"), ModelUnavailable),
    "OpenRouter's model": (fault(400, "foo/bar is not a valid model ID"), ModelUnavailable),
    "Gemini's model": (
        fault(404, "models/gemini-99 is not found for API version v1beta", "NOT_FOUND"),
        ModelUnavailable,
    ),
    "Ollama's model": (fault(404, 'model "llama9" not found, try pulling it first'), ModelUnavailable),
    "wrong address": (fault(404, "404 page not found"), RequestRefused),
    "unknown parameter": (
        fault(400, "Unrecognized request argument supplied: foo", "invalid_request_error"),
        RequestRefused,
    ),
    "unprocessable": (fault(422, "field required"), RequestRefused),
    "overflow": (fault(400, "prompt is too long: 3 tokens > 2 maximum"), ContextOverflow),
    "overflow by code": (fault(400, "Please shorten it.", "context_length_exceeded"), ContextOverflow),
    "overflow as a 500": (
        fault(500, "the request exceeds the available context size", "exceed_context_size_error"),
        ContextOverflow,
    ),
    "overflow inside an answer": (
        fault(200, "Your input exceeds the context window of this model.", "context_length_exceeded"),
        ContextOverflow,
    ),
    "body too large": (fault(413, ""), ContextOverflow),
    "rate limit": (fault(429, "slow down"), RateLimited),
    "rate limit as 413": (
        fault(413, "Request too large for model `x` on tokens per minute (TPM): Limit 12000, Requested 14137"),
        RateLimited,
    ),
    "rate limit inside an answer": (fault(200, "Too many requests", "rate_limit_exceeded"), RateLimited),
    "overloaded": (fault(529, "Overloaded", "overloaded_error"), ProviderDown),
    "overloaded inside an answer": (fault(200, "Overloaded", "overloaded_error"), ProviderDown),
    "OpenRouter inside an answer": (fault(200, "Provider returned error", "502"), ProviderDown),
    "server error": (fault(500, "The server had an error"), ProviderDown),
    "timeout of theirs": (fault(408, "timeout"), ProviderDown),
    "conflict": (fault(409, "lock timeout"), ProviderDown),
    "network": (fault(None, "Connection error. (Name or service not known)"), ProviderDown),
    "unknown word inside an answer": (fault(200, "oops", "surprise"), ProviderDown),
}


@pytest.mark.parametrize(("case", "kind"), CASES.values(), ids=CASES)
def test_each_failure_is_its_own_error(case: Fault, kind: type[ProviderError]) -> None:
    """The kind says whose fault it is; provider, model, status and the provider's words are in it."""
    error = failed(case)
    assert type(error) is kind
    assert (error.provider, error.model) == ("acme", "m-1")
    assert error.message.startswith("acme ")
    assert " ".join(case.message.split()) in error.message
    assert error.retryable is (kind in {RateLimited, ProviderDown} and "Requested 14137" not in case.message)


def test_an_overflow_says_how_long_and_how_long_it_may_be() -> None:
    """The figures of the wording are the error's."""
    error = failed(fault(400, "prompt is too long: 201130 tokens > 200000 maximum"))
    assert isinstance(error, ContextOverflow)
    assert (error.asked, error.limit) == (201_130, 200_000)


def test_a_request_larger_than_a_minute_is_not_tried_again() -> None:
    """Waiting does not help the one who asks for more at once than a whole minute has."""
    assert not failed(fault(429, "tokens per min (TPM): Limit 30000, Requested 41211.")).retryable
    assert failed(fault(429, "tokens per min (TPM): Limit 30000, Used 29000, Requested 1211.")).retryable


@pytest.mark.parametrize(
    ("wish", "status", "retryable"), [("true", 400, True), ("false", 500, False), ("", 501, False)]
)
def test_the_provider_s_wish_to_be_asked_again_counts(wish: str, status: int, retryable: bool) -> None:
    """`x-should-retry` is obeyed, as the vendors' own clients do; what is not implemented will not be in a minute."""
    assert failed(fault(status, "x", headers={"x-should-retry": wish})).retryable is retryable


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        (fault(429, headers={"retry-after": "7"}), 7.0),
        (fault(429, headers={"retry-after": "1.5"}), 1.5),
        (fault(429, headers={"retry-after-ms": "250", "retry-after": "7"}), 0.25),
        (fault(429, headers={"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}), 10.0),
        (fault(429, headers={"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}), 0.0),
        (fault(429, "Please try again in 1.898s."), 1.898),
        (fault(429, "Please try again in 2m3.5s. Visit us."), 123.5),
        (fault(429, "Please try again in 20ms."), 0.02),
        (fault(429, details={"error": {"details": [{"@type": "x"}, {"retryDelay": "27s"}]}}), 27.0),
        (fault(429, "slow down"), None),
        (fault(429, headers={"retry-after": "soon"}), None),
        (fault(429, headers={"retry-after": "-5"}), None),
        (fault(429, headers={"retry-after": "nan"}), None),
    ],
)
def test_when_to_come_back_is_read_in_every_form(case: Fault, seconds: float | None) -> None:
    """Seconds, milliseconds, an HTTP date, Google's delay, words; what is none of these is none."""
    found = retry_after(case, clock=lambda: 1000.0)
    assert found == (None if seconds is None else pytest.approx(seconds))
    assert failed(case, clock=lambda: 1000.0).retry_after == found


@given(
    st.none() | st.integers(100, 600),
    st.text(max_size=60),
    st.lists(st.text(max_size=10), max_size=2),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text(max_size=20)),
)
def test_whatever_a_provider_says_becomes_an_error(
    status: int | None, message: str, codes: list[str], headers: dict[str, str]
) -> None:
    """No answer is so odd that the mapping itself fails; it reads as one line, and a wish is never negative."""
    error = failed(fault(status, message, *codes, headers=headers))
    assert isinstance(error, ProviderError)
    assert "\n" not in str(error)
    assert error.retry_after is None or error.retry_after >= 0


def test_a_long_message_is_shortened() -> None:
    """A page of HTML in place of an answer does not fill the screen."""
    assert len(str(failed(fault(502, "<html>" + "x" * 100_000)))) < 1000
