"""Google's Agent Development Kit on stores of palaver: its own service in memory as the oracle, stale sessions, and conversations that can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Session
from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.store import MemoryStore, Store

adk = pytest.importorskip("google.adk.sessions", reason="google-adk is not installed: ./run integrations")
events = pytest.importorskip("google.adk.events")
errors = pytest.importorskip("google.adk.errors.already_exists_error")
missing = pytest.importorskip("google.adk.errors.session_not_found_error")
stale = pytest.importorskip("google.adk.errors._stale_session_error")
apps = pytest.importorskip("google.adk.apps")
agents = pytest.importorskip("google.adk.agents")
models = pytest.importorskip("google.adk.models")
runners = pytest.importorskip("google.adk.runners")
base = pytest.importorskip("google.adk.sessions.base_session_service")
types = pytest.importorskip("google.genai.types")
adapter = pytest.importorskip("palaver.integrations.google_adk")

ME = {"app_name": "app", "user_id": "ann", "session_id": "talk"}


def event(number: int = 1, words: str = "", **delta: Any) -> Any:  # noqa: ANN401 - an event
    """Return an event that says words and changes the state."""
    content = types.Content(role="user", parts=[types.Part(text=words)]) if words else None
    actions = events.EventActions(state_delta=delta)
    return events.Event(
        id=f"e{number}",
        author="user",
        invocation_id=f"i{number}",
        timestamp=float(number),
        content=content,
        actions=actions,
    )


# --- the oracle ---------------------------------------------------------------------------------------------------------

USERS, NAMES = st.sampled_from(["ann", "bob"]), st.sampled_from(["s1", "s2"])
STATE = st.dictionaries(
    st.sampled_from(["k", "app:k", "user:k", "temp:k"]), st.none() | st.integers(0, 3) | st.just([1]), max_size=3
)
ACT = st.tuples(st.sampled_from(["create", "append", "append", "delete", "forget"]), USERS, NAMES, STATE)
CONFIG = st.none() | st.builds(
    base.GetSessionConfig, num_recent_events=st.none() | st.integers(0, 3), after_timestamp=st.none() | st.just(3.0)
)


class Pair:
    """Our service and the kit's in memory, told the same. Ours is a new one now and then, as another process would have."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ours = adapter.PalaverSessionService(self.store)
        self.theirs = adk.InMemorySessionService()
        self.count = 0

    async def act(self, what: str, user: str, name: str, state: dict[str, Any]) -> None:
        """Call both."""
        self.count += 1
        where = {"app_name": "app", "user_id": user, "session_id": name}
        done = []
        for service in (self.ours, self.theirs):
            try:
                if what == "create":
                    done.append((await service.create_session(**where, state=dict(state))).state)
                elif what == "delete":
                    await service.delete_session(**where)
                elif what == "append" and (session := await service.get_session(**where)):
                    await service.append_event(session, event(self.count, "Hello", **state))
                    done.append((session.state, session.events, session.last_update_time))
            except errors.AlreadyExistsError:
                done.append(what)
        assert not done or done[0] == done[1]
        if what == "forget":
            self.ours = adapter.PalaverSessionService(self.store)

    async def seen(self, service: Any, config: Any) -> list[Any]:  # noqa: ANN401 - either service
        """Return all that a service gives, times of creation apart."""
        found: list[Any] = []
        for user in ("ann", "bob"):
            found.append(await service.get_user_state(app_name="app", user_id=user))
            for name in ("s1", "s2"):
                session = await service.get_session(app_name="app", user_id=user, session_id=name, config=config)
                found.append(session and (session.state, session.events))
        for asked in (None, "ann", "nobody"):
            listed = (await service.list_sessions(app_name="app", user_id=asked)).sessions
            found.append(
                sorted((each.user_id, each.id, str(sorted(each.state.items())), each.events) for each in listed)
            )
        return found


