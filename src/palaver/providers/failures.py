"""Map the failures of providers to palaver's errors, by status, code and wording: one table for all providers.

The exceptions of `openai` and `anthropic` are mapped here: they are alike, and LiteLLM derives its own from the former.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Any

from palaver.errors import ContextOverflow, ProviderError, RateLimited
from palaver.ids import now
from palaver.messages.frozen import EMPTY
from palaver.providers.overflow import about_rates, overflow_in

_REFUSED, _FAILED = range(400, 500), range(400, 600)
_SHOWN = 600
"""Characters of a provider's message that an error shows."""

# Codes of errors inside an answer, and the statuses they stand for. Anthropic: docs/en/api/errors. OpenAI: the codes of a failed response
# (API reference, ResponseError). Google: google.rpc.Code, and ai.google.dev/gemini-api/docs/api-errors. Other providers use a subset of these.
_STATUS_OF_CODE: Mapping[str, int] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 504, "overloaded_error": 529, "server_error": 500, "internal_server_error": 500,
    "rate_limit_exceeded": 429, "vector_store_timeout": 504, "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504, "invalid_request": 400, "failed_precondition": 400,
    "out_of_range": 416, "parameter_unknown": 400, "authentication": 401, "payment_required": 402,
    "permission_denied": 403, "not_found": 404, "quota_exceeded": 429, "missing_thought_signature": 400,
}  # fmt: skip
_NO_CREDIT = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
_NO_CREDIT_WORDS = re.compile(r"credit balance is too low|insufficient (?:balance|credits|funds)", re.IGNORECASE)
_NO_KEY_WORDS = re.compile(
    r"api[ _-]?key\b.{0,40}(?:not valid|is (?:missing|invalid)|must be set)|API_KEY_INVALID|invalid api key|incorrect api key"
    r"|could not resolve authentication method|no auth credentials|no api key|missing credentials",
    re.IGNORECASE,
)
_NO_MODEL = frozenset({"model_not_found", "model_not_available", "DeploymentNotFound"})
_NO_MODEL_WORDS = re.compile(
    r"\bmodels?\b.{0,120}?(?:does not exist|not found|is not (?:found|supported|available|a valid)|not a valid model|no longer available)"
    r"|is not a valid model|unknown model|llm provider not provided|invalid model|no (?:such )?model|^model: \S+$",
    re.IGNORECASE | re.DOTALL,
)
_SAID = {
    "auth": "rejects the key or the account",
    "model": "does not offer the model {model!r}",
    "overflow": "finds the request too long",
    "rate": "limits the rate",
    "refused": "refuses the request",
    "down": "failed",
}
_HINTS = {
    "auth": "Pass the provider's key as its own client reads it, or check the account.",
    "model": "Check how the provider spells the model.",
}


def failed(  # noqa: PLR0913 - the facts of a failure
    provider: str,
    message: str,
    *,
    model: str = "",
    status: int | None = None,
    codes: tuple[str, ...] = (),
    headers: Mapping[str, str] = EMPTY,
    request_id: str = "",
    details: object = None,
) -> ProviderError:
    """Return the error for a failure.

    Args:
        provider: The provider's name.
        message: The provider's message, or the client's.
        model: The model, or empty.
        status: The HTTP status, or None without an answer. A status below 400 belongs to an answer that failed after it began.
        codes: The provider's codes for the error, the most specific first.
        headers: The headers of the answer, in lower case.
        request_id: The provider's id of the request.
        details: The body of the answer, where Google puts the time to retry.
    """
    unreached = status is None
    status = status if status in _FAILED else _status_of(codes)
    kind = _kind(codes, status, message)
    facts: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "status": status,
        "code": next(filter(None, codes), ""),
        "request_id": request_id,
        "retry_after": retry_after(headers, message, details),
        "retryable": _retryable(kind, status, headers, message),
        "hint": _HINTS.get(kind, ""),
    }
    said = "could not be reached" if kind == "down" and unreached else _SAID[kind].format(model=model)
    shown = " ".join(message.split())
    text = f"{provider} {said}" + (f": {shown[:_SHOWN]}{'…' * (len(shown) > _SHOWN)}" if shown else ".")
    if kind == "overflow":
        return ContextOverflow(text, **(overflow_in(" ".join((*codes, message))) or {}), **facts)
    return RateLimited(text, **facts) if kind == "rate" else ProviderError(text, kind=kind, **facts)


def _status_of(codes: tuple[str, ...]) -> int | None:
    """Return the status that a code means; OpenRouter's code is the status itself."""
    for code in codes:
        status = int(code) if code.isdecimal() else _STATUS_OF_CODE.get(code, 0)
        if status in _FAILED:
            return status
    return None


def _kind(codes: tuple[str, ...], status: int | None, message: str) -> str:
    """Return the kind of the error. Wordings take precedence over the status."""
    words = " ".join((*codes, message))
    refused = status in _REFUSED
    no_credit = (
        not _NO_CREDIT.isdisjoint(codes) or status == HTTPStatus.PAYMENT_REQUIRED or _NO_CREDIT_WORDS.search(words)
    )
    # Groq answers 413 to a request with more tokens than a minute allows.
    rate = status == HTTPStatus.TOO_MANY_REQUESTS or (status in {None, 400, 403, 413, 422} and about_rates(words))
    overflow = status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
        status not in {401, 403} and overflow_in(words) is not None
    )
    no_model = not _NO_MODEL.isdisjoint(codes) or (refused and _NO_MODEL_WORDS.search(message))
    rules = (
        (no_credit, "auth"),
        (rate, "rate"),
        (overflow, "overflow"),
        (no_model, "model"),
        (status in {401, 403} or _NO_KEY_WORDS.search(words), "auth"),
        # 408 and 425 are time-outs; 409 is a lock that was not acquired in time, as OpenAI's client treats it
        (refused and status not in {408, 409, 425}, "refused"),
    )
    return next((kind for holds, kind in rules if holds), "down")


