"""Cutting a turn off, and failing in it: the dialog stays valid, and the next call goes on."""

import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from palaver import Dialog, MemoryStore, Prompt, Session, SqliteStore, Store
from palaver.agent import Agent, InvokeResult, ProviderInvoker, shut_down
from palaver.agent.calls import GIVEN_UP, UNKNOWN
from palaver.agent.turn import ATTEMPT
from palaver.errors import CallbackFailed, Conflict, InvalidInput, ModelCallFailed, RateLimited, StoreFull
from palaver.log import Draft, Header
from palaver.log.entries import Custom, ErrorEntry, LateResult, TurnEnded, TurnStarted
from palaver.messages import Message
from palaver.models import Event, ScriptedProvider, ToolCallDelta
from palaver.tools import CallContext, tool
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, both, calling, entries, kinds, roles, scripted, sent
from tests.threads import WAIT

ROOT = Path(__file__).resolve().parents[2]


def stuck(begun: anyio.Event) -> Prompt:
    """Give a prompt with a tool that never returns, one that does, and an event for the first having begun."""

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


async def cancelled(agent: Agent, begun: anyio.Event) -> None:
    """Answer, and be cancelled as soon as the tool hangs and its neighbours are done."""
    async with anyio.create_task_group() as group:

        async def answer() -> None:
            await agent.arespond()

        group.start_soon(answer)
        await begun.wait()
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


def test_d8_cancelled_in_a_batch() -> None:
    """D8: two of three calls have their results before the third is cut off; afterwards the turn is let go of, and the session is valid."""

    async def scenario() -> None:
        begun = anyio.Event()
        script = [both(("quick", {"number": 1}), ("hang", {}), ("quick", {"number": 3})), "went on"]
        agent, provider = scripted(script, stuck(begun))
        agent.receive("go")
        await cancelled(agent, begun)
        assert agent.last_call is not None
        assert agent.last_call.state == "interrupted"
        assert roles(agent.current_dialog).count("tool") == 2
        last = entries(agent.current_dialog)[-1]
        assert isinstance(last, TurnEnded)
        assert last.outcome == "interrupted"
        assert (await agent.arespond()).content == "went on"
        results = [content for role, content in sent(provider.requests[1]) if role == "tool"]
        assert results == ["quick 1", UNKNOWN, "quick 3"]

    anyio.run(scenario)


def test_d7_cancelled_and_then_a_new_message() -> None:
    """D7: after an interruption the user says something else: what was cut off is closed and not run, and the request is valid."""

    async def scenario() -> None:
        begun = anyio.Event()
        agent, provider = scripted([both(("hang", {})), "something else"], stuck(begun))
        agent.receive("go")
        await cancelled(agent, begun)
        agent.receive("do something else")
        assert (await agent.arespond()).content == "something else"
        results = [content for role, content in sent(provider.requests[1]) if role == "tool"]
        assert results in ([UNKNOWN], [GIVEN_UP])

    anyio.run(scenario)


CTRL_C = """
import signal, sys, threading, time
from pathlib import Path
from palaver import Prompt, SqliteStore
from palaver.agent import Agent, ProviderInvoker
from palaver.messages import Message
from palaver.models import Event, ScriptedProvider, ToolCallDelta
from palaver.tools import tool
import os

@tool
async def hang() -> str:
    "Hang."
    import anyio
    print("hanging", flush=True)
    await anyio.sleep_forever()

store = SqliteStore(Path(sys.argv[1]))
prompt = Prompt(path="c/s", prompt="Go.", function_list=[hang])
script = [{"tool_calls": [{"name": "hang", "arguments": {}}]}]
agent = Agent("c", prompt, "gpt-4o-mini", ProviderInvoker(ScriptedProvider(script)), store=store)
agent.open("main", session_name="ctrl-c").receive("go")
try:
    agent.respond()
except KeyboardInterrupt:
    print("interrupted", agent.last_call.state, flush=True)
store.close()
"""


def test_ctrl_c_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    """SIGINT to a process that waits in `respond()`: KeyboardInterrupt reaches the caller when the turn has been let go of."""
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


