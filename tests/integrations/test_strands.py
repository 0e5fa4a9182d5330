"""Agents of Strands with palaver's repository and conversation manager: the session is whole and durable, requests fit, what is left out comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from palaver import Session
from palaver.errors import Conflict, InvalidInput
from palaver.store import Store

strands = pytest.importorskip("strands", reason="strands-agents is not installed: ./run integrations")
managers = pytest.importorskip("strands.session.repository_session_manager")
models = pytest.importorskip("strands.models.model")
sessions = pytest.importorskip("strands.types.session")
exceptions = pytest.importorskip("strands.types.exceptions")
multiagent = pytest.importorskip("strands.multiagent")
adapter = pytest.importorskip("palaver.integrations.strands")

BUDGET = 4_000
PNG = b"\x89PNG\r\n\x1a\n"


class Script(models.Model):  # type: ignore[misc, name-defined] # unknown where Strands is missing
    """A model that gives answers in their order, and keeps the requests."""

    def __init__(self, *answers: Any, name: str = "gpt-5") -> None:  # noqa: ANN401 - texts, calls, or functions
        """Take the answers."""
        self.answers = answers
        self.name = name
        self.requests: list[Any] = []

    def get_config(self) -> dict[str, Any]:
        """Return the name of the model."""
        return {"model_id": self.name}

    def update_config(self, **_: object) -> None:
        """Change nothing."""

    def structured_output(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - Strands' own
        """Refuse."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - Strands' own
        """Give the next answer."""
        self.requests.append(json.loads(json.dumps(messages, default=repr)))
        answer = self.answers[len(self.requests) - 1]
        answer = answer(messages) if callable(answer) else answer
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
            yield {"contentBlockStop": {}}
        for key, name, args in () if isinstance(answer, str) else answer:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": key, "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}


def read_file(number: int) -> str:
    """Read a file."""
    return text_of(number)


def text_of(number: int) -> str:
    """Return what is in a file."""
    return f"File {number} says: " + "grey weather. " * 200


def asks(number: int, name: str = "read_file", **args: Any) -> Any:  # noqa: ANN401 - calls
    """Return an answer that calls a tool."""
    return [(f"c{number}", name, args or {"number": number})]


def built(script: Script, store: Store, *, tools: Any = (read_file,), agent_id: str = "default", **fits: Any) -> Any:  # noqa: ANN401 - an agent
    """Return an agent of the session `talk`."""
    return strands.Agent(
        script,
        agent_id=agent_id,
        system_prompt="Read.",
        tools=[strands.tool(each) for each in tools],
        callback_handler=None,
        session_manager=managers.RepositorySessionManager("talk", adapter.PalaverSessionRepository(store)),
        conversation_manager=adapter.PalaverConversationManager(**fits),
    )


def parts(messages: Any, kind: str) -> list[Any]:  # noqa: ANN401 - messages
    """Return the contents of one kind."""
    return [part[kind] for message in messages for part in message["content"] if kind in part]


def is_valid(request: Any) -> bool:  # noqa: ANN401 - messages
    """Return whether roles alternate, each call has its result in the next message, and each result its call."""
    open_calls: list[str] = []
    for index, message in enumerate(request):
        if message["role"] != ("assistant" if index % 2 else "user"):
            return False
        if [part["toolUseId"] for part in parts([message], "toolResult")] != open_calls:
            return False
        open_calls = [part["toolUseId"] for part in parts([message], "toolUse")]
    return not open_calls


def stored(store: Store) -> Any:  # noqa: ANN401 - messages
    """Return the messages of the session in the store."""
    return Session.open(store, "talk").root.messages


