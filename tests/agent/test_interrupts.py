"""Cutting a turn off, and failing in it: the dialog stays valid, and the next call continues."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from palaver import MemoryStore, Prompt, Session, SqliteStore, Store
from palaver.agent import Agent, InvokeResult, ProviderInvoker
from palaver.agent.calls import GIVEN_UP, UNKNOWN
from palaver.errors import AgentFailure, Conflict, InvalidInput, RateLimited, StoreError
from palaver.log import Draft, Header
from palaver.log.entries import ErrorEntry, LateResult, TurnEnded, TurnStarted
from palaver.messages import Message
from palaver.models import Event, ScriptedProvider, ToolCallDelta
from palaver.tools import CallContext, tool
from palaver.tools.workers import worker_limiter
from palaver.view import fold
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, attempts, both, calling, entries, kinds, results, roles, scripted, sent
from tests.loops import Gate

ROOT = Path(__file__).resolve().parents[2]


def stuck(begun: anyio.Event) -> Prompt:
    """Return a prompt with a tool that never returns and one that does."""

    @tool
    async def hang() -> str:
        """Hang."""
        begun.set()
        await anyio.sleep_forever()
        return "never"

    @tool
    async def quick(number: int) -> str:
        """Return."""
        return f"quick {number}"

    return Prompt(path="t/h", prompt="Go.", function_list=[hang, quick])


async def cancelled(agent: Agent, begun: anyio.Event, ended: int = 0) -> None:
    """Answer, and cancel that when the tool hangs and so many results are in the log."""
    async with anyio.create_task_group() as group:
        group.start_soon(agent.arespond)
        await begun.wait()
        while len(results(agent.current_dialog)) < ended:  # noqa: ASYNC110 - nothing sets an event
            await anyio.sleep(0.002)
        group.cancel_scope.cancel()


def test_d8_cancelled_in_a_batch() -> None:
    """D8: two of three calls have their results before the third is cut off; the turn is released, and the session valid."""

    async def scenario() -> None:
        begun = anyio.Event()
        script = [both(("quick", {"number": 1}), ("hang", {}), ("quick", {"number": 3})), "went on"]
        agent, _ = scripted(script, stuck(begun))
        agent.receive("go")
        await cancelled(agent, begun, ended=2)
        assert agent.last_call is not None
        assert agent.last_call.state == "interrupted"
        assert roles(agent.current_dialog).count("tool") == 2
        last = entries(agent.current_dialog)[-1]
        assert isinstance(last, TurnEnded)
        assert last.outcome == "interrupted"
        assert (await agent.arespond()).content == "went on"
        assert sorted(results(agent.current_dialog)) == sorted(["quick 1", UNKNOWN, "quick 3"])

    anyio.run(scenario)


def test_d7_cancelled_and_then_a_new_message() -> None:
    """D7: after an interruption the user says something else: what was cut off is closed and not run."""

    async def scenario() -> None:
        begun = anyio.Event()
        agent, provider = scripted([both(("hang", {})), "something else"], stuck(begun))
        agent.receive("go")
        await cancelled(agent, begun)
        assert (await agent.arespond("do something else")).content == "something else"
        (result,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
        assert result in {UNKNOWN, GIVEN_UP}

    anyio.run(scenario)


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
        dialog = Session.open("ctrl-c", store).root
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
        agent.options["stream_handler"] = None
        assert (await agent.arespond()).content == "whole"
        assert [role for role, _ in sent(provider.requests[1])] == ["system", "user"]

    anyio.run(scenario)


def test_partial_answers_of_failures_are_kept() -> None:
    """A failure's own account of the answer is kept, with who said it; so is the rest of one without an end."""
    script = [
        {"text": "one half", "error": "down"},
        {"error": {"kind": "down", "message": "Nothing came."}},
        {"text": "other half", "error": {"kind": "down", "message": "Down again."}},
        "whole",
    ]
    agent, _ = scripted(script, max_llm_recall=3, retry=QUICK)
    assert agent.respond("go").content == "whole"
    first, second = attempts(agent.current_dialog)
    assert [Message.from_dict(one["message"]).content for one in (first, second)] == ["one half", "other half"]
    assert (second["error"], first["message"]["provider"]) == ("Down again.", "scripted")

    class Endless(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
            async for event in super().stream(request):
                if event.type != "end":
                    yield event

    agent = Agent("tester", "Go.", MODEL, Endless(["never whole"]))
    with pytest.raises(AgentFailure, match="stops before its end"):
        agent.respond("go")
    assert Message.from_dict(attempts(agent.current_dialog)[0]["message"]).content == "never whole"


def test_an_invoker_may_ask_two_models_in_turn() -> None:
    """What one of them began and left is void; what is kept of a turn that fails then is what the other one said."""

    class Second(ProviderInvoker):
        async def invoke(self, *asked: Any, **how: Any) -> InvokeResult:  # noqa: ANN401 - the protocol's
            await how["stream_handler"](ToolCallDelta(0, "c1", "add", "{"))
            result = await super().invoke(*asked, **how)
            if result.message is not None and result.message.content == "lost":
                raise OSError("the disk")
            return result

    agent = Agent("tester", "Go.", MODEL, Second(ScriptedProvider(["fine", "lost", "ok"])))
    assert agent.respond("go").content == "fine"
    with pytest.raises(AgentFailure, match=r"invoker.*the disk"):
        agent.respond("again")
    (kept,) = attempts(agent.current_dialog)
    assert Message.from_dict(kept["message"]).content == "lost"
    assert agent.respond().content == "ok"


# --- providers that fail ----------------------------------------------------------------------------------------------


def test_r140_failures_are_tried_again_within_bounds() -> None:
    """R140: `max_llm_recall` caps recalls, rate limits counted; each failure is in the log, and no message is made of it."""
    script = [{"error": "rate"}, {"text": "cut", "error": "down"}, "whole"]
    agent, provider = scripted(script, max_llm_recall=2, retry=QUICK)
    session = agent.respond("go", return_session=True)
    assert (session.llm_recalls_count, len(provider.requests)) == (2, 3)
    assert len([entry for entry in entries(agent.current_dialog) if isinstance(entry, ErrorEntry)]) == 2
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]