def attempts(dialog: Dialog) -> list[Mapping[str, Any]]:
    """Give what the log keeps of answers that never became messages."""
    return [entry.data for entry in entries(dialog) if isinstance(entry, Custom) and entry.custom_type == ATTEMPT]


@pytest.mark.parametrize(("last", "come"), [("text", "a long a"), ("end", "a long answer")])
def test_a_partial_answer_is_kept_and_never_shown(last: str, come: str) -> None:
    """What had come of an answer when it was cut off, all of it included, is in the log, once; the next request does not hold it."""

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
        assert kept["why"] == "partial"
        assert Message.from_dict(kept["message"]).content == come
        agent.stream_handler = None
        assert (await agent.arespond()).content == "whole"
        assert [role for role, _ in sent(provider.requests[1])] == ["system", "user"]

    anyio.run(scenario)


def test_what_a_provider_says_had_come_is_what_is_kept() -> None:
    """A failure's own account of the answer is kept, with who said it and how it failed; the next failure has its own."""
    script = [
        {"text": "one half", "error": "ProviderDown"},
        {"error": {"kind": "ProviderDown", "message": "Nothing came."}},
        {"text": "other half", "error": {"kind": "ProviderDown", "message": "Down again."}},
        "whole",
    ]
    agent, _ = scripted(script, max_llm_recall=3, retry=QUICK)
    agent.receive("go")
    assert agent.respond().content == "whole"
    first, second = attempts(agent.current_dialog)
    assert [Message.from_dict(one["message"]).content for one in (first, second)] == ["one half", "other half"]
    assert second["error"] == "Down again."
    assert first["message"]["provider"] == "scripted"


def test_an_invoker_may_ask_two_models_in_turn() -> None:
    """What one of them began and left is void; what is kept of a turn that is cut off then is what the other one said."""

    class Second(ProviderInvoker):
        async def invoke(self, *asked: Any, **how: Any) -> InvokeResult:  # noqa: ANN401 - the protocol's
            await how["stream_handler"](ToolCallDelta(0, "c1", "add", "{"))
            result = await super().invoke(*asked, **how)
            if result.message is not None and result.message.content == "lost":
                raise OSError("the disk")
            return result

    agent = Agent("tester", Prompt(path="t/p", prompt="Go."), MODEL, Second(ScriptedProvider(["fine", "lost"])))
    agent.open("main").receive("go")
    assert agent.respond().content == "fine"
    agent.receive("again")
    with pytest.raises(CallbackFailed, match="the disk"):
        agent.respond()
    (kept,) = attempts(agent.current_dialog)
    assert Message.from_dict(kept["message"]).content == "lost"


