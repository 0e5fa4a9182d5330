"""Attempts at compacting, as the log has them: what was tried, what became of the summary, and so whether a summariser is still asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palaver.context.summary import Breaker, Summarized
from palaver.context.triggers import Figures, Fired
from palaver.log import ATTEMPT, Compaction, Custom, Entry, Handle, Span, entry_at
from palaver.messages import Usage, thaw
from palaver.session.calls.booking import answered_at
from palaver.store.protocol import Store
from palaver.tokens import model_info
from palaver.view import View

__all__ = ["REJECTED", "attempt_of", "breaker_of", "failed", "figures_of", "rejection", "summaries_of"]

REJECTED = ATTEMPT

_LONGEST = 400
"""Characters of a reason that are kept: an error of a provider may quote what it was sent."""


def attempt_of(trigger: Fired, focus: str, summarized: Summarized | None) -> Mapping[str, Any]:
    """Give what is recorded of an attempt: why it was made, and what became of the summary if one was asked for."""
    attempt: dict[str, Any] = {"trigger": trigger.trigger}
    attempt |= {name: said for name, said in (("why", trigger.why), ("focus", focus)) if said}
    if summarized is not None and summarized.requests:
        attempt["summary"] = {
            "requests": summarized.requests,
            "model": summarized.model,
            "refused": summarized.refused[:_LONGEST],
            "invented": list(summarized.invented),
            "failures": summarized.breaker.failures,
            "at": summarized.breaker.at,
        }
        if summarized.undigested:
            attempt["summary"]["undigested"] = [why[:_LONGEST] for why in summarized.undigested]
        if summarized.usages:
            attempt["summary"]["usage"] = [thaw(usage) for usage in summarized.usages]
    return attempt


def failed(attempt: Mapping[str, Any], why: str, before: Breaker, tokens: int) -> Mapping[str, Any]:
    """Give what is recorded of an attempt whose view could not be committed: where a summary is in it, that is a failure of the summariser.

    One that was refused is counted already.

    Args:
        attempt: What would have been recorded of it.
        why: What went wrong.
        before: The breaker before it.
        tokens: The size of the view that was to be replaced.
    """
    summary = attempt.get("summary")
    if not isinstance(summary, Mapping) or summary.get("refused"):
        return attempt
    breaker = before.after(failed=True, tokens=tokens)
    told = {"refused": why[:_LONGEST], "failures": breaker.failures, "at": breaker.at}
    return {**attempt, "summary": {**summary, **told}}


def rejection(attempt: Mapping[str, Any], reason: str, sizes: tuple[int, int]) -> Custom:
    """Give the entry of a compaction that was rejected."""
    before, after = sizes
    data = {**attempt, "rejected": reason, "tokens_before": before, "tokens_after": after}
    return Custom(custom_type=REJECTED, data=data)


def breaker_of(store: Store, spans: Sequence[Span]) -> Breaker:
    """Read the breaker off the newest attempt at a summary that a dialog holds: whoever asks next knows of the failures before him.

    Reads headers from the newest entry back to that attempt; where no summary was ever asked for, those of the whole dialog.
    """
    for span in reversed(spans):
        for header in store.headers(span.dialog, span.start, span.stop, reverse=True):
            if header.kind in {"compaction", "custom"}:
                tried = _tried(entry_at(store, Handle(span.dialog, header.seq)))
                if tried is not None:
                    return Breaker(failures=int(tried.get("failures", 0)), at=int(tried.get("at", 0)))
    return Breaker()


def summaries_of(entry: Entry) -> tuple[tuple[str, Usage], ...]:
    """Give what the answers of a summariser used that an entry tells of, each with the model; also of one that was refused or rejected."""
    summary = _tried(entry) or {}
    said = summary.get("usage", ())
    return tuple((str(summary.get("model", "")), Usage(one)) for one in said if isinstance(one, Mapping))


def _tried(entry: Entry) -> Mapping[str, Any] | None:
    """Give what an entry says of a summary that was asked for, or None."""
    data: Any = None
    if isinstance(entry, Compaction):
        data = entry.attempt
    elif isinstance(entry, Custom) and entry.custom_type == REJECTED:
        data = entry.data
    summary = data.get("summary") if isinstance(data, Mapping) else None
    return summary if isinstance(summary, Mapping) else None


def figures_of(view: View, size: int, store: Store, spans: Sequence[Span], at: float, model: str) -> Figures:
    """Give what triggers look at, but for what is said of the last compaction.

    Args:
        view: The view.
        size: Its size as a request, in tokens.
        store: Where the dialog lies.
        spans: What it holds.
        at: The time, in seconds since 1970-01-01 UTC.
        model: The model that counted, or empty.
    """
    answered = answered_at(store, spans)
    return Figures(
        events=sum(1 if exchange.derived else exchange.messages for exchange in view.exchanges),
        tokens=size,
        window=_window(model),
        idle=0.0 if answered is None else max(0.0, at - answered),
    )


def _window(model: str) -> int:
    """Give a model's window in tokens, 0 where nobody knows it: what is assumed of it elsewhere is no reason to leave anything out."""
    info = model_info(model) if model else None
    return info.context_window if info is not None and info.known else 0
