"""Agents of the Agent Framework with palaver's providers: the session is whole and durable, requests fit, what is left out comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from palaver import Session
from palaver.errors import Conflict, InvalidInput
from palaver.store import Store

af = pytest.importorskip("agent_framework", reason="agent-framework-core is not installed: ./run integrations")
adapter = pytest.importorskip("palaver.integrations.agent_framework")

BUDGET = 4_000


class Script(af.FunctionInvocationLayer, af.ChatMiddlewareLayer, af.BaseChatClient):  # type: ignore[misc, name-defined] # unknown where the framework is missing
    """A client of a model that gives answers in their order, and keeps the requests."""

    def __init__(self, *answers: Any, model: str = "gpt-5") -> None:  # noqa: ANN401 - messages, or functions
        """Take the answers."""
        super().__init__()
        self.model = model
        self.answers = answers
        self.requests: list[list[Any]] = []
        self.offered: list[list[str]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:  # noqa: ANN401 - the framework's
        self.requests.append(list(messages))
        self.offered.append([tool.name for tool in options.get("tools") or ()])
        answer = self.answers[len(self.requests) - 1]
        answer = answer(messages) if callable(answer) else answer

        async def updates() -> Any:  # noqa: ANN401 - the framework's
            yield af.ChatResponseUpdate(contents=answer.contents, role=answer.role)

        async def whole() -> Any:  # noqa: ANN401 - the framework's
            return af.ChatResponse(messages=answer)

        return af.ResponseStream(updates(), finalizer=af.ChatResponse.from_updates) if stream else whole()


def read_file(number: int) -> str:
    """Read a file."""
    return f"File {number} says: " + "grey weather. " * 200


def asks(number: int, name: str = "read_file", **args: Any) -> Any:  # noqa: ANN401 - a message
    """Return an answer that calls a tool."""
    call = af.Content.from_function_call(f"c{number}", name, arguments=args or {"number": number})
    return af.Message("assistant", [call])


def says(words: str) -> Any:  # noqa: ANN401 - a message
    """Return an answer in words."""
    return af.Message("assistant", [words])


def built(script: Script, store: Store, *, each_call: bool = True, tools: Any = (read_file,), **fits: Any) -> Any:  # noqa: ANN401 - an agent
    """Return an agent with both providers."""
    providers = [adapter.PalaverHistoryProvider(store), adapter.PalaverFitProvider(**fits)]
    return af.Agent(
        script,
        "Read.",
        tools=list(tools),
        context_providers=providers,
        require_per_service_call_history_persistence=each_call,
    )


def run(agent: Any, words: str, session: Any = None) -> str:  # noqa: ANN401 - the framework's
    """Run an agent in the session `talk`, and return what it answers."""
    session = session or agent.create_session(session_id="talk")
    return str(asyncio.run(agent.run(words, session=session)).text)


def parts(messages: Any, kind: str) -> list[Any]:  # noqa: ANN401 - the framework's
    """Return the contents of one kind."""
    return [part for message in messages for part in message.contents if part.type == kind]


def is_valid(request: Any) -> bool:  # noqa: ANN401 - messages
    """Return whether each call has its result in the next message, and each result its call."""
    open_calls: list[str] = []
    for message in request:
        results = [part.call_id for part in parts([message], "function_result")]
        if results != open_calls:
            return False
        open_calls = [part.call_id for part in parts([message], "function_call")]
    return not open_calls


def stored(store: Store) -> Any:  # noqa: ANN401 - messages
    """Return the messages of the session in the store."""
    return Session.open(store, "talk").root.messages


@pytest.mark.parametrize("each_call", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_requests_are_small_and_the_session_is_whole(store: Store, each_call: bool, stream: bool) -> None:
    """Over two runs with thirty calls each request fits and pairs calls with results; the session has every message once."""
    rounds = 30
    script = Script(*map(asks, range(rounds)), says("Done."), says("Bye."))
    agent = built(script, store, each_call=each_call, budget=BUDGET)

    async def talk() -> None:
        session = agent.create_session(session_id="talk")
        for words in ("Read all files.", "Thanks."):
            if stream:
                await agent.run(words, session=session, stream=True).get_final_response()
            else:
                await agent.run(words, session=session)

    asyncio.run(talk())
    assert len(script.requests) == rounds + 2
    assert all(map(is_valid, script.requests))
    assert all("Read all files." in " ".join(message.text for message in request) for request in script.requests)
    sizes = [sum(len(part.result) for part in parts(request, "function_result")) for request in script.requests]
    assert max(sizes) < 5 * BUDGET < sum(len(read_file(number)) for number in range(rounds))
    messages = stored(store)
    roles = ["user", *["assistant", "tool"] * rounds, "assistant", "user", "assistant"]
    assert [message.role.value for message in messages] == roles
    assert [result.text() for message in messages for result in message.tool_results()] == [
        read_file(number) for number in range(rounds)
    ]


def test_what_is_left_out_comes_back(store: Store) -> None:
    """The tools that recall answer from the whole history, also of an earlier run."""

    def recalls(messages: Any) -> Any:  # noqa: ANN401 - the framework's
        record = next(message.text for message in messages if "recall " in message.text)
        dialog = record.partition("recall ")[2].partition(":")[0]
        return asks(999, "recall", handle=f"{dialog}:2")

    script = Script(
        *map(asks, range(12)), says("Done."), recalls, asks(998, "search_history", query="File 1 says"), says("Yes.")
    )
    agent = built(script, store, budget=BUDGET)
    run(agent, "Read all files.")
    assert run(agent, "What does the first one say?") == "Yes."
    assert script.offered[0] == ["read_file", "recall", "search_history"]
    results = [result.text() for message in stored(store) for result in message.tool_results()]
    assert "File 0 says" in results[-2]
    assert "File 1 says" in results[-1]


def test_messages_come_back_as_they_were(new_store: Callable[[], Store]) -> None:
    """Bytes, ids, properties and the order of contents are equal after the store; the conversation is a dialog of messages."""
    png = af.Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png")
    calls = [af.Content.from_function_call(f"c{number}", "read_file", arguments="{}") for number in range(2)]
    results = [af.Content.from_function_result(f"c{number}", result=[png] if number else "-4") for number in range(2)]
    reasoning = af.Content.from_text_reasoning(text="Hm.", protected_data="sig", id="r1")
    given = [
        af.Message("user", ["Is it cold?", png], author_name="ann", additional_properties={"page": 1}),
        af.Message("assistant", [reasoning, "I look.", *calls], message_id="m1"),
        af.Message("tool", results),
        says("Yes."),
    ]

    async def talk() -> None:
        provider = adapter.PalaverHistoryProvider(made := new_store(), subject="ann")
        await provider.save_messages("talk", given)
        again = await adapter.PalaverHistoryProvider(made).get_messages("talk")
        assert [message.to_dict() for message in again] == [message.to_dict() for message in given]
        assert await provider.get_messages("other") == []
        session = Session.open(made, "talk")
        assert session.record.subject == "ann"
        assert [message.role.value for message in session.root.messages] == ["user", "assistant", "tool", "assistant"]

    asyncio.run(talk())


def test_the_loser_of_two_processes_is_told(two_stores: tuple[Store, Store]) -> None:
    """A run that another process overtakes while its model answers fails before a tool runs; the next run has the winner's messages."""
    store, another_store = two_stores
    ran: list[int] = []

    def meanwhile(_: Any) -> Any:  # noqa: ANN401 - the framework's
        another = Thread(target=run, args=(built(Script(says("Welcome.")), another_store), "Hello from the winner"))
        another.start()
        another.join()
        return asks(1)

    script = Script(meanwhile, says("Again."))
    agent = built(script, store, tools=[af.FunctionTool(name="read_file", func=ran.append)])
    with pytest.raises(Conflict):
        run(agent, "Hello from the loser")
    assert not ran
    assert [message.text_content() for message in stored(store)] == ["Hello from the winner", "Welcome."]
    assert run(agent, "Once more") == "Again."
    assert [message.text for message in script.requests[-1]] == ["Hello from the winner", "Welcome.", "Once more"]
    assert len(stored(another_store)) == 4