def test_an_answer_without_an_end_is_a_failure() -> None:
    """A provider that stops in the middle, and does not say so, has given no answer; what came of it is kept."""

    class Endless(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
            async for event in super().stream(request):
                if event.type != "end":
                    yield event

    agent = Agent("tester", Prompt(path="t/p", prompt="Go."), MODEL, ProviderInvoker(Endless(["never whole"])))
    agent.open("main").receive("go")
    with pytest.raises(ModelCallFailed, match="stops before its end"):
        agent.respond()
    (kept,) = attempts(agent.current_dialog)
    assert Message.from_dict(kept["message"]).content == "never whole"


# --- providers that fail -------------------------------------------------------------------------------------------------------


def test_r140_failures_are_tried_again_within_bounds() -> None:
    """R140: `max_llm_recall` caps recalls, rate limits counted; each failure is in the log, no message of the conversation is made of it."""
    agent, provider = scripted(
        [{"error": "RateLimited"}, {"text": "cut", "error": "ProviderDown"}, "whole"], max_llm_recall=2, retry=QUICK
    )
    agent.receive("go")
    session = agent.respond(return_session=True)
    assert session.llm_recalls_count == 2
    assert session.delivery is not None
    assert session.delivery.content == "whole"
    failed = [entry.error for entry in entries(agent.current_dialog) if isinstance(entry, ErrorEntry)]
    assert failed == ["RateLimited", "ProviderDown"]
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    assert len(provider.requests) == 3


def test_without_recalls_the_first_failure_is_raised() -> None:
    """R140: by default nothing is asked again; the error has the provider's own, and the session."""
    agent, provider = scripted([{"error": {"kind": "RateLimited", "message": "Later.", "retry_after": 3}}])
    agent.receive("go")
    with pytest.raises(ModelCallFailed, match="Later") as caught:
        agent.respond()
    assert isinstance(caught.value.error, RateLimited)
    assert caught.value.error.retry_after == 3
    assert caught.value.session.state == "failure"
    assert len(provider.requests) == 1


def test_d15_errors_do_not_feed_themselves() -> None:
    """D15 (e): three failures leave three error entries, and the fourth request is the first one's equal."""
    agent, provider = scripted([{"error": "ProviderDown"}] * 3 + ["ok"])
    agent.receive("go")
    for _ in range(3):
        with pytest.raises(ModelCallFailed):
            agent.respond()
    agent.respond()
    assert provider.requests[0].body["messages"] == provider.requests[3].body["messages"]


def test_an_invoker_that_raises_is_a_typed_failure() -> None:
    """Whatever a caller's own invoker raises is a failure with the session; the dialog goes on."""
    agent, _ = scripted([ZeroDivisionError("mine"), "ok"])
    agent.receive("go")
    with pytest.raises(CallbackFailed, match="invoker"):
        agent.respond()
    assert agent.respond().content == "ok"


@pytest.mark.parametrize("when", ["call_starting", "call_ended", "end"])
def test_a_listener_that_raises_loses_nothing(when: str) -> None:
    """A stream handler that raises is a typed failure behind a durable step; the next call goes on and repeats nothing."""
    ran: list[int] = []

    @tool
    def once() -> str:
        """Do it once."""
        ran.append(1)
        return "done"

    def listen(event: object) -> None:
        if getattr(event, "type", "") == when:
            raise RuntimeError("the listener's own")

    prompt = Prompt(path="t/o", prompt="Go.", function_list=[once])
    agent, provider = scripted([calling("once"), "fine"], prompt, stream_handler=listen)
    agent.receive("go")
    with pytest.raises(CallbackFailed, match="stream handler"):
        agent.respond()
    agent.stream_handler = None
    assert agent.respond().content == "fine"
    assert ran == [1]
    assert len(provider.requests) == 2


# --- stores and other processes ---------------------------------------------------------------------------------------------------


class Fussy(MemoryStore):
    """A store that has no room for results while it is told so."""

    full = False

    def append(self, dialog_id: object, drafts: object, turn_head: int) -> tuple[Header, ...]:
        """Append, unless it is full and a result is to be written."""
        given = cast("list[Draft]", list(cast("tuple[Draft, ...]", drafts)))
        if self.full and any(one.role == "tool" for one in given):
            raise StoreFull("No room.")
        return super().append(dialog_id, given, turn_head)  # type: ignore[arg-type]


def test_d6_a_result_that_the_store_refused_is_written_first_of_all() -> None:
    """D6: executed, but not written: no model call before it is, and the retry writes exactly what is missing."""
    ran: list[int] = []

    @tool
    def once() -> str:
        """Do it once."""
        ran.append(1)
        return "done"

    store = Fussy()
    agent, provider = scripted(
        [calling("once"), "fine"], Prompt(path="t/o", prompt="Go.", function_list=[once]), store=store
    )
    agent.receive("go")
    store.full = True
    with pytest.raises(StoreFull):
        agent.respond()
    assert len(provider.requests) == 1
    store.full = False
    assert agent.respond().content == "fine"
    assert ran == [1]
    assert [content for role, content in sent(provider.requests[1]) if role == "tool"] == ["done"]


def test_d19_two_processes_and_one_turn() -> None:
    """D19: the process that takes a turn over fences the other off: its result is kept beside the turn, and it is told."""
    store = MemoryStore()

    @tool
    def taken(context: CallContext) -> str:
        """Have another process take the turn over while this one runs."""
        other = Session.open(context.dialog.session_id, store).root
        other.record(TurnEnded(outcome="interrupted"), TurnStarted(agent="other"))
        return "too late"

    agent, _ = scripted(
        [calling("taken"), "never"], Prompt(path="t/t", prompt="Go.", function_list=[taken]), store=store
    )
    agent.receive("go")
    with pytest.raises(Conflict):
        agent.respond()
    late = [entry for entry in entries(agent.current_dialog) if isinstance(entry, LateResult)]
    assert [entry.message.text_content() for entry in late] == ["too late"]
    assert "tool" not in roles(agent.current_dialog)
    assert kinds(agent.current_dialog)[-1] == "late_result"


def test_a_process_that_was_fenced_off_asks_no_model() -> None:
    """D19: whoever has lost the turn finds that out before the model is asked, not when its answer cannot be recorded."""
    store = MemoryStore()

    def listen(event: object) -> None:
        if getattr(event, "type", "") == "call_ended":
            other = Session.open("tester_main", store).root
            other.record(TurnEnded(outcome="interrupted"), TurnStarted(agent="other"))

    @tool
    def quick() -> str:
        """Return."""
        return "done"

    prompt = Prompt(path="t/q", prompt="Go.", function_list=[quick])
    agent, provider = scripted([calling("quick"), "never"], prompt, store=store, stream_handler=listen)
    agent.receive("go")
    with pytest.raises(Conflict):
        agent.respond()
    assert len(provider.requests) == 1


def test_one_dialog_is_answered_in_once_at_a_time() -> None:
    """A second turn in the same dialog is refused at once; another dialog is free."""
    agents: list[Agent] = []

    @tool
    async def again() -> str:
        """Try to answer meanwhile."""
        with pytest.raises(InvalidInput, match="already"):
            await agents[0].arespond()
        return "refused"

    agent, _ = scripted([calling("again"), "ok"], Prompt(path="t/a", prompt="Go.", function_list=[again]))
    agents.append(agent)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert agent.current_dialog.messages[3].text_content() == "refused"


def test_another_agent_does_not_take_over_what_this_process_answers() -> None:
    """Two agents of one process with one dialog: the second is refused while the first has it in hand."""
    others: list[Agent] = []

    @tool
    async def meanwhile() -> str:
        """Have another agent answer meanwhile."""
        with pytest.raises(InvalidInput, match="already"):
            await others[0].arespond()
        return "refused"

    agent, _ = scripted([calling("meanwhile"), "ok"], Prompt(path="t/m", prompt="Go.", function_list=[meanwhile]))
    other = Agent("other", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider([])))
    others.append(other.adopt("same", agent.current_dialog))
    agent.receive("go")
    assert agent.respond().content == "ok"


