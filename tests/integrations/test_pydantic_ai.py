"""Agents of pydantic-ai with palaver's capability: requests fit, the conversation is in a dialog, what is left out comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

import pytest

from palaver import Session
from palaver.errors import Conflict, InvalidInput
from palaver.store import Store

ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: ./run integrations")
parts = pytest.importorskip("pydantic_ai.messages")
functions = pytest.importorskip("pydantic_ai.models.function")
adapter = pytest.importorskip("palaver.integrations.pydantic_ai")

BUDGET = 4_000


def read_file(number: int) -> str:
    """Read a file."""
    return f"File {number} says: " + "grey weather. " * 200


def asks(number: int, /, name: str = "read_file", **args: Any) -> Any:  # noqa: ANN401 - a response
    """Return an answer that calls a tool."""
    return parts.ModelResponse([parts.ToolCallPart(name, args or {"number": number}, tool_call_id=f"c{number}")])


def says(words: str) -> Any:  # noqa: ANN401 - a response
    """Return an answer in words."""
    return parts.ModelResponse([parts.TextPart(words)])


class Script:
    """A model's answers, and the requests that it got."""

    def __init__(self, *answers: Any) -> None:  # noqa: ANN401 - responses, or functions
        self.answers = answers
        self.requests: list[Any] = []
        self.offered: list[list[str]] = []

    def __call__(self, messages: Any, info: Any) -> Any:  # noqa: ANN401 - pydantic-ai's
        """Answer a request."""
        self.requests.append(list(messages))
        self.offered.append([tool.name for tool in info.function_tools])
        answer = self.answers[len(self.requests) - 1]
        return answer(messages) if callable(answer) else answer


def built(script: Script, conversation: Any, name: str = "gpt-5") -> Any:  # noqa: ANN401 - an agent
    """Return an agent with a scripted model."""
    model = functions.FunctionModel(script, model_name=name)
    return ai.Agent(model, instructions="Read.", tools=[read_file], capabilities=[conversation])


def texts(messages: Any) -> list[str]:  # noqa: ANN401 - messages
    """Return the texts of all parts."""
    return [str(part.content) for message in messages for part in message.parts if hasattr(part, "content")]


def is_valid(request: Any) -> bool:  # noqa: ANN401 - messages
    """Return whether each call has its return in the next request, and each return its call."""
    open_calls: set[str] = set()
    for message in request:
        if message.kind == "response":
            open_calls = {part.tool_call_id for part in message.parts if part.part_kind == "tool-call"}
            continue
        returned = {part.tool_call_id for part in message.parts if part.part_kind == "tool-return"}
        if returned != open_calls:
            return False
        open_calls = set()
    return not open_calls


def test_requests_are_small_and_the_history_is_whole(new_store: Callable[[], Store]) -> None:
    """Over thirty calls each request fits and pairs calls with returns; the history and the dialog have every message."""
    rounds = 30
    script = Script(*map(asks, range(rounds)), says("Done."))
    dialog = Session.create(new_store()).root
    result = asyncio.run(built(script, adapter.PalaverConversation(dialog, budget=BUDGET)).run("Read all files."))
    assert result.output == "Done."
    assert len(result.all_messages()) == 2 * rounds + 2
    assert len(script.requests) == rounds + 1
    assert all(map(is_valid, script.requests))
    assert all("Read all files." in " ".join(texts(request)) for request in script.requests)
    sizes = [len("".join(texts(request))) for request in script.requests]
    assert max(sizes) < 5 * BUDGET < sum(len(read_file(number)) for number in range(rounds))
    stored = dialog.reload().messages
    assert [part.text() for message in stored for part in message.tool_results()] == list(map(read_file, range(rounds)))
    assert [message.role.value for message in stored[:3]] == ["system", "user", "assistant"]
    assert len(stored) == 2 * rounds + 3


def test_what_is_left_out_comes_back(store: Store) -> None:
    """The tools that recall are offered once something is left out, and answer from the whole history."""

    def recalls(messages: Any) -> Any:  # noqa: ANN401 - pydantic-ai's
        record = next(text for text in texts(messages) if "recall " in text)
        dialog = record.partition("recall ")[2].partition(":")[0]
        return asks(999, "recall", handle=f"{dialog}:3")

    script = Script(*map(asks, range(12)), recalls, asks(998, "search_history", query="File 1 says"), says("Done."))
    dialog = Session.create(store).root
    result = asyncio.run(built(script, adapter.PalaverConversation(dialog, budget=BUDGET)).run("Read all files."))
    assert script.offered[0] == ["read_file"]
    assert sorted(script.offered[12]) == ["read_file", "recall", "search_history"]
    returned = [
        part.content for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"
    ]
    assert "File 0 says" in returned[-2]
    assert "File 1 says" in returned[-1]


