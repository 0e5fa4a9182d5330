"""One long conversation of a scripted model in each framework that has an adapter."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Any

import pytest

from palaver import Session
from palaver.dialects import read_messages
from palaver.messages import Message, TextContent
from palaver.store import Store

FILES, AT_ONCE, BUDGET, PAGE = 200, 4, 12_000, 40_000
ROUNDS = FILES // AT_ONCE
FIRST = "Read all files. Never edit the tests."
NEWEST = "Which file named a key? Mind what I said first."
Does = list[tuple[str, dict[str, Any]]] | str
"""What the model answers: calls, or words."""


def read_file(number: int) -> str:
    """Read a file."""
    return f"File {number} has the key {number * 7919 % 10007}. " + " ".join(
        f"Line {number}.{line} of grey weather." for line in range(100)
    )


def told(message: Message) -> list[str]:
    """Return each text, call and result of a message, without ids."""
    results = [plain(result.text()) for result in message.tool_results()]
    calls = [
        f"{call.name} {json.dumps(dict(call.args), sort_keys=True, separators=(',', ':'))}"
        for call in message.tool_calls()
    ]
    return [*results, *calls, *(content.content for content in message.contents if isinstance(content, TextContent))]


def plain(text: str) -> str:
    """Return the text of a result; the Agent Development Kit puts it into an object."""
    try:
        return str(json.loads(text)["result"])
    except (ValueError, TypeError, KeyError):
        return text


class Script:
    """What the model does: it reads all files, and in the next turn reads back whatever its request says is left out."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.requests: list[list[Message]] = []
        self._next = self._answers()

    def answer(self, items: Sequence[Any]) -> Does:
        """Return the calls that the model makes, or its words."""
        self.requests.append(list(read_messages(list(items), self.dialect)))
        return next(self._next)

    def named(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any], str]]:
        """Return calls with an id each."""
        return [(*call, f"c{len(self.requests)}.{number}") for number, call in enumerate(calls)]

    def _answers(self) -> Iterator[Does]:
        for start in range(0, FILES, AT_ONCE):
            yield [("read_file", {"number": number}) for number in range(start, start + AT_ONCE)]
        yield "All are read."
        for place in places(self.requests[ROUNDS + 1]):
            for offset in range(0, PAGE * (pages(place)), PAGE):
                yield [("recall", {"handle": place, "offset": offset, "limit": PAGE})]
        yield "Each one."


def places(request: Sequence[Message]) -> list[str]:
    """Return what a request says can be recalled."""
    text = "\n".join(part for message in request for part in told(message))
    found = re.findall(r"recall ([0-9a-f]{12}:\d+(?::\d+)?)(?: to [0-9a-f]{12}(:\d+))?", text)
    return [first + last.replace(":", "-") for first, last in found]


def pages(place: str) -> int:
    """Return how many pages a place has at most."""
    return (FILES if "-" in place else AT_ONCE) * (len(read_file(FILES - 1)) + 200) // PAGE + 1


# --- the frameworks -----------------------------------------------------------------------------------------------------------