def test_without_recalls_the_first_failure_is_raised() -> None:
    """R140: by default nothing is asked again; the error has the provider's own, and the trace."""
    agent, provider = scripted([{"error": {"kind": "rate", "message": "Later.", "retry_after": 3}}])
    with pytest.raises(AgentFailure, match="Later") as caught:
        agent.respond("go")
    assert isinstance(caught.value.error, RateLimited)
    assert (caught.value.kind, caught.value.error.retry_after) == ("provider", 3)
    assert caught.value.session.state == "failure"
    assert len(provider.requests) == 1


def test_d15_errors_do_not_feed_themselves() -> None:
    """D15 (e): three failures leave three error entries, and the fourth request is the first one's equal."""
    agent, provider = scripted([{"error": "down"}] * 3 + ["ok"])
    agent.receive("go")
    for _ in range(3):
        with pytest.raises(AgentFailure):
            agent.respond()
    agent.respond()
    assert provider.requests[0].body["messages"] == provider.requests[3].body["messages"]


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
    agent.options["stream_handler"] = None
    assert agent.respond().content == "fine"
    assert (ran, len(provider.requests)) == ([1], 2)


def test_return_value_of_a_listener_is_ignored() -> None:
    """A listener may return anything, as `stdout.write` does; a generator would hear nothing, and that is an error."""
    agent, _ = scripted(["fine"], stream_handler=lambda event: len(str(event)))
    assert agent.respond("go").content == "fine"

    def forgotten(event: object) -> Iterator[object]:
        yield event

    agent, _ = scripted(["fine"], stream_handler=forgotten)
    with pytest.raises(AgentFailure, match="generator"):
        agent.respond("go")


# --- stores and other processes ---------------------------------------------------------------------------------------


class Fussy(MemoryStore):
    """A store that has no room for results while it is told so."""

    full = False

    def append(self, dialog_id: object, drafts: object, turn_head: int) -> tuple[Header, ...]:
        """Append, unless it is full and a result is to be written."""
        given = cast("list[Draft]", list(cast("tuple[Draft, ...]", drafts)))
        if self.full and any(one.role == "tool" for one in given):
            raise StoreError("No room.", reason="full")
        return super().append(dialog_id, given, turn_head)  # type: ignore[arg-type]


def test_d6_a_refused_result_is_written_first_of_all() -> None:
    """D6: run, but not written: no model call before it is, and the retry writes exactly what is missing."""
    ran: list[int] = []

    @tool
    def once() -> str:
        """Do it once."""
        ran.append(1)
        return "done"

    store = Fussy()
    agent, provider = scripted([calling("once"), "fine"], tools=[once], store=store)
    store.full = True
    with pytest.raises(StoreError):
        agent.respond("go")
    assert len(provider.requests) == 1
    store.full = False
    assert agent.respond().content == "fine"
    assert (ran, results(agent.current_dialog)) == ([1], ["done"])


