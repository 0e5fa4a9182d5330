"""A compaction that is cancelled anywhere leaves nothing behind; a turn that is, is let go of, and the next one goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import pytest

from palaver import Agent, Dialog, Prompt, ScriptedProvider
from palaver.agent import AutoCompact
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import HEADINGS
from palaver.context.triggers import EventCount
from palaver.tools.workers import run_in_worker, worker_limiter
from palaver.view import fold
from tests.agent.helper import kinds
from tests.loops import Gate
from tests.session.compaction.test_compactions import talked

GOOD = "\n\n".join(f"## {heading}\nwhat was said of it" for heading in HEADINGS)


async def summarise(request: SummaryRequest) -> SummaryAnswer:
    """Answer behind a wait in which it can be cancelled, too."""
    await run_in_worker(lambda: None)
    del request
    return SummaryAnswer(text=GOOD)


async def by_cancel(work: Callable[[], Awaitable[object]], at: int) -> bool:
    """Cancel the task itself, as Ctrl-C does in a program of asyncio; give whether it had not come to its end."""
    task = asyncio.ensure_future(work())
    return await cancelled_at(task, at, task.cancel)


async def by_timeout(work: Callable[[], Awaitable[object]], at: int) -> bool:
    """Let the time of asyncio run out."""
    until: list[asyncio.Timeout] = []

    async def in_time() -> None:
        async with asyncio.timeout(None) as limit:
            until.append(limit)
            await work()

    task = asyncio.ensure_future(in_time())
    return await cancelled_at(task, at, lambda: until[0].reschedule(0))


async def by_scope(work: Callable[[], Awaitable[object]], at: int) -> bool:
    """Cancel a scope of anyio's around it, as the portal of synchronous callers does at Ctrl-C."""
    scope = anyio.CancelScope()

    async def scoped() -> None:
        with scope:
            await work()

    return await cancelled_at(asyncio.ensure_future(scoped()), at, scope.cancel)


async def cancelled_at(task: asyncio.Task[object], at: int, cancel: Callable[[], object]) -> bool:
    """Let a task do so many pieces of work beside the loop, and cancel it before the next one begins."""
    async with Gate(task) as gate:
        while gate.held_up <= at and not task.done():
            await gate.on()
        going = not task.done()
        if going:
            cancel()
            await asyncio.wait([task])
    with suppress(asyncio.CancelledError, TimeoutError):
        await task
    assert worker_limiter().borrowed_tokens == 0
    assert worker_limiter().statistics().tasks_waiting == 0
    return going


WAYS = [by_cancel, by_timeout, by_scope]


def written(dialog: Dialog) -> list[tuple[int, bytes]]:
    """Give all that a dialog's log holds of its own."""
    return list(dialog.store.bodies(dialog.dialog_id))


@pytest.mark.parametrize("way", WAYS)
def test_a_compaction_that_is_cancelled_anywhere_leaves_nothing_behind(
    way: Callable[[Callable[[], Awaitable[object]], int], Awaitable[bool]],
) -> None:
    """Before each piece of its work and in the summariser: the log is as it was, no place is taken, and the next one is as good as any."""
    dialog = talked(20)
    before = written(dialog)

    async def main() -> int:
        at = 0
        while await way(lambda: dialog.acompact(summarizer=summarise), at):
            assert written(dialog) == before
            at += 1
        return at

    assert anyio.run(main) >= 6
    preview = dialog.compact(summarizer=summarise)
    assert preview.refused == ""
    preview.approve()
    assert dialog.view() == fold(dialog.store, dialog.dialog_id)


@pytest.mark.parametrize("way", [by_cancel, by_scope])
def test_a_turn_that_is_cancelled_anywhere_is_let_go_of(
    way: Callable[[Callable[[], Awaitable[object]], int], Awaitable[bool]],
) -> None:
    """Where its view is compacted, planned, compiled and recorded: it ends as interrupted, and the next call gives the answer."""

    async def main() -> int:
        at, going = 0, True
        while going:
            compact = AutoCompact(triggers=(EventCount(10),), summarizer=summarise)
            agent = Agent("a", Prompt(path="a", prompt="b"), "gpt-5", ScriptedProvider(["Yes."] * 3), compact=compact)
            dialog = agent.open("main").current_dialog
            for turn in range(12):
                dialog.put_text(f"Line {turn}. " * 60)
            agent.receive("Well?")
            going = await way(agent.arespond, at)
            ended = kinds(dialog)
            assert ended.count("turn_started") == ended.count("turn_ended") <= 1
            assert ended.count("compaction") <= 1
            answer = await agent.arespond()
            assert answer.text_content() == "Yes."
            assert kinds(dialog).count("assistant") == 1
            assert dialog.view() == fold(dialog.store, dialog.dialog_id)
            at += 1
        return at

    assert anyio.run(main) >= 10
