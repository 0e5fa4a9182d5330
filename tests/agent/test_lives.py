"""Lives of a dialog: whatever happens to it, in any order, the promises of a turn hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from palaver import Dialog, MemoryStore, Prompt, Session
from palaver.agent import Agent, Decision, ProviderInvoker, decide, open_calls
from palaver.agent.calls import GIVEN_UP, UNKNOWN
from palaver.context import POLICIES
from palaver.errors import AgentFailure, ParseError
from palaver.log.entries import CallStarted, Inbox
from palaver.messages import Message, Speaker
from palaver.providers import ScriptedProvider
from palaver.testing.kills import dying_store
from palaver.tools import tool
from palaver.wire import Request
from tests.agent.helper import MODEL, Died, die, entries

TOOLS = ("write", "look", "peek", "pay", "missing")
POLICY = st.sampled_from(["claude-code", None, *sorted(set(POLICIES) - {"full", "lllm"})])
"""The policies that never refuse a view that could be cut, as `full` and `lllm` do; the one that reads files again comes twice."""

BEGUN: list[tuple[str, object]] = [("call", ("look", "write", "peek"))] * 2
"""What the model says first, so that there are files to read again."""

FILLER = "word " * 200

calls = st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)
answers = st.one_of(
    st.builds(lambda names: ("call", tuple(names)), calls),
    st.sampled_from([("say", "fine"), ("say", "bad"), ("fail", "down"), ("fail", "rate")]),
)
steps = st.one_of(
    st.tuples(st.just("receive")),
    st.tuples(st.just("inbox")),
    st.tuples(st.just("respond")),
    st.tuples(st.sampled_from(["ask", "abandon"])),
    st.tuples(st.just("die"), st.integers(1, 12)),
    st.tuples(st.sampled_from(["approve", "deny", "edit"])),
)


def not_bad(text: str) -> dict[str, object]:
    """Take every answer but one."""
    if text == "bad":
        raise ParseError("It is bad.", content=text)
    return {"said": text}


@dataclass
class Life:
    """One dialog in one store, and every process that ever has it in hand.

    Attributes:
        script: What the model says, one answer a request; when it has run out, a final answer.
        policy: The policy that makes views smaller, or None.
        store: What the processes share.
        asked: How many requests were answered.
        ran: What the tools did, by call id.
        said: What was said to the agent.
        deaths: How many processes died.
        abandoned: Whether somebody ever went on without a decision.
    """

    script: list[tuple[str, object]]
    policy: str | None = None
    store: MemoryStore = field(default_factory=MemoryStore)
    asked: int = 0
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    deaths: int = 0
    abandoned: bool = False

    def answer(self, request: Request) -> object:
        """Return the next answer; every request has been held to its provider's rules before it gets here."""
        assert request.body["messages"]
        kind, what = self.script[self.asked] if self.asked < len(self.script) else ("say", "fine")
        self.asked += 1
        if kind == "fail":
            return {"text": "cut off", "error": what}
        if kind == "say":
            return str(what)
        names: tuple[str, ...] = what  # type: ignore[assignment]
        made = [
            {"name": name, "id": f"{name}:0", "arguments": {"key": f"{self.asked}.{number}"}}
            for number, name in enumerate(names)
        ]
        return {"tool_calls": made}

    def agent(self, deadly: int = -1) -> Agent:
        """Return the agent of a new process, which dies behind a write."""

        @tool(reads="key", writes="key")
        def write(key: str) -> str:
            """Write: doing it twice is doing it twice."""
            self.ran["write", key] += 1
            return f"{FILLER}wrote {key}"

        @tool(reads="key", idempotent=True)
        def look(key: str) -> str:
            """Look: doing it twice is doing it once."""
            self.ran["look", key] += 1
            return f"{FILLER}saw {key}"

        @tool(reads="key")
        def peek(key: str) -> str:
            """Peek: it reads, and nobody says that it does nothing else."""
            self.ran["peek", key] += 1
            return f"{FILLER}peeked {key}"

        @tool(reads="key", idempotent=True, needs_approval=True)
        def pay(key: str) -> str:
            """Pay: somebody must agree."""
            self.ran["pay", key] += 1
            return f"{FILLER}paid {key}"

        prompt = Prompt(path="life/system", prompt="Live.", function_list=[write, look, peek, pay], parser=not_bad)
        store = dying_store(self.store, deadly, die)
        invoker = ProviderInvoker(ScriptedProvider(self.answer))
        cut: dict[str, Any] = {} if self.policy is None else {"context_manager": self.policy, "budget": 2_500}
        agent = Agent("liver", prompt, MODEL, invoker, store=store, max_interrupt_steps=6, max_exception_retry=1, **cut)
        return agent.open("life", session_name="life", resume=True)

    def dialog(self) -> Dialog:
        """Return the dialog as a program sees it that knows no agent."""
        return Session.open(self.store, "life").root

    def respond(self, deadly: int = -1, text: str = "", *, abandon: bool = False) -> str:
        """Answer, or go on answering, in a new process; give how that ended."""
        try:
            return self.agent(deadly).respond(text, return_session=True, abandon=abandon).state
        except AgentFailure as error:
            return str(error.trace.state)
        except (Died, BaseExceptionGroup):
            self.deaths += 1
            return "died"

    def step(self, step: tuple[object, ...]) -> None:
        """Have something happen."""
        if step[0] in {"receive", "inbox", "ask"}:
            self.said.append(f"message {len(self.said)} {FILLER}")
        match step:
            case ("receive",):
                self.agent().receive(self.said[-1])
            case ("inbox",):
                self.dialog().record(Inbox(message=Message(role="user", content=self.said[-1])), beside=True)
            case ("respond" | "ask" | "abandon" as word,):
                self.abandoned |= word == "abandon"
                self.respond(text=self.said[-1] if word == "ask" else "", abandon=word == "abandon")
            case ("die", int(writes)):
                self.respond(writes)
            case (str(word),):
                self._decide(word)

    def _decide(self, word: str) -> None:
        for call in open_calls(self.dialog())[:1]:
            arguments = {"key": f"edited {call.args['key']}"} if word == "edit" else None
            decide(self.dialog(), call.id, Decision(decision=word, arguments=arguments))  # type: ignore[arg-type]

    def end(self) -> None:
        """Bring it to an end: decide what is open, and answer until it is answered."""
        state = ""
        for _ in range(60):
            state = self.respond()
            if state == "success" and not open_calls(self.dialog()):
                return
            for call in open_calls(self.dialog()):
                decide(self.dialog(), call.id, Decision(decision="approve"))
        raise AssertionError(f"it never ends: {state}")

    def check(self) -> None:
        """Hold it to the promises."""
        dialog = self.dialog()
        messages = list(dialog.messages)
        said = [message.text_content() for message in messages if message.speaker is Speaker.HUMAN]
        assert sorted(said) == sorted(self.said), "each message once"
        for index, message in enumerate(messages):
            for call in message.tool_calls():
                following = messages[index + 1 :]
                until = next((n for n, one in enumerate(following) if one.is_assistant_side), len(following))
                results = [b for one in following[:until] for b in one.tool_results() if b.id == call.id]
                assert len(results) == 1, f"one result for {call.id}, not {len(results)}"
                self._check_effect(call.name, str(call.args["key"]), results[0].text())
        begun = [entry for entry in entries(dialog) if isinstance(entry, CallStarted)]
        looks = sum(times for (name, _), times in self.ran.items() if name == "look")
        assert looks <= sum(entry.tool == "look" for entry in begun) + self.deaths, "nothing is read without a record"
        assert {entry.tool for entry in begun if entry.repeats} <= {"look"}, "only what reads and does nothing else"
        turns = [entry.kind for entry in entries(dialog) if entry.kind.startswith("turn_")]
        assert turns == ["turn_started", "turn_ended"] * (len(turns) // 2), "turns open and close"

    def _check_effect(self, name: str, key: str, said: str) -> None:
        times = self.ran[name, key] + self.ran[name, f"edited {key}"]
        done = {"write": "wrote", "look": "saw", "peek": "peeked", "pay": "paid"}.get(name, "")
        ran = said.endswith((f"{done} {key}", f"{done} edited {key}"))
        if name == "look":
            assert times >= 1 or not ran, "what has a result ran"
        elif name == "missing":
            assert times == 0
        else:
            assert times <= 1, "nothing ran twice"
            assert said == UNKNOWN or times == ran, "what has a result ran, what was refused did not"
            assert name != "pay" or said != GIVEN_UP or self.abandoned, "no message cancels what waits for a person"


def live(script: list[tuple[str, object]], happens: list[tuple[object, ...]], policy: str | None) -> None:
    """Live through it, come to an end, and hold it to the promises."""
    life = Life([*BEGUN, *script], policy)
    life.agent().receive("begin")
    life.said.append("begin")
    for step in happens:
        life.step(step)
    life.end()
    life.check()


@given(st.lists(answers, max_size=10), st.lists(steps, min_size=1, max_size=14), POLICY)
def test_laws_4_5_18_any_life_keeps_the_promises(
    script: list[tuple[str, object]], happens: list[tuple[object, ...]], policy: str | None
) -> None:
    """Messages, deaths behind any write, failing providers, refused answers, decisions, in any order, over any number of processes, under any policy.

    Every message is in the conversation once, every call has one result, nothing that is not idempotent ran twice, every request was valid,
    and in the end it is answered.
    """
    live(script, happens, policy)