def test_requests_are_small_and_the_session_is_whole(new_store: Callable[[], Store]) -> None:
    """Over thirty calls each request is valid and fits; the agent and the session have every message, and another process goes on."""
    rounds, store = 30, new_store()
    script = Script(*map(asks, range(rounds)), "Done.")
    agent = built(script, store, budget=BUDGET)
    assert str(agent("Read all files.")).strip() == "Done."
    assert len(agent.messages) == 2 * rounds + 2
    assert all(map(is_valid, script.requests))
    assert all("Read all files." in str(request) for request in script.requests)
    assert max(len(str(request)) for request in script.requests) < 6 * BUDGET
    assert [result.text() for message in stored(store) for result in message.tool_results()] == list(
        map(text_of, range(rounds))
    )
    script = Script("Bye.")
    other = built(script, store, budget=BUDGET)
    assert other.messages == agent.messages
    assert str(other("Thanks.")).strip() == "Bye."
    assert is_valid(script.requests[0])
    assert len(stored(store)) == 2 * rounds + 4


def test_what_is_left_out_comes_back(store: Store) -> None:
    """The tools that recall answer from all messages of the agent, also of an earlier process."""

    def recalls(messages: Any) -> Any:  # noqa: ANN401 - messages
        record = next(text for text in parts(messages, "text") if "recall " in text)
        dialog = record.partition("recall ")[2].partition(":")[0]
        return asks(999, "recall", handle=f"{dialog}:2")

    built(Script(*map(asks, range(12)), "Done."), store, budget=BUDGET)("Read all files.")
    script = Script(recalls, asks(998, "search_history", query="File 1 says"), "Yes.")
    assert str(built(script, store, budget=BUDGET)("What does the first one say?")).strip() == "Yes."
    results = [result.text() for message in stored(store) for result in message.tool_results()]
    assert "File 0 says" in results[-2]
    assert "File 1 says" in results[-1]


def test_the_loser_of_two_processes_is_told(two_stores: tuple[Store, Store]) -> None:
    """An agent that another process overtakes fails at its next message, before a tool runs; the log has each turn whole."""
    store, another_store = two_stores
    ran: list[int] = []

    def read_file(number: int) -> str:
        """Run."""
        ran.append(number)
        return "It ran."

    loser = built(Script(asks(1)), store, tools=[read_file])
    assert str(built(Script("Welcome."), another_store)("Hello from the winner")).strip() == "Welcome."
    with pytest.raises(Conflict, match=r"'default' of the session 'talk': it has 2 messages, not 0"):
        loser("Hello from the loser")
    assert not ran
    again = built(Script("Again."), store)
    assert str(again("Once more")).strip() == "Again."
    said = [message.text_content() for message in stored(another_store)]
    assert said == ["Hello from the winner", "Welcome.", "Once more", "Again."]


def test_a_call_is_stored_before_its_tool_runs(store: Store) -> None:
    """A tool that kills its process leaves the call in the log; the next agent says that it failed, and goes on."""

    def dies(number: int) -> str:
        """Die."""
        calls = [call.name for message in stored(store) for call in message.tool_calls()]
        raise KeyboardInterrupt(f"{number} {calls}")

    with pytest.raises(KeyboardInterrupt, match=r"1 \['dies'\]"):
        built(Script(asks(1, "dies")), store, tools=[dies])("Die")
    script = Script("Alive.")
    assert str(built(script, store)("Live")).strip() == "Alive."
    assert is_valid(script.requests[0])


