"""What went wrong, in palaver's errors: one table for all providers, by status, code and wording.

An adapter says what it knows as a :class:`Fault`, and :func:`failed` gives the error. What vendors agree on stands here; the exceptions
of a vendor's own package are known only to its adapter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from types import MappingProxyType
from typing import Any

from palaver.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    ProviderDown,
    ProviderError,
    RateLimited,
    RequestRefused,
)
from palaver.ids import now
from palaver.messages.frozen import EMPTY
from palaver.models.overflow import about_rates, overflow_in

__all__ = ["Fault", "failed", "retry_after"]

_SHOWN = 600
"""Characters of a provider's message that are shown."""

# The words of errors that come inside an answer, as the statuses they stand for. Anthropic: docs/en/api/errors, "error types". OpenAI: the
# codes of a response that failed (API reference, ResponseError). Google: google.rpc.Code. Others use words of these.
_STATUS_OF_WORD: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
        "server_error": 500,
        "internal_server_error": 500,
        "rate_limit_exceeded": 429,
        "vector_store_timeout": 504,
        "INVALID_ARGUMENT": 400,
        "FAILED_PRECONDITION": 400,
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "NOT_FOUND": 404,
        "RESOURCE_EXHAUSTED": 429,
        "INTERNAL": 500,
        "UNAVAILABLE": 503,
        "DEADLINE_EXCEEDED": 504,
    }
)
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
_NO_STATUS = 600
_LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY})
"""Statuses below 500 after which the same request may succeed; a conflict is a lock that was not got in time, as OpenAI's client knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What an adapter knows of a failure.

    Attributes:
        provider: Who was asked.
        model: The model, or empty.
        message: What the provider said, or what the client did.
        status: The HTTP status, or None where no answer came. One below 400 is of an answer that failed after it had begun.
        codes: The provider's own words for the error, the most telling first.
        headers: The headers of the answer, in lower case.
        request_id: The provider's id of the request.
        details: More of the body, where it says when to come back.
        partial: What had come of the answer, or None.
    """

    provider: str
    model: str = ""
    message: str = ""
    status: int | None = None
    codes: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default=EMPTY, hash=False)
    request_id: str = ""
    details: Any = field(default=None, hash=False)
    partial: Any = field(default=None, hash=False)


def failed(fault: Fault, *, clock: Callable[[], float] = now) -> ProviderError:
    """Give the error for a failure.

    Args:
        fault: What is known.
        clock: Tells the time, for providers that name an hour to come back.
    """
    status = (
        fault.status if fault.status is not None and fault.status >= HTTPStatus.BAD_REQUEST else _meant(fault.codes)
    )
    facts: dict[str, Any] = {
        "provider": fault.provider,
        "model": fault.model,
        "status": status,
        "code": next(filter(None, fault.codes), ""),
        "request_id": fault.request_id,
        "retry_after": retry_after(fault, clock=clock),
        "partial": fault.partial,
    }
    kind, said = _kind(fault, status)
    overflow = overflow_in(_words(fault)) if kind is ContextOverflow else None
    if overflow is not None:
        facts |= {"limit": overflow.limit, "asked": overflow.asked}
    error = kind(f"{fault.provider} {said}{_quoted(fault)}", **facts)
    error.retryable = _retryable(error, fault)
    return error


def _meant(codes: tuple[str, ...]) -> int | None:
    """Give the status that the words of an error stand for; OpenRouter says the figure itself."""
    for code in codes:
        status = int(code) if code.isdecimal() else _STATUS_OF_WORD.get(code, 0)
        if HTTPStatus.BAD_REQUEST <= status < _NO_STATUS:
            return status
    return None


def _words(fault: Fault) -> str:
    return " ".join((*fault.codes, fault.message))


def _quoted(fault: Fault) -> str:
    said = " ".join(fault.message.split())
    return f": {said[:_SHOWN]}{'…' if len(said) > _SHOWN else ''}" if said else "."