def test_results_of_an_overtaken_run_are_refused(two_stores: tuple[Store, Store]) -> None:
    """A run that another process overtakes while its tool runs fails before the next request; the log is whole, and the next request valid."""
    store, another_store = two_stores

    def slow(number: int) -> str:
        """Look."""
        script = Script(says("Welcome."))
        run(built(script, another_store), "Hello from the winner")
        assert is_valid(script.requests[0])
        return f"Too late: {number}."

    script = Script(asks(1, "slow"), says("Again."))
    agent = built(script, store, tools=[slow])
    with pytest.raises(Conflict, match="'talk' while tools ran"):
        run(agent, "Hello from the loser")
    assert len(script.requests) == 1
    assert [message.text_content() for message in stored(store)] == [
        "Hello from the loser",
        "",
        "Hello from the winner",
        "Welcome.",
    ]
    assert run(agent, "Once more") == "Again."
    assert is_valid(script.requests[-1])


def test_runs_at_the_same_time_lose_nothing(two_stores: tuple[Store, Store]) -> None:
    """Two processes that run at once, each again when it is told: every turn is there once, whole, in each one's order."""

    async def talk(store: Store, who: str) -> None:
        for number in range(4):
            while True:
                agent = built(Script(says(f"{who}{number}.")), store)
                try:
                    await agent.run(f"{who}{number}?", session=agent.create_session(session_id="talk"))
                    break
                except Conflict:
                    pass

    async def both() -> None:
        await asyncio.gather(*map(talk, two_stores, "ab"))

    asyncio.run(both())
    said = [message.text_content() for message in stored(two_stores[0])]
    assert [answer for asked, answer in zip(said[::2], said[1::2], strict=True) if asked[:2] == answer[:2]] == said[
        1::2
    ]
    for who in "ab":
        assert [words for words in said if words[0] == who] == [f"{who}{n}{mark}" for n in range(4) for mark in "?."]


