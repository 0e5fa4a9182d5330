"""Cutting a turn off, and failing in it: the dialog stays valid, and the next call continues."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import MemoryStore, Prompt, Session, SqliteStore
from palaver.agent import Agent, ProviderInvoker
from palaver.errors import AgentFailure, Busy, Conflict, InvalidInput, RateLimited
from palaver.ids import now
from palaver.log import Handle
from palaver.log.entries import ErrorEntry, LateResult, TurnEnded, TurnStarted
from palaver.messages import Message
from palaver.providers import ScriptedProvider
from palaver.tools import CallContext, tool
from palaver.tools.workers import worker_limiter
from palaver.view import fold
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, attempts, both, calling, entries, kinds, results, roles, scripted, sent
from tests.loops import Gate

ROOT = Path(__file__).resolve().parents[2]


async def by_cancel(work: Callable[[], Awaitable[object]], at: int) -> bool:
    """Cancel the task itself; return whether it had not ended."""
    task = asyncio.ensure_future(work())
    return await cancelled_at(task, at, task.cancel)


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
    with suppress(asyncio.CancelledError):
        await task
    assert worker_limiter().borrowed_tokens == 0
    return going


@pytest.mark.parametrize("way", [by_cancel, by_scope])
def test_a_turn_cancelled_anywhere_is_released(
    way: Callable[[Callable[[], Awaitable[object]], int], Awaitable[bool]],
) -> None:
    """Where its view is planned, compacted, compiled and recorded: it ends as interrupted, and the next call answers."""

    async def main() -> int:
        at, going = 0, True
        while going:
            agent, _ = scripted(["Yes."] * 3, budget=700)
            dialog = agent.current_dialog
            for turn in range(12):
                dialog.put_text(f"Line {turn}. " * 40)
            agent.receive("Well?")
            going = await way(agent.arespond, at)
            ended = kinds(dialog)
            assert ended.count("turn_started") == ended.count("turn_ended") <= 1
            assert ended.count("compaction") <= 1
            if going:  # else it has been answered, and there is nothing new
                assert (await agent.arespond()).text_content() == "Yes."
            assert kinds(dialog).count("assistant") == 1
            assert dialog.view() == fold(dialog.store, dialog.dialog_id)
            at += 1
        return at

    assert anyio.run(main) >= 8


CTRL_C = """
import sys
from pathlib import Path
from palaver import Agent, ScriptedProvider, SqliteStore, tool

@tool
async def hang() -> str:
    "Hang."
    import anyio
    print("hanging", flush=True)
    await anyio.sleep_forever()

store = SqliteStore(Path(sys.argv[1]))
script = [{"tool_calls": [{"name": "hang", "arguments": {}}]}]
agent = Agent("tester", "You are tested.", "gpt-4o-mini", ScriptedProvider(script), store=store, tools=[hang])
agent.open("main", session_name="ctrl-c").receive("go")
try:
    agent.respond()
except KeyboardInterrupt:
    print("interrupted", agent.last_call.state, flush=True)