def test_d19_two_processes_and_one_turn() -> None:
    """D19: the process that takes a turn over fences the other off: its result is kept beside the turn, and it is told."""
    store = MemoryStore()

    @tool
    def taken(context: CallContext) -> str:
        """Have another process take the turn over while this one runs."""
        other = Session.open(context.dialog.session_id, store).root
        other.record(TurnEnded(outcome="interrupted"), TurnStarted(agent="other"))
        return "too late"

    agent, provider = scripted([calling("taken"), "never"], tools=[taken], store=store)
    with pytest.raises(Conflict):
        agent.respond("go")
    late = [entry for entry in entries(agent.current_dialog) if isinstance(entry, LateResult)]
    assert [entry.message.text_content() for entry in late] == ["too late"]
    assert "tool" not in roles(agent.current_dialog)
    assert len(provider.requests) == 1, "whoever has lost the turn finds that out before the model is asked"


def test_a_dialog_is_answered_in_once_at_a_time() -> None:
    """A second turn in the same dialog is refused at once, for another agent too; so is one within a transaction."""
    store = MemoryStore()
    agents: list[Agent] = []

    @tool
    async def again() -> str:
        """Try to answer meanwhile."""
        for each in agents:
            with pytest.raises(InvalidInput, match="already"):
                await each.arespond()
        return "refused"

    agent, _ = scripted([calling("again"), "ok", "later"], tools=[again], store=store)
    other = Agent("other", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider([])))
    agents.extend((agent, other.adopt("same", agent.current_dialog)))
    assert agent.respond("go").content == "ok"
    assert results(agent.current_dialog) == ["refused"]
    before = kinds(agent.current_dialog)
    with store.transaction(), pytest.raises(InvalidInput, match="transaction"):
        agent.respond("And?")
    assert kinds(agent.current_dialog) == before


def test_a_turn_left_open_by_another_program() -> None:
    """It is ended as interrupted, and answered; the agent is told that another system prompt is in force (R27)."""
    store: Store = MemoryStore()
    session = Session.create(store, "foreign", owner="somebody")
    session.root.put_text("Be brief.", role="system")
    session.root.put_text("hello")
    session.root.record(TurnStarted(agent="somebody"))
    agent = Agent("tester", "x", MODEL, ScriptedProvider(["hi"]), store=store)
    with pytest.warns(UserWarning, match="another system prompt"):
        agent.resume("foreign")
    assert agent.respond().content == "hi"
    assert kinds(agent.current_dialog)[3:5] == ["turn_ended", "turn_started"]


# --- threads, loops and processes -------------------------------------------------------------------------------------


def test_respond_works_within_a_running_loop() -> None:
    """C24: `respond()` in a thread with a loop of its own, as in a notebook: it waits, and answers."""

    async def cell() -> str:
        agent, _ = scripted(["from a cell"])
        return str(agent.respond("go").content)

    assert anyio.run(cell) == "from a cell"


@pytest.mark.parametrize("where", ["parser", "listener", "approver", "async tool", "tool in a thread"])
def test_a_callback_may_have_another_agent_answer(where: str) -> None:
    """A callback, however deep, calls another agent synchronously, and gets its answer."""
    asked: list[object] = []

    @tool
    def deep() -> str:
        """Ask a third agent, in a thread."""
        third, _ = scripted(["deep"])
        return str(third.respond("?").content)

    def ask(*_: object, **__: object) -> bool:
        if not asked:
            asked.append(None)
            script = [calling("deep"), "inner"] if where == "tool in a thread" else ["inner"]
            inner, _provider = scripted(script, tools=[deep])
            asked[0] = inner.respond("?").content
        return True

    @tool(needs_approval=where == "approver")
    async def work() -> str:
        """Work."""
        if where == "async tool":
            ask()
        return "worked"

    parser = ask if where in {"parser", "tool in a thread"} else None
    agent, _ = scripted(
        [calling("work"), "outer"],
        Prompt(path="t/o", prompt="Out.", function_list=[work], parser=parser),
        stream_handler=ask if where == "listener" else None,
        approve=ask if where == "approver" else None,
    )
    assert agent.respond("go").content == "outer"
    assert asked == ["inner"]