def test_runs_that_share_a_session_are_told(store: Store) -> None:
    """Two runs at once on one session object: the later one fails, and its messages are not between those of the other."""

    async def both() -> list[Any]:
        agent = built(Script(says("One."), says("Two.")), store, each_call=False)
        session = agent.create_session(session_id="talk")
        runs = (agent.run(words, session=session) for words in ("First", "Second"))
        return await asyncio.gather(*runs, return_exceptions=True)

    results = asyncio.run(both())
    assert sorted(type(result).__name__ for result in results) == ["AgentResponse", "Conflict"]
    assert len(stored(store)) == 2


def test_a_call_is_stored_before_its_tool_runs(store: Store) -> None:
    """A tool that kills its process leaves the call in the log; the next run says that it was interrupted, and goes on."""

    def dies(number: int) -> str:
        """Die."""
        calls = [call.name for message in stored(store) for call in message.tool_calls()]
        raise KeyboardInterrupt(f"{number} {calls}")

    with pytest.raises(KeyboardInterrupt, match=r"1 \['dies'\]"):
        run(built(Script(asks(1, "dies")), store, tools=[dies]), "Die")
    script = Script(says("Alive."))
    assert run(built(script, store), "Live") == "Alive."
    assert is_valid(script.requests[0])
    assert "interrupted" in parts(script.requests[0], "function_result")[0].result


@pytest.mark.parametrize("each_call", [True, False])
def test_an_approved_call_goes_on(store: Store, each_call: bool) -> None:
    """A call that a person approves in a later run has its result once, and the requests after it are valid."""
    tool = af.FunctionTool(name="read_file", func=read_file, approval_mode="always_require")
    script = Script(asks(1), says("Read."), says("Bye."))
    agent = built(script, store, each_call=each_call, tools=[tool])

    async def talk() -> None:
        session = agent.create_session(session_id="talk")
        asked = (await agent.run("Read one.", session=session)).user_input_requests
        approved = asked[0].to_function_approval_response(approved=True)
        await agent.run(af.Message("user", [approved]), session=session)
        await agent.run("Thanks.", session=session)

    asyncio.run(talk())
    assert len(script.requests) == 3
    assert all(map(is_valid, script.requests))
    assert [result.text() for message in stored(store) for result in message.tool_results()] == [read_file(1)]


def test_a_conversation_from_elsewhere_goes_on(store: Store) -> None:
    """What another provider's loop appended to the session is the history of the next run, with calls and results."""
    run(built(Script(says("Hello.")), store), "Hello?")
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"number": 1}'}}
    Session.open(store, "talk").root.append([
        {"role": "user", "content": "Read one."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": read_file(1)},
        {"role": "assistant", "content": "It is grey."},
    ])  # fmt: skip
    script = Script(says("You are welcome."))
    run(built(script, store), "Thanks")
    assert is_valid(script.requests[0])
    assert [message.role for message in script.requests[0]] == [
        *["user", "assistant"] * 2,
        "tool",
        "assistant",
        "user",
    ]


def test_what_does_not_fit_together_is_refused(store: Store) -> None:
    """An unknown window, a second compaction strategy and a missing session are named with what to do."""
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        run(built(Script(says("Hello."), model="homemade"), store), "Hello")
    agent = built(Script(says("Hello.")), store)
    agent.compaction_strategy = af.SlidingWindowStrategy(keep_last_groups=2)
    with pytest.raises(InvalidInput, match="compaction strategy"):
        run(agent, "Hello")
    with pytest.raises(InvalidInput, match="session is None"):
        asyncio.run(adapter.PalaverHistoryProvider(store).get_messages(None))