store.close()
"""


def test_ctrl_c_leaves_a_session_that_continues(tmp_path: Path) -> None:
    """SIGINT to a process that waits in `respond()`: KeyboardInterrupt reaches the caller when the turn has been released."""
    path = tmp_path / "store.db"
    program = [sys.executable, "-W", "error", "-c", CTRL_C, str(path)]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hanging\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted interrupted\n"
        assert process.wait() == 0
    with closing(SqliteStore(path)) as store:
        agent, _ = scripted(["fine"], store=store)
        agent.resume("ctrl-c").respond()
        dialog = Session.open(store, "ctrl-c").root
        assert roles(dialog) == ["system", "user", "tool_call", "tool", "assistant"]


# --- answers that were cut off ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "come"), [("text", "a long a"), ("end", "a long answer")])
def test_a_partial_answer_is_kept_and_never_shown(last: str, come: str) -> None:
    """What had come of an answer when it was cut off is in the log, once; the next request does not have it."""

    async def scenario() -> None:
        begun = anyio.Event()

        async def listen(event: object) -> None:
            if getattr(event, "type", "") == last:
                begun.set()
                await anyio.sleep_forever()

        agent, provider = scripted(["a long answer", "whole"], stream_handler=listen)
        agent.receive("go")
        async with anyio.create_task_group() as group:
            group.start_soon(agent.arespond)
            await begun.wait()
            group.cancel_scope.cancel()
        (kept,) = attempts(agent.current_dialog)
        assert (kept["why"], Message.from_dict(kept["message"]).content) == ("partial", come)
        agent.options = replace(agent.options, stream_handler=None)
        assert (await agent.arespond()).content == "whole"
        assert [role for role, _ in sent(provider.requests[1])] == ["system", "user"]

    anyio.run(scenario)


# --- providers that fail ----------------------------------------------------------------------------------------------


def test_failures_are_tried_again_within_bounds() -> None:
    """R140: `max_llm_recall` caps recalls, rate limits counted; each failure is in the log, no message is made of it. By default none is."""
    script = [{"error": "rate"}, {"text": "cut", "error": "down"}, "whole"]
    agent, provider = scripted(script, max_llm_recall=2, retry=QUICK)
    session = agent.respond("go", return_session=True)
    assert (session.llm_recalls_count, len(provider.requests)) == (2, 3)
    assert len([entry for entry in entries(agent.current_dialog) if isinstance(entry, ErrorEntry)]) == 2
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    agent, provider = scripted([{"error": {"kind": "rate", "message": "Later.", "retry_after": 3}}])
    with pytest.raises(AgentFailure, match="Later") as caught:
        agent.respond("go")
    assert isinstance(caught.value.error, RateLimited)
    assert (caught.value.kind, caught.value.error.retry_after) == ("provider", 3)
    assert caught.value.trace.state == "failure"
    assert len(provider.requests) == 1


def test_a_refused_block_is_named_and_set_aside() -> None:
    """A provider answers 400 to every request with the block: the error names it; quarantined, the turn is answered."""

    def refuses(request: Request) -> object:
        for index, message in enumerate(request.body["messages"]):
            if "poison" in str(message):
                said = f"Error code: 400 - messages[{index}].content: Invalid value"
                return {"error": {"kind": "refused", "message": said, "status": 400}}
        return "Fine."

    agent, _ = scripted(refuses)
    dialog = agent.current_dialog
    dialog.put_text("Read this: poison")
    dialog.put_text("I have.", role="assistant")
    with pytest.raises(AgentFailure, match="quarantine") as refused:
        agent.respond("And now?")
    place = f"{dialog.dialog_id[:12]}:1:0"
    assert f"quarantine({place!r})" in str(refused.value)
    dialog.marks.quarantine(place, "refused")
    assert agent.respond().content == "Fine."


# --- listeners --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["call_starting", "call_ended", "end"])
def test_a_listener_that_raises_loses_nothing(when: str) -> None:
    """A stream handler that raises is a typed failure after a durable step; the next call repeats nothing."""
    ran: list[int] = []

    @tool
    def once() -> str:
        """Do it once."""
        ran.append(1)
        return "done"

    def listen(event: object) -> None:
        if getattr(event, "type", "") == when:
            raise RuntimeError("the listener's own")

    agent, provider = scripted([calling("once"), "fine"], tools=[once], stream_handler=listen)
    with pytest.raises(AgentFailure, match="stream handler"):
        agent.respond("go")
    agent.options = replace(agent.options, stream_handler=None)
    assert agent.respond().content == "fine"
    assert (ran, len(provider.requests)) == ([1], 2)


# --- stores and other processes ---------------------------------------------------------------------------------------


def test_two_processes_and_one_turn() -> None:
    """D19: the process that takes a turn over fences the other off: its result is kept beside the turn, and it is told."""
    store = MemoryStore()

    @tool
    def taken(context: CallContext) -> str:
        """Have another process take the turn over while this one runs."""
        other = Session.open(store, context.dialog.session_id).root
        other.record(TurnEnded(outcome="interrupted"), TurnStarted(agent="other"))
        return "too late"

    agent, provider = scripted([calling("taken"), "never"], tools=[taken], store=store)
    with pytest.raises(Conflict):
        agent.respond("go")
    late = [entry for entry in entries(agent.current_dialog) if isinstance(entry, LateResult)]
    assert [entry.message.text_content() for entry in late] == ["too late"]
    assert "tool" not in roles(agent.current_dialog)
    assert len(provider.requests) == 1, "whoever has lost the turn finds that out before the model is asked"


@pytest.mark.parametrize("first", ["tool", "model"])
def test_an_append_during_a_turn_wins_and_the_turn_goes_on(first: str) -> None:
    """A program that appends to the dialog while a turn runs is first: the turn ends, says what to do, and the next call continues it with the message."""
    store = MemoryStore()
    came: list[str] = []

    def intrude(during: str) -> None:
        """Append to the dialog from elsewhere, once."""
        if during == first and not came:
            came.append(during)
            Session.open(store, "tester_main").root.put_text("one more thing")

    @tool
    def look() -> str:
        """Look."""
        intrude("tool")
        return "seen"

    def answer(request: Request) -> object:
        if len(request.body["messages"]) == 2:
            return calling("look")
        intrude("model")
        return "Both done."

    agent, provider = scripted(answer, tools=[look], store=store)
    with pytest.raises(Conflict, match=r"respond\(\) continues the turn.*receive\(\)"):
        agent.respond("go")
    assert agent.respond().content == "Both done."
    assert sent(provider.requests[-1])[-1] == ("user", "one more thing")
    (result,) = results(agent.current_dialog)
    assert ("unknown" in result) is (first == "tool"), "it had run, and the model reads that"
    late = [entry.message.text_content() for entry in entries(agent.current_dialog) if isinstance(entry, LateResult)]
    assert late == (["seen"] if first == "tool" else [])


def test_a_second_request_is_busy_and_leaves_nothing() -> None:
    """A request to a dialog that is being answered is refused at once, for another agent too, and its text is not stored.

    Within a transaction a turn is refused as well.
    """
    store = MemoryStore()
    agents: list[Agent] = []

    @tool
    async def again() -> str:
        """Try to answer meanwhile."""
        for each in agents:
            for text in ("", "And this?"):
                with pytest.raises(Busy) as refused:
                    await each.arespond(text)
                assert isinstance(refused.value, Conflict)
                assert refused.value.dialog_id == agent.current_dialog.dialog_id
        return "refused"

    agent, _ = scripted([calling("again"), "ok", "later"], tools=[again], store=store)
    other = Agent("other", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider([])))
    agents.extend((agent, other.adopt("same", agent.current_dialog)))
    assert agent.respond("go").content == "ok"
    assert results(agent.current_dialog) == ["refused"]
    assert roles(agent.current_dialog) == ["system", "user", "tool_call", "tool", "assistant"]
    before = kinds(agent.current_dialog)
    assert "inbox" not in before
    with store.transaction(), pytest.raises(InvalidInput, match="transaction"):
        agent.respond("And?")
    assert kinds(agent.current_dialog) == before
    assert agent.respond("And this?").content == "later", "a client that asks again says it once"
    assert roles(agent.current_dialog)[5:] == ["user", "assistant"]


ANSWERING = """
import sys
from palaver import Agent, ScriptedProvider, SqliteStore, tool

