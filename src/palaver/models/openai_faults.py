"""What the exceptions of the `openai` package mean. LiteLLM's are made from these; so they are told by their names, without importing either."""

from __future__ import annotations

from palaver.models.client import told
from palaver.models.failures import Fault

__all__ = ["fault_of"]

_OK = 200
_REFUSED = 400


def fault_of(error: Exception, provider: str, model: str) -> Fault | str | None:
    """Say what an exception means: a fault, in a text how the answer is broken, or None for one of another package."""
    names = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] == "openai"}
    if "APIResponseValidationError" in names:
        return f"The answer makes no sense: {told(error)}"
    if "APIConnectionError" in names:
        return Fault(provider=provider, model=model, message=told(error))
    if not names:
        return None
    body = getattr(error, "body", None)
    said = body if isinstance(body, dict) else {}
    headers = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    words = (getattr(error, "code", None), said.get("code"), said.get("type"))
    return Fault(
        provider=provider,
        model=model,
        message=_text(said.get("message")) or str(error),
        status=_status(error, names),
        codes=tuple(filter(None, map(_text, words))),
        headers={str(key).lower(): str(value) for key, value in headers.items()},
        request_id=_text(getattr(error, "request_id", None)),
        details=body,
    )


def _status(error: Exception, names: set[str]) -> int:
    """Give the status. An error inside an answer has that of the answer; one of the client's own, before anything was sent, is a refusal."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    return _OK if "APIError" in names else _REFUSED


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