def _kind(fault: Fault, status: int | None) -> tuple[type[ProviderError], str]:
    """Choose the error, and the verb of its sentence. What the words say goes before what the status says."""
    codes, words = set(fault.codes), _words(fault)
    rules: tuple[tuple[bool, type[ProviderError], str], ...] = (
        (
            bool(codes & _NO_CREDIT) or status == HTTPStatus.PAYMENT_REQUIRED or bool(_NO_CREDIT_WORDS.search(words)),
            AuthenticationFailed,
            "finds no credit",
        ),
        (status == HTTPStatus.TOO_MANY_REQUESTS or _limited(status, words), RateLimited, "limits the rate"),
        (status not in {401, 403} and overflow_in(words) is not None, ContextOverflow, "finds the request too long"),
        (status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE, ContextOverflow, "finds the request too large"),
        (
            bool(codes & _NO_MODEL) or (_is_refusal(status) and bool(_NO_MODEL_WORDS.search(fault.message))),
            ModelUnavailable,
            f"does not have the model {fault.model!r}",
        ),
        (
            status in {401, 403} or _NO_KEY_WORDS.search(words) is not None,
            AuthenticationFailed,
            "does not let us in",
        ),
        (_is_refusal(status) and status not in _LATER, RequestRefused, "refuses the request"),
    )
    for holds, kind, said in rules:
        if holds:
            return kind, said
    return ProviderDown, "was not reached" if fault.status is None else "failed"


def _limited(status: int | None, words: str) -> bool:
    """Tell whether a refusal is about rates: Groq answers 413 to a request of more tokens than a minute has."""
    return (status is None or status in {400, 403, 413, 422}) and about_rates(words)


def _is_refusal(status: int | None) -> bool:
    return status is not None and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def _retryable(error: ProviderError, fault: Fault) -> bool:
    """Tell whether the same request may succeed later: as the provider says, else by what went wrong."""
    wish = fault.headers.get("x-should-retry", "")
    if wish in {"true", "false"}:  # OpenAI's and Anthropic's clients obey it
        return wish == "true"
    if isinstance(error, RateLimited):
        return not _never_fits(fault.message)
    return error.retryable and error.status != HTTPStatus.NOT_IMPLEMENTED


_ASKED = re.compile(r"limit:? ([\d,]+)[^.]{0,40}?requested:? ([\d,]+)", re.IGNORECASE)


def _never_fits(message: str) -> bool:
    """Tell whether one request asks for more than a whole minute has: waiting does not help.

    «Limit 6000, Requested 14810» (Groq, continuedev/continue#10218).
    """
    found = _ASKED.search(message)
    return found is not None and int(found[2].replace(",", "")) > int(found[1].replace(",", ""))


# --- when to come back ---------------------------------------------------------------------------------------------------


def retry_after(fault: Fault, *, clock: Callable[[], float] = now) -> float | None:
    """Give the seconds that the provider asks to wait, or None where it does not say.

    Read are the headers `retry-after-ms` (OpenAI, Azure) and `retry-after`, in seconds or as an HTTP date (RFC 9110, 10.2.3); the
    `retryDelay` of Google's details (google.rpc.RetryInfo); and the words «try again in 1.5s» of OpenAI and Groq.
    """
    for text, unit in ((fault.headers.get("retry-after-ms"), 0.001), (fault.headers.get("retry-after"), 1.0)):
        seconds = _seconds(text or "")
        if seconds is not None:
            return seconds * unit
    named = _hour(fault.headers.get("retry-after", ""))
    if named is not None:
        return max(0.0, named - clock())
    delay = _span(_SPAN.fullmatch(_delay_in(fault.details)))
    return _span(_SPAN_IN_WORDS.search(fault.message)) if delay is None else delay


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _hour(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


_SPAN = re.compile(r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>[\d.]+)s)?(?:(?P<ms>\d+)ms)?")
_SPAN_IN_WORDS = re.compile(
    r"(?:try again|retry) in (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>[\d.]+) ?s)?(?:(?P<ms>\d+)ms)?",
    re.IGNORECASE,
)


def _span(found: re.Match[str] | None) -> float | None:
    parts = {} if found is None else found.groupdict()
    if not any(parts.values()):
        return None
    scale = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(scale[name] * (_seconds(text.rstrip(".")) or 0.0) for name, text in parts.items() if text)


def _delay_in(details: object) -> str:
    """Find Google's `retryDelay` in the details of an error."""
    if isinstance(details, Mapping):
        delay = details.get("retryDelay")
        return delay if isinstance(delay, str) else next(filter(None, map(_delay_in, details.values())), "")
    if isinstance(details, list | tuple):
        return next(filter(None, map(_delay_in, details)), "")
    return ""