store = SqliteStore(sys.argv[1])

@tool
def wait() -> str:
    "Wait for the parent."
    print("waiting", flush=True)
    return sys.stdin.readline().strip()

script = [{"tool_calls": [{"name": "wait", "arguments": {}}]}, "done"]
agent = Agent("tester", "You are tested.", "gpt-4o-mini", ScriptedProvider(script), store=store, tools=[wait])
agent.open("main", session_name="two processes").respond("first")
store.close()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_request_of_another_process_is_busy(tmp_path: Path, killed: bool) -> None:
    """While a process answers, another one's request is refused and leaves nothing; it is answered once that process ended or died."""
    path = tmp_path / "store.db"
    program = [sys.executable, "-c", ANSWERING, str(path)]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        with closing(SqliteStore(path)) as store:
            agent, provider = scripted(["fine"], store=store)
            agent.resume("two processes")
            before = kinds(agent.current_dialog)
            for _ in range(2):
                with pytest.raises(Busy):
                    agent.respond("second")
            assert kinds(agent.current_dialog.reload()) == before
            assert provider.requests == []
            if killed:
                process.kill()
            else:
                process.stdin.write("go on\n")
                process.stdin.close()
            process.wait()
            assert agent.respond("second").content == "fine"
            said = [message.text_content() for message in agent.current_dialog.messages if message.role == "user"]
            assert said == ["first", "second"]
            assert process.returncode == (-signal.SIGKILL if killed else 0)