@settings(max_examples=40)
@given(st.lists(ACT, max_size=12), CONFIG)
def test_service_equals_the_service_in_memory(acts: list[Any], config: Any) -> None:  # noqa: ANN401 - the kit's
    """Whatever is created, appended, deleted and asked: sessions, events, state of app, user and session are the same."""

    async def run() -> None:
        pair = Pair()
        for act in acts:
            await pair.act(*act)
        assert await pair.seen(pair.ours, config) == await pair.seen(pair.theirs, config)

    asyncio.run(run())


# --- what the kit's own service in memory does not keep ------------------------------------------------------------------


def test_a_stale_session_is_refused(two_stores: tuple[Store, Store]) -> None:
    """Of two processes on one session the later one is told, with what to do, and its event is not written (adk 4751)."""

    async def run() -> None:
        ours, theirs = map(adapter.PalaverSessionService, two_stores)
        await ours.create_session(**ME)
        mine, other = await ours.get_session(**ME), await theirs.get_session(**ME)
        await theirs.append_event(other, event(1, "First", k=1))
        with pytest.raises(stale.StaleSessionError, match=r"'talk' has been modified in storage.*get_session\(\)"):
            await ours.append_event(mine, event(2, "Second", k=2))
        mine = await ours.get_session(**ME)
        await ours.append_event(mine, event(2, "Second", k=2))
        await ours.append_event(mine, event(3, "Third"))
        seen = await theirs.get_session(**ME)
        assert [found.invocation_id for found in seen.events] == ["i1", "i2", "i3"]
        assert seen.state == {"k": 2}
        mine._storage_update_marker = None  # as a session that was made by hand
        await ours.append_event(mine, event(4))
        seen._storage_update_marker = None
        with pytest.raises(stale.StaleSessionError):
            await ours.append_event(seen, event(5))

    asyncio.run(run())


def test_writers_at_the_same_time_lose_nothing(two_stores: tuple[Store, Store]) -> None:
    """Two services that append at once, each loading again when it is told: every event is there once, in each one's order."""

    async def write(service: Any, who: str) -> None:  # noqa: ANN401 - a service
        for number in range(6):
            while True:
                try:
                    await service.append_event(
                        await service.get_session(**ME), event(number, f"{who}{number}", **{f"app:{who}": number})
                    )
                    break
                except stale.StaleSessionError:
                    pass

    async def run() -> None:
        ours, theirs = map(adapter.PalaverSessionService, two_stores)
        await ours.create_session(**ME)
        await asyncio.gather(write(ours, "a"), write(theirs, "b"))
        session = await ours.get_session(**ME)
        said = [found.content.parts[0].text for found in session.events]
        assert [words for words in said if words[0] == "a"] == [f"a{number}" for number in range(6)]
        assert [words for words in said if words[0] == "b"] == [f"b{number}" for number in range(6)]
        assert session.state == {"app:a": 5, "app:b": 5}

    asyncio.run(run())