_FIGURES = re.compile(r"limit:? ([\d,]+)[^.]{0,40}?requested:? ([\d,]+)", re.IGNORECASE)
"""«Limit 6000, Requested 14810» (Groq, continuedev/continue#10218): one request larger than a whole minute, which waiting does not help."""


def _retryable(kind: str, status: int | None, headers: Mapping[str, str], message: str) -> bool:
    """Return whether the same request may succeed later: as the provider says, else by the kind of the error."""
    wish = headers.get("x-should-retry", "")
    if wish in {"true", "false"}:  # as OpenAI's and Anthropic's clients do
        return wish == "true"
    if kind == "rate":
        found = _FIGURES.search(message)
        return found is None or int(found[2].replace(",", "")) <= int(found[1].replace(",", ""))
    return kind == "down" and status != HTTPStatus.NOT_IMPLEMENTED


# --- when to retry -------------------------------------------------------------------------------------------------------

_SPAN = re.compile(
    r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>[\d.]+) ?s)?(?:(?P<ms>\d+)ms)?",
    re.IGNORECASE,
)
_SPAN_IN_WORDS = re.compile(r"(?:try again|retry) in " + _SPAN.pattern, re.IGNORECASE)
_SECONDS_IN = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def retry_after(
    headers: Mapping[str, str], message: str = "", details: object = None, *, clock: Callable[[], float] = now
) -> float | None:
    """Return the seconds that a provider asks to wait, or None where it does not say.

    Sources: the headers `retry-after-ms` (OpenAI, Azure) and `retry-after`, in seconds or as an HTTP date (RFC 9110, 10.2.3); `retryDelay`
    in Google's details (google.rpc.RetryInfo); and the words "try again in 1.5s" of OpenAI and Groq.
    """
    named = headers.get("retry-after", "")
    for text, unit in ((headers.get("retry-after-ms", ""), 0.001), (named, 1.0)):
        seconds = _seconds(text)
        if seconds is not None:
            return seconds * unit
    try:
        return max(0.0, parsedate_to_datetime(named).timestamp() - clock())
    except (ValueError, TypeError, OverflowError):
        delay = _span(_SPAN.fullmatch(_delay_in(details)))
        return _span(_SPAN_IN_WORDS.search(message)) if delay is None else delay


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _span(found: re.Match[str] | None) -> float | None:
    parts = {} if found is None else {unit: text for unit, text in found.groupdict().items() if text}
    return (
        sum(_SECONDS_IN[unit] * (_seconds(text.rstrip(".")) or 0.0) for unit, text in parts.items()) if parts else None
    )


def _delay_in(details: object) -> str:
    """Find Google's `retryDelay` in the details of an error."""
    if isinstance(details, Mapping):
        delay = details.get("retryDelay")
        return delay if isinstance(delay, str) else next(filter(None, map(_delay_in, details.values())), "")
    if isinstance(details, list | tuple):
        return next(filter(None, map(_delay_in, details)), "")
    return ""


# --- exceptions of clients -----------------------------------------------------------------------------------------------


def client_error(error: Exception, package: str, provider: str, model: str) -> ProviderError | None:
    """Return the error for an exception of `package`, or None for any other.

    The clients of OpenAI and Anthropic are made by one generator and have the same exceptions. Neither package is imported.
    """
    names = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] == package}
    if not names:
        return None
    if "APIResponseValidationError" in names:
        return unreadable(provider, model, error)
    if "APIConnectionError" in names:
        return failed(provider, described(error), model=model)
    body = getattr(error, "body", None)
    outer = body if isinstance(body, dict) else {}
    said = outer["error"] if isinstance(outer.get("error"), dict) else outer  # Anthropic's client keeps the body whole
    answer = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(answer, "headers", {})
    status = getattr(error, "status_code", None)
    codes = (getattr(error, "code", None), said.get("code"), said.get("type"), getattr(error, "error_code", None))
    return failed(
        provider,
        (_text(said.get("message")) or _whole(error, body)).partition(_TRACE)[0].removeprefix("litellm."),
        model=model,
        # an APIError without a status is inside an answer; any other is the client's own, before anything was sent
        status=status if isinstance(status, int) else 200 if "APIError" in names else 400,
        codes=tuple(filter(None, map(_text, codes))),
        headers={str(key).lower(): str(value) for key, value in headers.items()},
        request_id=_text(getattr(error, "request_id", None)) or _text(outer.get("request_id")),
        details=body,
    )


def _whole(error: Exception, body: object) -> str:
    """Return an exception's message, with the body where it does not have it: since version 3 OpenAI's client names the field `message` only."""
    text = str(error)
    return text if not body or str(body) in text else f"{text} - {body}"


_TRACE = "Traceback (most recent call last)"
"""LiteLLM appends its stack trace to messages."""


def unreadable(provider: str, model: str, error: BaseException) -> ProviderError:
    """Return the error for an answer that cannot be read."""
    return ProviderError(
        f"The answer is not readable: {described(error)}", kind="broken", provider=provider, model=model
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def described(error: BaseException) -> str:
    """Return an exception's message with that of its cause: clients say "Connection error." and keep the reason in the cause."""
    cause = error.__cause__ or error.__context__
    said = str(error) or type(error).__name__
    reason = "" if cause is None else str(cause) or type(cause).__name__
    return said if not reason or reason in said else f"{said} ({reason})"