def test_a_request_that_loses_the_beginning_is_busy() -> None:
    """Another process begins a turn just before this one does: the request is refused, and its text is not stored."""
    store = MemoryStore()

    def first(event: object) -> None:
        if getattr(event, "type", "") == "turn_starting":
            Session.open(store, agent.current_dialog.session_id).root.record(TurnStarted(agent="other"))

    agent, provider = scripted(["never"], store=store, stream_handler=first)
    top = agent.current_dialog.top_prompt
    with pytest.raises(Busy):
        agent.respond("go")
    assert kinds(agent.current_dialog.reload()) == ["system", "turn_started"]
    assert agent.current_dialog.top_prompt is top
    assert provider.requests == []


@pytest.mark.parametrize(("minutes", "busy"), [(9, True), (11, False)])
def test_a_turn_of_another_machine_is_free_after_silence(minutes: int, busy: bool) -> None:
    """A turn whose process cannot be asked is being answered until its last step is ten minutes old. Then the next request continues it."""
    agent, _ = scripted(["fine"])
    agent.receive("go")
    dialog = Session.open(agent.store, agent.current_dialog.session_id).root
    dialog.record(TurnStarted(agent="other", at=now() - 60 * minutes))
    with pytest.raises(Busy) if busy else nullcontext():
        agent.respond("And this?")
    assert roles(dialog.reload()) == ["system", "user"] + ([] if busy else ["user", "assistant"])


# --- threads, loops and processes -------------------------------------------------------------------------------------


def test_respond_works_within_a_running_loop() -> None:
    """C24: `respond()` in a thread with a loop of its own, as in a notebook: it waits, and answers."""

    async def cell() -> str:
        agent, _ = scripted(["from a cell"])
        return str(agent.respond("go").content)

    assert anyio.run(cell) == "from a cell"


@pytest.mark.parametrize("where", ["parser", "listener", "approver", "tool"])
def test_a_callback_may_have_another_agent_answer(where: str) -> None:
    """A callback of an agent calls another one synchronously, whose tool calls a third in its thread: each gets its answer."""
    asked: list[object] = []

    @tool
    def deep() -> str:
        """Ask a third agent."""
        third, _ = scripted(["deep"])
        return str(third.respond("?").content)

    def ask(*_: object, **__: object) -> bool:
        if not asked:
            asked.append(None)
            inner, _provider = scripted([calling("deep"), "inner"], tools=[deep])
            asked[0] = inner.respond("?").content
        return True

    @tool(needs_approval=where == "approver")
    async def work() -> str:
        """Work."""
        if where == "tool":
            ask()
        return "worked"

    agent, _ = scripted(
        [calling("work"), "outer"],
        Prompt(path="t/o", prompt="Out.", function_list=[work], parser=ask if where == "parser" else None),
        stream_handler=ask if where == "listener" else None,
        approve=ask if where == "approver" else None,
    )
    assert agent.respond("go").content == "outer"
    assert asked == ["inner"]


@given(st.lists(st.booleans(), min_size=2, max_size=5))
def test_fence_grows_with_each_process(fails: list[bool]) -> None:
    """The calls of a process in a turn share a fence: the entry with which it began or continued the turn.

    A later process has a larger one, however the one before ended, and a call outside a turn has none.
    """
    store, fences = MemoryStore(), list[Handle | None]()

    @tool(idempotent=True)
    def note(number: int, context: CallContext) -> str:
        """Note something."""
        fences.append(context.fence)
        return str(number)

    def answer(request: Request) -> object:
        if request.body["messages"][-1]["role"] != "tool":
            return both(*(("note", {"number": len(fences) + call}) for call in range(2)))
        if failing:
            raise RateLimited("later")
        return "Done"

    for failing in fails:
        agent = Agent("clerk", "Note.", MODEL, ScriptedProvider(answer), store=store, tools=[note], max_llm_recall=0)
        agent.open("main", session_name="notes", resume=True)
        with suppress(AgentFailure) if failing else nullcontext():
            agent.respond("Note it")
    dialog = Session.open(store, "notes").root
    began = [seq for seq, entry in enumerate(entries(dialog)) if isinstance(entry, TurnStarted)]
    assert fences == [Handle(dialog.dialog_id, seq) for seq in began for _ in range(2)]
    assert CallContext().fence is None
