"""Asking a summariser once: whatever it does instead of answering is a reason, never an exception of the turn."""

from __future__ import annotations

from asyncio import CancelledError, current_task

from anyio import move_on_after

from palaver.context.summary.request import Summarizer, SummaryAnswer, SummaryRequest
from palaver.errors import PalaverError

__all__ = ["SECONDS", "tried"]

SECONDS = 120.0
"""After so many seconds a summariser is given up: a turn waits behind it."""


async def tried(summarizer: Summarizer, request: SummaryRequest, seconds: float = SECONDS) -> SummaryAnswer | str:
    """Give the answer, or why there is none: it failed, took too long, or gave something else.

    Cancelling is no failure: it goes through, and nothing has been written. A cancellation that nobody asked this task for is the
    summariser's own, of a task or future that it waited for.
    """
    answer: object = None
    try:
        with move_on_after(seconds) as time:
            answer = await summarizer(request)
    except PalaverError as error:
        return str(error)
    except CancelledError as error:
        if _cancelled():
            raise
        return _raised(error)
    except Exception as error:  # noqa: BLE001 - a summariser is the caller's; whatever it raises, the plan stands without it
        return _raised(error)
    if time.cancelled_caught:
        return f"it did not answer within {seconds:g} seconds"
    return answer if isinstance(answer, SummaryAnswer) and isinstance(answer.text, str) else _other(answer)


def _other(answer: object) -> str:
    """Say what was given in the place of an answer."""
    if isinstance(answer, SummaryAnswer):
        return f"it gave a SummaryAnswer whose text is of type {type(answer.text).__name__}, not str"
    return f"it gave a {type(answer).__name__}, not a SummaryAnswer"


def _cancelled() -> bool:
    """Tell whether somebody asked this task to end: scopes of anyio do it as everybody does, by `cancel`."""
    task = current_task()
    return task is None or task.cancelling() > 0


def _raised(error: BaseException) -> str:
    return f"it raised {type(error).__name__}: {error}"