def test_events_come_back_and_can_be_read(store: Store) -> None:
    """Calls, results, bytes, usage and the kit's own fields come back equal; the conversation is a dialog of messages."""
    call = types.Part(function_call=types.FunctionCall(id="c1", name="weather", args={"town": "Oslo"}))
    answer = types.Part(function_response=types.FunctionResponse(id="c1", name="weather", response={"output": "-4"}))
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=7, candidates_token_count=2, total_token_count=9
    )
    said = [
        (
            "user",
            [types.Part(text="Is it cold?"), types.Part.from_bytes(data=b"\xff\xfe", mime_type="application/pdf")],
            {},
        ),
        ("bot", [types.Part(text="I look."), call], {"usage_metadata": usage, "model_version": "gemini-3-pro"}),
        ("bot", [answer], {"long_running_tool_ids": {"c1"}}),
        ("bot", [types.Part(text="Yes.")], {"turn_complete": True, "custom_metadata": {"x": None}}),
    ]

    async def run() -> None:
        service = adapter.PalaverSessionService(store)
        session = await service.create_session(**ME, state={"key": "value"})
        for author, parts, more in said:
            role = "model" if author == "bot" and parts[0].function_response is None else "user"
            await service.append_event(
                session, events.Event(author=author, content=types.Content(role=role, parts=parts), **more)
            )
        assert await service.get_session(**ME) == session

    asyncio.run(run())
    stored = Session.open(store, "talk").root.messages
    assert [message.role.value for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert [call.name for message in stored for call in message.tool_calls()] == ["weather"]
    assert (stored[1].usage.input_tokens, stored[1].model, stored[1].name) == (7, "gemini-3-pro", "bot")
    assert stored[2].tool_results()[0].text() == "-4"


def test_what_an_event_says_is_a_message(store: Store) -> None:
    """Spoken words, a role that Gemini does not know, a second result of a call and one of no call are messages, and each event comes back."""
    heard = types.Transcription(text="Hello?", finished=True)
    call = types.Part(function_call=types.FunctionCall(id="c1", name="weather", args={}))
    results = [
        types.Part(function_response=types.FunctionResponse(id=name, name="weather", response={"output": words}))
        for name, words in (("c1", "Wait."), ("c1", "Cold."), ("c9", "Of no call."))
    ]
    said = [
        {"author": "user", "input_transcription": heard},
        {"author": "bot", "output_transcription": types.Transcription(text="Hi.", finished=True)},
        {"author": "bot", "content": types.Content(role="system", parts=[types.Part(text="I look.")])},
        {"author": "bot", "content": types.Content(role="model", parts=[call])},
        *({"author": "bot", "content": types.Content(role="user", parts=[part])} for part in results),
        {"author": "bot", "error_code": "500", "error_message": "It failed."},
    ]

    async def run() -> None:
        service = adapter.PalaverSessionService(store)
        session = await service.create_session(**ME)
        for fields in said:
            await service.append_event(session, events.Event(**fields))
        assert (await service.get_session(**ME)).events == session.events

    asyncio.run(run())
    stored = Session.open(store, "talk").root.messages
    words = [message.text_content() for message in stored]
    assert words == ["Hello?", "Hi.", "I look.", "", "Wait.", "Cold.", "Of no call."]
    assert [message.role.value for message in stored] == ["user", *["assistant"] * 3, *["tool"] * 3]


class CountingStore(MemoryStore):
    """A store that counts the bodies that are read."""

    read = 0

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Count, and read."""
        for pair in super().bodies(dialog_id, start, stop):
            self.read += 1
            yield pair


def test_a_list_of_sessions_reads_few_events() -> None:
    """The state of a session is read from the events that set its keys, not from all; an erased one takes its values along."""
    store = CountingStore()

    async def run() -> None:
        service = adapter.PalaverSessionService(store)
        session = await service.create_session(**ME, state={"kept": 1})
        for number in range(200):
            changes = {"a": number} if number < 100 else {"b": number} if number == 150 else {}
            await service.append_event(session, event(number, f"Word {number}", **changes))
        store.read = 0
        (listed,) = (await service.list_sessions(app_name="app")).sessions
        assert store.read < 50
        assert listed.state == {"kept": 1, "a": 99, "b": 150}
        assert listed.last_update_time == 199
        assert await service.get_session(**ME) == session
        known = Session.open(store, "talk")
        known.erase(entries=[known.root.messages.handle(150)])
        (listed,) = (await service.list_sessions(app_name="app")).sessions
        assert listed.state == {"kept": 1, "a": 99}

    asyncio.run(run())


# --- requests -------------------------------------------------------------------------------------------------------------


class Scripted(models.BaseLlm):  # type: ignore[misc, name-defined] # unknown where the kit is missing
    """A model that says or calls what a list has, and keeps each request."""

    script: list[Any]
    requests: list[Any] = []  # noqa: RUF012 - a field
    offered: list[Any] = []  # noqa: RUF012 - a field

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: ANN401, ARG002 - the kit's
        """Answer a request."""
        self.requests.append(llm_request.contents)
        declared = [tool.function_declarations for tool in llm_request.config.tools or ()]
        self.offered.append([function.name for functions in declared for function in functions])
        answer = self.script[len(self.requests) - 1]
        answer = answer(llm_request.contents) if callable(answer) else answer
        part = types.Part(text=answer) if isinstance(answer, str) else types.Part.from_function_call(**answer)
        yield models.LlmResponse(content=types.Content(role="model", parts=[part]))


def read_file(number: int) -> str:
    """Read a file."""
    return f"File {number} says: " + "grey weather. " * 200


def recalls(contents: list[Any]) -> dict[str, Any]:
    """Return a call that recalls the first output, which the record of the request names as left out."""
    record = next(text for text in texts(contents) if "recall " in text)
    dialog = record.partition("recall ")[2].partition(":")[0]
    return {"name": "recall", "args": {"handle": f"{dialog}:2"}}


def texts(contents: list[Any]) -> list[str]:
    """Return the texts of contents, and what functions returned."""
    parts = [part for content in contents for part in content.parts]
    return [part.text or str(part.function_response and part.function_response.response) for part in parts]


async def talked(store: Store, agent: Any, *plugins: Any) -> list[str]:  # noqa: ANN401 - the kit's
    """Run an agent once, and return the texts of the session's events."""
    service = adapter.PalaverSessionService(store)
    await service.create_session(**ME)
    app = apps.App(name="app", root_agent=agent, plugins=list(plugins))
    runner = runners.Runner(app=app, session_service=service)
    asked = types.Content(role="user", parts=[types.Part(text="Read all files.")])
    async for _ in runner.run_async(user_id="ann", session_id="talk", new_message=asked):
        pass
    return texts([found.content for found in (await service.get_session(**ME)).events])


@pytest.mark.parametrize("alone", [False, True])
def test_requests_are_small_and_the_session_is_whole(store: Store, alone: bool) -> None:
    """As a plugin or as a callback of one agent, each request fits, and what is left out comes back by tools that are offered only then."""
    rounds = 20
    reads = [{"name": "read_file", "args": {"number": number}} for number in range(rounds)]
    search = {"name": "search_history", "args": {"query": "File 7 says"}}
    model = Scripted(model="gemini-2.5-pro", script=[*reads, recalls, search, "Done."])
    fits = adapter.FitPlugin(budget=4_000)
    callback = {"before_model_callback": fits.before_model_callback} if alone else {}
    agent = agents.LlmAgent(name="bot", model=model, instruction="Read.", tools=[read_file], **callback)
    said = asyncio.run(talked(store, agent, *(() if alone else (fits,))))
    assert len(model.requests) == rounds + 3
    assert max(sum(map(len, texts(request))) for request in model.requests) < 5 * 4_000
    assert all("Read all files." in " ".join(texts(request)) for request in model.requests)
    assert model.offered[0] == ["read_file"]
    assert model.offered[-1] == ["read_file", "recall", "search_history"]
    assert [text for text in said if text.startswith("{'result': 'File")] == [
        str({"result": read_file(number)}) for number in range(rounds)
    ]
    recalled, found = said[-4], said[-2]
    assert "File 0 says" in recalled
    assert "File 7 says" in found


def test_a_budget_is_needed_where_nobody_knows_the_window(store: Store) -> None:
    """A model that palaver does not know is refused with what to do; the kit wraps what a plugin raises."""
    agent = agents.LlmAgent(name="bot", model=Scripted(model="homemade", script=["Hello."]))
    with pytest.raises(RuntimeError, match="window of the model 'homemade' is not known") as caught:
        asyncio.run(talked(store, agent, adapter.FitPlugin()))
    assert isinstance(caught.value.__cause__, InvalidInput)


def test_missing_and_known_sessions_are_refused(store: Store) -> None:
    """An id that is taken, and a session that was deleted, are the kit's own errors; a padded id is the same id."""

    async def run() -> None:
        service = adapter.PalaverSessionService(store)
        session = await service.create_session(**{**ME, "session_id": " talk "})
        assert session.id == "talk"
        with pytest.raises(errors.AlreadyExistsError):
            await service.create_session(**ME)
        await service.delete_session(**ME)
        with pytest.raises(missing.SessionNotFoundError):
            await service.append_event(session, event())
        assert (await service.create_session(app_name="app", user_id="ann")).id

    asyncio.run(run())