def test_no_thread_is_left_behind() -> None:
    """The synchronous face ends its loop and its thread when it is told to, and begins anew when it is needed."""

    def ours() -> list[threading.Thread]:
        mine = (one for one in threading.enumerate() if "palaver" in one.name or "AnyIO" in one.name)
        return [one for one in mine if one.name != "palaver-watch"]

    def plain() -> str:
        """Run in a thread."""
        return "ran"

    agent, _ = scripted([calling("plain"), "one", "two"], tools=[plain])
    agent.receive("go")
    agent.respond()
    shut_down()
    for thread in ours():  # it has given its result, and is on its way out
        thread.join(WAIT)
    assert ours() == []
    agent.receive("again")
    assert agent.respond().content == "two"
    shut_down()


def test_the_answer_of_a_process_that_never_ends_the_face(tmp_path: Path) -> None:
    """A program that just ends after `respond()` with a tool in a thread ends: nothing waits for anything."""
    program = """
from palaver import Prompt
from palaver.agent import Agent, ProviderInvoker
from palaver.messages import Message
from palaver.models import Event, ScriptedProvider, ToolCallDelta
def plain() -> str:
    "Run in a thread."
    return "ran"
script = [{"tool_calls": [{"name": "plain", "arguments": {}}]}, "bye"]
agent = Agent("a", Prompt(path="a/s", prompt="Go."), "gpt-4o-mini", ProviderInvoker(ScriptedProvider(script)), tools=[plain])
agent.open("main").receive("go")
print(agent.respond().content)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_a_forked_child_answers_too(tmp_path: Path) -> None:
    """A process that was forked off behind an answer has a loop of its own; the parent's goes on."""
    program = """
import os
from palaver import Prompt
from palaver.agent import Agent, ProviderInvoker
from palaver.messages import Message
from palaver.models import Event, ScriptedProvider, ToolCallDelta

def answer(text):
    agent = Agent("a", Prompt(path="a/s", prompt="Go."), "gpt-4o-mini", ProviderInvoker(ScriptedProvider([text])))
    agent.open("main").receive("go")
    return agent.respond().content

print(answer("before"), flush=True)
child = os.fork()
if child == 0:
    print(answer("child"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(answer("parent"), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["before", "child", "parent"]), done.stderr


def test_it_works_within_a_running_loop() -> None:
    """`respond()` in a thread with a loop of its own, as in a notebook: it waits, and answers."""

    async def cell() -> str:
        agent, _ = scripted(["from a cell"])
        agent.receive("go")
        return str(agent.respond().content)

    assert anyio.run(cell) == "from a cell"


def test_an_unknown_store_is_nobodys_turn() -> None:
    """A dialog whose turn another program left open is taken up: the turn is ended as interrupted, and answered."""
    store: Store = MemoryStore()
    session = Session.create(store, "foreign", owner="somebody")
    session.root.put_text("Be brief.", role="system")
    session.root.put_text("hello")
    session.root.record(TurnStarted(agent="somebody"))
    agent = Agent(
        "tester", Prompt(path="t/s", prompt="x"), MODEL, ProviderInvoker(ScriptedProvider(["hi"])), store=store
    )
    assert agent.resume("foreign").respond().content == "hi"
    assert kinds(agent.current_dialog)[3:5] == ["turn_ended", "turn_started"]


@pytest.mark.parametrize("where", ["parser", "listener", "approver", "async tool", "tool of a call aside"])
def test_a_callback_may_have_another_agent_answer(where: str) -> None:
    """The synchronous face works inside what runs in its loop, however deep: a callback asks another agent, and gets its answer."""
    asked: list[object] = []

    @tool
    def deep() -> str:
        """Ask a third agent, in a thread."""
        third, _ = scripted(["deep"])
        third.receive("?")
        return str(third.respond().content)

    def ask(*_: object, **__: object) -> bool:
        if not asked:
            asked.append(None)
            script = [calling("deep"), "inner"] if where == "tool of a call aside" else ["inner"]
            inner, _provider = scripted(script, Prompt(path="t/i", prompt="In.", function_list=[deep]))
            inner.receive("?")
            asked[0] = inner.respond().content
        return True

    @tool(needs_approval=where == "approver")
    async def work() -> str:
        """Work."""
        if where == "async tool":
            ask()
        return "worked"

    parser = ask if where in {"parser", "tool of a call aside"} else None
    prompt = Prompt(path="t/o", prompt="Out.", function_list=[work], parser=parser)
    agent, _ = scripted(
        [calling("work"), "outer"],
        prompt,
        stream_handler=ask if where == "listener" else None,
        approve=ask if where == "approver" else None,
    )
    agent.receive("go")
    assert agent.respond().content == "outer"
    assert asked == ["inner"]


def test_what_a_listener_gives_does_not_matter() -> None:
    """A listener may give anything, as `stdout.write` does; one that is a generator would hear nothing, and is told so."""
    agent, _ = scripted(["fine"], stream_handler=lambda event: len(str(event)))
    agent.receive("go")
    assert agent.respond().content == "fine"

    def forgotten(event: object) -> Iterator[object]:
        yield event

    deaf, _ = scripted(["fine", "fine"], stream_handler=forgotten)
    deaf.receive("go")
    with pytest.raises(CallbackFailed, match="generator"):
        deaf.respond()