def test_a_conversation_goes_on_in_another_process(new_store: Callable[[], Store]) -> None:
    """The next run begins with what the dialog has; nothing is stored twice, and instructions once."""
    store = new_store()
    dialog = Session.create(store, "talk").root
    asyncio.run(built(Script(asks(1), says("One.")), adapter.PalaverConversation(dialog)).run("First"))
    other = adapter.PalaverConversation(Session.open(store, "talk").root)
    script = Script(says("Two."))
    asyncio.run(built(script, other).run("Second", message_history=other.messages()))
    assert [message.kind for message in script.requests[0]] == ["request", "response", "request", "response", "request"]
    stored = Session.open(store, "talk").root.messages
    assert [message.role.value for message in stored] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert [message.text_content() for message in stored[-2:]] == ["Second", "Two."]


def test_the_loser_of_a_race_is_told(two_stores: tuple[Store, Store]) -> None:
    """Of two processes that continue one dialog, the later one fails with Conflict before its tool runs; what both stored is there."""
    store, another_store = two_stores
    Session.create(store, "talk")
    ran: list[int] = []

    def meanwhile(_: Any) -> Any:  # noqa: ANN401 - pydantic-ai's
        other = adapter.PalaverConversation(Session.open(another_store, "talk").root)
        agent = built(Script(says("Welcome.")), other)
        run = partial(agent.run, "Hello from the winner", message_history=other.messages())
        another = Thread(target=lambda: asyncio.run(run()))
        another.start()
        another.join()
        return asks(1)

    loser = adapter.PalaverConversation(Session.open(store, "talk").root)
    model = functions.FunctionModel(Script(meanwhile, says("Again.")), model_name="gpt-5")
    agent = ai.Agent(model, tools=[ai.Tool(ran.append, name="read_file")], capabilities=[loser])
    with pytest.raises(Conflict):
        asyncio.run(agent.run("Hello from the loser"))
    assert not ran
    stored = [message.text_content() for message in Session.open(store, "talk").root.messages]
    assert stored == ["Hello from the loser", "Read.", "Hello from the winner", "Welcome."]
    assert asyncio.run(agent.run("Once more", message_history=loser.messages())).output == "Again."
    assert len(Session.open(another_store, "talk").root.messages) == len(stored) + 2


def test_a_call_is_stored_before_its_tool_runs(store: Store) -> None:
    """A tool that kills its process leaves the call in the log; the next run says that it was interrupted, and goes on."""
    dialog = Session.create(store, "talk").root

    def dies(number: int) -> str:
        calls = [call.name for message in Session.open(store, "talk").root.messages for call in message.tool_calls()]
        raise KeyboardInterrupt(f"{number} {calls}")

    model = functions.FunctionModel(Script(asks(1, "dies", number=1)), model_name="gpt-5")
    agent = ai.Agent(model, tools=[dies], capabilities=[adapter.PalaverConversation(dialog)])
    with pytest.raises(KeyboardInterrupt, match=r"1 \['dies'\]"):
        asyncio.run(agent.run("Die"))
    again = adapter.PalaverConversation(Session.open(store, "talk").root)
    result = asyncio.run(built(Script(says("Alive.")), again).run("Live", message_history=again.messages()))
    assert result.output == "Alive."
    assert len(Session.open(store, "talk").root.messages[1].tool_calls()) == 1


def test_a_dialog_from_elsewhere_goes_on(store: Store) -> None:
    """What another provider's loop appended is the history of the next run, with calls and results."""
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"number": 1}'}}
    dialog = Session.create(store, "talk").root
    dialog.append([
        {"role": "user", "content": "Read one."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": read_file(1)},
        {"role": "assistant", "content": "It is grey."},
    ])  # fmt: skip
    conversation = adapter.PalaverConversation(dialog)
    script = Script(says("You are welcome."))
    asyncio.run(built(script, conversation).run("Thanks", message_history=conversation.messages()))
    assert is_valid(script.requests[0])
    assert [message.text_content() for message in dialog.messages[-2:]] == ["Thanks", "You are welcome."]
    assert len(dialog.messages) == 4 + 3


def test_another_history_is_refused(store: Store) -> None:
    """A run that begins without the dialog's history is refused with what to pass."""
    dialog = Session.create(store, "talk").root
    conversation = adapter.PalaverConversation(dialog)
    asyncio.run(built(Script(says("One.")), conversation).run("First"))
    with pytest.raises(InvalidInput, match="another history than its dialog: message 0 is not the same"):
        asyncio.run(built(Script(says("Two.")), conversation).run("Second"))


def test_a_session_is_not_a_dialog(store: Store) -> None:
    """A session in place of its dialog is refused when the capability is made."""
    with pytest.raises(InvalidInput, match=r"The dialog is a Session. Pass one, such as session.root"):
        adapter.PalaverConversation(Session.create(store, "talk"))


def test_a_window_is_needed(store: Store) -> None:
    """A model that neither palaver nor pydantic-ai knows is refused with what to do."""
    del store
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        asyncio.run(built(Script(says("Hello.")), adapter.PalaverConversation(), "homemade").run("Hello"))