def test_sessions_come_back_as_they_were(new_store: Callable[[], Store]) -> None:
    """Messages with bytes, reasoning, documents and metadata, agents and their state are equal after the store."""
    store = new_store()
    given = [
        {"role": "user", "content": [{"text": "Hm?"}, {"image": {"format": "png", "source": {"bytes": PNG}}}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
                {"reasoningContent": {"redactedContent": b"xyz"}},
                {"toolUse": {"toolUseId": "c1", "name": "look", "input": {}, "reasoningSignature": "q"}},
            ],
            "metadata": {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}},
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"json": {"a": 1}}]}},
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"%PDF"}}},
            ],
        },
    ]
    repository = adapter.PalaverSessionRepository(store, subject="ann")
    session = sessions.Session("talk", sessions.SessionType.AGENT)
    repository.create_session(session)
    for agent_id in ("one", "two"):
        repository.create_agent("talk", sessions.SessionAgent(agent_id, {"key": agent_id}, {}))
    written = [sessions.SessionMessage.from_message(message, index) for index, message in enumerate(given)]
    for message in written:
        repository.create_message("talk", "two", message)
    repository.update_agent("talk", sessions.SessionAgent("one", {"key": None}, {"x": [1]}))
    again = adapter.PalaverSessionRepository(store)
    assert again.read_session("talk").to_dict() == session.to_dict()
    assert (again.read_agent("talk", "one").state, again.read_agent("talk", "two").state) == (
        {"key": None},
        {"key": "two"},
    )
    assert again.read_agent("talk", "three") is None
    assert again.list_messages("talk", "two") == written
    assert [each.message_id for each in again.list_messages("talk", "two", limit=1, offset=1)] == [1]
    assert again.read_message("talk", "two", 7) is None
    assert again.list_messages("talk", "one") == []
    assert Session.open(store, "talk").record.subject == "ann"


def test_a_redacted_message_is_in_no_view(store: Store) -> None:
    """What a guardrail redacts is replaced for Strands, and stays out of the views of the dialog."""
    agent = built(Script("Hello."), store)
    agent("My secret")
    manager = agent._session_manager
    manager.redact_latest_message({"role": "assistant", "content": [{"text": "Redacted."}]}, agent)
    assert built(Script(), store).messages[-1]["content"] == [{"text": "Redacted."}]
    view = Session.open(store, "talk").root.view()
    assert "Hello." not in str(
        [block.content for exchange in view.exchanges for turn in exchange.turns for block in turn.blocks]
    )


def test_a_graph_of_agents_goes_on(new_store: Callable[[], Store]) -> None:
    """The state of agents that work together is stored: another process does not ask a node again that has answered."""
    store = new_store()

    def run(*answers: Any) -> Any:  # noqa: ANN401 - the results by node
        builder = multiagent.GraphBuilder()
        for name, answer in zip(("draft", "check"), answers, strict=True):
            builder.add_node(strands.Agent(Script(answer), agent_id=name, callback_handler=None), name)
        builder.add_edge("draft", "check")
        builder.set_graph_id("team").set_max_node_executions(9)
        repository = adapter.PalaverSessionRepository(store)
        builder.set_session_manager(managers.RepositorySessionManager("talk", repository))
        return builder.build()("Go")

    def fails(_: Any) -> str:  # noqa: ANN401 - messages
        raise RuntimeError("The process ends.")

    with pytest.raises(RuntimeError, match="process ends"):
        run("Drafted.", fails)
    results = run(fails, "Checked.").results
    assert {name: str(result.result).strip() for name, result in results.items()} == {
        "draft": "Drafted.",
        "check": "Checked.",
    }


def test_what_is_missing_is_named(store: Store) -> None:
    """Unknown sessions, agents, messages and windows are refused, and so is a session that exists."""
    repository = adapter.PalaverSessionRepository(store)
    assert repository.read_session("talk") is None
    with pytest.raises(exceptions.SessionException, match="talk does not exist"):
        repository.list_messages("talk", "one")
    repository.create_session(sessions.Session("talk", sessions.SessionType.AGENT))
    with pytest.raises(exceptions.SessionException, match="talk already exists"):
        repository.create_session(sessions.Session("talk", sessions.SessionType.AGENT))
    with pytest.raises(exceptions.SessionException, match="Agent one does not exist in session talk"):
        repository.list_messages("talk", "one")
    with pytest.raises(exceptions.SessionException, match="Agent one does not exist in session talk"):
        repository.update_agent("talk", sessions.SessionAgent("one", {}, {}))
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        built(Script("Hello.", name="homemade"), store)("Hello")
