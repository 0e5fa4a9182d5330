"""A summariser is asked once: whatever it raises is a reason; only who cancels the task that asks is heard."""

import asyncio
from typing import NoReturn

import anyio
import anyio.lowlevel
import pytest

from palaver.context.summary import Summarizer, SummaryAnswer, SummaryRequest, tried


class Raising:
    """A summariser that raises."""

    def __init__(self, error: BaseException) -> None:
        """Raise this."""
        self.error = error

    async def __call__(self, request: SummaryRequest) -> NoReturn:
        """Raise."""
        del request
        raise self.error


async def on_a_cancelled_future(request: SummaryRequest) -> SummaryAnswer:
    """Wait for something that somebody else cancels, as a client does whose connection is closed under it."""
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    return SummaryAnswer(text=await future + request.transcript)


async def for_ever(request: SummaryRequest) -> SummaryAnswer:
    """Never answer."""
    await anyio.sleep_forever()
    return SummaryAnswer(text=request.transcript)


def asked(by: Summarizer, seconds: float = 60.0) -> SummaryAnswer | str:
    """Ask."""
    return anyio.run(tried, by, SummaryRequest(), seconds)


@pytest.mark.parametrize("error", [TimeoutError("of its own"), ValueError("no"), asyncio.CancelledError("of its own")])
def test_what_it_raises_is_told_as_what_it_is(error: BaseException) -> None:
    """A TimeoutError of its client's is no lateness of its own, and its cancellation is not the turn's."""
    assert asked(Raising(error)) == f"it raised {type(error).__name__}: {error}"


def test_a_future_that_is_cancelled_under_it_ends_no_turn() -> None:
    """Nobody asked this task to end."""
    assert asked(on_a_cancelled_future) == "it raised CancelledError: "


def test_one_that_never_answers_is_given_up() -> None:
    """After the seconds that it was given."""
    assert asked(for_ever, 0.0) == "it did not answer within 0 seconds"


def test_who_cancels_the_task_is_heard() -> None:
    """By the task's own `cancel`, by a scope of anyio's and by a time of asyncio's: none of them becomes a reason."""

    async def main() -> None:
        task = asyncio.ensure_future(tried(for_ever, SummaryRequest()))
        await anyio.lowlevel.checkpoint()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with anyio.move_on_after(0) as scope:
            await tried(for_ever, SummaryRequest())
        assert scope.cancelled_caught
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await tried(for_ever, SummaryRequest())

    anyio.run(main)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_a_program_goes_through(error: BaseException) -> None:
    """Neither is an answer."""
    with pytest.raises(type(error)):
        asked(Raising(error))