def openai_agents(store: Store, script: Script) -> Sequence[Any]:
    """Talk in the OpenAI Agents SDK and return the items of the session."""
    agents = pytest.importorskip("agents", reason="openai-agents is not installed: ./run integrations")
    testing = pytest.importorskip("agents.testing")
    adapter = pytest.importorskip("palaver.integrations.openai_agents")

    class Scripted(agents.Model):  # type: ignore[misc, name-defined] # unknown where the SDK is missing
        async def get_response(self, **given: Any) -> Any:  # noqa: ANN401 - the SDK's
            does = script.answer(given["input"])
            calls = [] if isinstance(does, str) else script.named(does)
            output = [testing.function_call(name, args, call_id=key) for name, args, key in calls]
            output = output or [testing.assistant_message(does)]
            return agents.ModelResponse(output=output, usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - the SDK's
            raise NotImplementedError

    fits = adapter.FitFilter("gpt-5", budget=BUDGET)
    agent = agents.Agent(name="helper", model=Scripted(), tools=[agents.function_tool(read_file), *fits.tools])
    session = adapter.PalaverSession("talk", store)
    config = agents.RunConfig(call_model_input_filter=fits, tracing_disabled=True)

    async def talk() -> Any:  # noqa: ANN401 - items
        for words in (FIRST, NEWEST):
            await agents.Runner.run(agent, words, session=session, run_config=config, max_turns=10 * FILES)
        return await session.get_items()

    items: Sequence[Any] = asyncio.run(talk())
    return items


def langchain(store: Store, script: Script) -> Sequence[Any]:
    """Talk in an agent of LangChain whose state the saver of LangGraph keeps, and return the messages of the state."""
    built = pytest.importorskip("langchain.agents", reason="langchain is not installed: ./run integrations")
    said = pytest.importorskip("langchain_core.messages")
    adapter = pytest.importorskip("palaver.integrations.langchain")
    savers = pytest.importorskip("palaver.integrations.langgraph")
    chat = pytest.importorskip("langchain_core.language_models")

    class Scripted(chat.GenericFakeChatModel):  # type: ignore[misc, name-defined] # unknown where LangChain is missing
        model_name: str = "gpt-5"

        def bind_tools(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - LangChain's
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - LangChain's
            does = script.answer(messages)
            keys = ("name", "args", "id")
            calls = [] if isinstance(does, str) else [dict(zip(keys, call, strict=True)) for call in script.named(does)]
            self.messages = iter([said.AIMessage("" if calls else does, tool_calls=calls)])
            return super()._generate(messages)

    fits = adapter.PalaverMiddleware(budget=BUDGET)
    saver = savers.PalaverCheckpointSaver(store)
    agent = built.create_agent(Scripted(messages=iter(())), [read_file], middleware=[fits], checkpointer=saver)
    config = {"configurable": {"thread_id": "talk"}, "recursion_limit": 10 * FILES}
    items: Sequence[Any] = []
    for words in (FIRST, NEWEST):
        items = agent.invoke({"messages": [said.HumanMessage(words)]}, config)["messages"]
    return items


def pydantic_ai(store: Store, script: Script) -> Sequence[Any]:
    """Talk in an agent of pydantic-ai and return the history of the last run."""
    ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: ./run integrations")
    parts = pytest.importorskip("pydantic_ai.messages")
    functions = pytest.importorskip("pydantic_ai.models.function")
    adapter = pytest.importorskip("palaver.integrations.pydantic_ai")

    def scripted(messages: Any, info: Any) -> Any:  # noqa: ANN401, ARG001 - pydantic-ai's
        does = script.answer(messages)
        said = [parts.TextPart(does)] if isinstance(does, str) else starmap(parts.ToolCallPart, script.named(does))
        return parts.ModelResponse(list(said))

    conversation = adapter.PalaverConversation(Session.create(store, "talk").root, budget=BUDGET)
    agent = ai.Agent(
        functions.FunctionModel(scripted, model_name="gpt-5"), tools=[read_file], capabilities=[conversation]
    )
    free = ai.UsageLimits(request_limit=None)
    items: Sequence[Any] = []
    for words in (FIRST, NEWEST):
        items = asyncio.run(agent.run(words, message_history=conversation.messages(), usage_limits=free)).all_messages()
    return items


def google_adk(store: Store, script: Script) -> Sequence[Any]:
    """Talk in an agent of the Agent Development Kit and return the contents of the session's events."""
    kit = pytest.importorskip("google.adk.agents", reason="google-adk is not installed: ./run integrations")
    models = pytest.importorskip("google.adk.models")
    runners = pytest.importorskip("google.adk.runners")
    types = pytest.importorskip("google.genai.types")
    adapter = pytest.importorskip("palaver.integrations.google_adk")
    apps = pytest.importorskip("google.adk.apps")

    class Scripted(models.BaseLlm):  # type: ignore[misc, name-defined] # unknown where the kit is missing
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: ANN401, ARG002 - the kit's
            does = script.answer(llm_request.contents)
            calls = (
                []
                if isinstance(does, str)
                else [types.Part.from_function_call(name=name, args=args) for name, args in does]
            )
            parts = calls or [types.Part(text=does)]
            yield models.LlmResponse(content=types.Content(role="model", parts=parts))

    async def talk() -> list[Any]:
        service = adapter.PalaverSessionService(store)
        await service.create_session(app_name="app", user_id="ann", session_id="talk")
        agent = kit.LlmAgent(name="bot", model=Scripted(model="gemini-2.5-pro"), tools=[read_file])
        app = apps.App(name="app", root_agent=agent, plugins=[adapter.FitPlugin(budget=BUDGET)])
        runner = runners.Runner(app=app, session_service=service)
        for words in (FIRST, NEWEST):
            asked = types.Content(role="user", parts=[types.Part(text=words)])
            async for _ in runner.run_async(user_id="ann", session_id="talk", new_message=asked):
                pass
        return [
            event.content
            for event in (await service.get_session(app_name="app", user_id="ann", session_id="talk")).events
        ]

    return asyncio.run(talk())


def agent_framework(store: Store, script: Script) -> Sequence[Any]:
    """Talk in an agent of the Agent Framework and return the messages of the session."""
    af = pytest.importorskip("agent_framework", reason="agent-framework-core is not installed: ./run integrations")
    adapter = pytest.importorskip("palaver.integrations.agent_framework")

    class Scripted(af.FunctionInvocationLayer, af.ChatMiddlewareLayer, af.BaseChatClient):  # type: ignore[misc, name-defined] # unknown where the framework is missing
        model = "gpt-5"

        def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:  # noqa: ANN401 - the framework's
            does = script.answer(messages)
            calls = [] if isinstance(does, str) else script.named(does)
            said = [af.Content.from_function_call(key, name, arguments=args) for name, args, key in calls]
            return asyncio.sleep(0, af.ChatResponse(messages=af.Message("assistant", said or [does])))

    history = adapter.PalaverHistoryProvider(store)

    async def talk() -> Any:  # noqa: ANN401 - messages
        agent = af.Agent(
            Scripted(function_invocation_configuration={"max_iterations": 10 * FILES}),
            tools=[read_file],
            context_providers=[history, adapter.PalaverFitProvider(budget=BUDGET)],
            require_per_service_call_history_persistence=True,
        )
        for words in (FIRST, NEWEST):
            await agent.run(words, session=agent.create_session(session_id="talk"))
        return await history.get_messages("talk")

    items: Sequence[Any] = asyncio.run(talk())
    return items


def strands(store: Store, script: Script) -> Sequence[Any]:
    """Talk in an agent of Strands and return its messages."""
    kit = pytest.importorskip("strands", reason="strands-agents is not installed: ./run integrations")
    models = pytest.importorskip("strands.models.model")
    managers = pytest.importorskip("strands.session.repository_session_manager")
    adapter = pytest.importorskip("palaver.integrations.strands")

    class Scripted(models.Model):  # type: ignore[misc, name-defined] # unknown where Strands is missing
        def get_config(self) -> dict[str, Any]:
            return {"model_id": "gpt-5"}

        def update_config(self, **_: object) -> None:
            pass

        def structured_output(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - Strands' own
            raise NotImplementedError

        async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - Strands' own
            does = script.answer(messages)
            yield {"messageStart": {"role": "assistant"}}
            if isinstance(does, str):
                yield {"contentBlockDelta": {"delta": {"text": does}}}
                yield {"contentBlockStop": {}}
            for name, args, key in [] if isinstance(does, str) else script.named(does):
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": key, "name": name}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if isinstance(does, str) else "tool_use"}}

    agent = kit.Agent(
        Scripted(),
        tools=[kit.tool(read_file)],
        callback_handler=None,
        session_manager=managers.RepositorySessionManager("talk", adapter.PalaverSessionRepository(store)),
        conversation_manager=adapter.PalaverConversationManager(budget=BUDGET),
    )
    for words in (FIRST, NEWEST):
        agent(words)
    items: Sequence[Any] = agent.messages
    return items


TALKS: dict[str, tuple[str, Callable[[Store, Script], Sequence[Any]]]] = {
    "OpenAI Agents SDK": ("openai-responses", openai_agents),
    "LangChain, LangGraph": ("langchain", langchain),
    "pydantic-ai": ("pydantic-ai", pydantic_ai),
    "Agent Development Kit": ("gemini", google_adk),
    "Agent Framework": ("agent-framework", agent_framework),
    "Strands": ("bedrock", strands),
}
