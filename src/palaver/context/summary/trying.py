"""Asking a summariser once: whatever it does instead of answering is a reason, never an exception of the turn."""

from __future__ import annotations

from anyio import fail_after

from palaver.context.summary.request import Summarizer, SummaryAnswer, SummaryRequest
from palaver.errors import PalaverError

__all__ = ["SECONDS", "tried"]

SECONDS = 120.0
"""After so many seconds a summariser is given up: a turn waits behind it."""


async def tried(summarizer: Summarizer, request: SummaryRequest, seconds: float = SECONDS) -> SummaryAnswer | str:
    """Give the answer, or why there is none: it failed, took too long, or gave something else.

    Cancelling is no failure: it goes through, and nothing has been written.
    """
    try:
        with fail_after(seconds):
            answer: object = await summarizer(request)
    except PalaverError as error:
        return str(error)
    except TimeoutError:
        return f"it did not answer within {seconds:g} seconds"
    except Exception as error:  # noqa: BLE001 - a summariser is the caller's; whatever it raises, the plan stands without it
        return f"it raised {type(error).__name__}: {error}"
    if not isinstance(answer, SummaryAnswer) or not isinstance(answer.text, str):
        return f"it gave a {type(answer).__name__}, not a SummaryAnswer"
    return answer
