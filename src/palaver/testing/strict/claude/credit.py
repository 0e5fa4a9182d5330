"""The credit after a refusal: the same question to another model costs what it would have cost there from the start.

After https://platform.claude.com/docs/en/build-with-claude/fallback-credit and ``types/beta`` of the ``anthropic`` package 2.14. How long a token is valid is not
checked.
"""

from __future__ import annotations

from typing import Final

from palaver.testing.strict.claude.fields import CREDIT, FALLBACKS, ClaudeRequest, refuse
from palaver.testing.strict.seal import Json, digest

__all__ = ["check_credit", "refusal_details"]

_FIELD: Final = "fallback_credit_token"
_KINDS: Final = {"strict", "best_effort"}


def refusal_details(subject: ClaudeRequest, given: object) -> Json:
    """Return the details of a refusal: what the script says, with a token where the request asked for one."""
    details: Json = {"type": "refusal", "category": None, "explanation": None, "recommended_model": None}
    if subject.betas.intersection((*CREDIT, *FALLBACKS)):
        body = {"body": _digest(subject), "model": subject.model.name, "account": subject.account}
        details |= {_FIELD: subject.seal.close("credit", body), "fallback_has_prefill_claim": False}
    return details | (dict(given) if isinstance(given, dict) else {})


def check_credit(subject: ClaudeRequest) -> Json | None:
    """Return what became of the token of a request, or None without one; a `strict` token that does not fit is refused."""
    given = subject.body.get(_FIELD)
    if given is None:
        return None
    if "fallbacks" in subject.body:
        refuse(f"{_FIELD}: cannot be combined with `fallbacks`")
    if isinstance(given, dict):
        subject.needs(f"{_FIELD}.mode", CREDIT[0])
    asked = {"mode": "strict"} | (given if isinstance(given, dict) else {"token": given})
    token = subject.seal.open("credit", asked.get("token"))
    if token is None or asked["mode"] not in _KINDS:
        refuse(f"{_FIELD}: the token is malformed")
    wrong = {"body": "body_mismatch", "account": "wrong_organization"}
    now = {"body": _digest(subject), "account": subject.account}
    reason = next((why for name, why in wrong.items() if token[name] != now[name]), "")
    reason = reason or ("invalid_target_model" if token["model"] == subject.model.name else "")
    if reason and asked["mode"] == "strict":
        refuse(f"{_FIELD}: {reason}")
    return {"status": {"type": "not_applied", "reason": reason} if reason else {"type": "redeemed"}}


def _digest(subject: ClaudeRequest) -> str:
    return digest(_plain([subject.body.get(name) for name in ("system", "tools", "messages")]))


def _plain(value: object) -> object:
    """Return a value without cache marks."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name != "cache_control"}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
