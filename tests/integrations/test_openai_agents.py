"""The OpenAI Agents SDK on stores of palaver: items as they were, runs with tools, several processes at once, and requests that fit."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from palaver import Session
from palaver.errors import Conflict, InvalidInput
from palaver.log import entry_at
from palaver.messages import AssistantMessage, TextContent, ToolCallContent, ToolMessage, ToolResultContent, UserMessage
from palaver.store import MemoryStore, Store, open_store
from palaver.store.redacting import redacting
from palaver.testing import strict
from palaver.testing.session_laws import check_session
from tests.postgres import Server
from tests.store.backends import SqliteBackend
from tests.store.postgres_backend import emptied
from tests.wire.pictures import png

agents = pytest.importorskip("agents", reason="openai-agents is not installed: ./run integrations")
testing = pytest.importorskip("agents.testing")
openai = pytest.importorskip("openai")
adapter = pytest.importorskip("palaver.integrations.openai_agents")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md"

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "look",
    "arguments": '{"b": 1, "a": 2}',
    "status": "completed",
}
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "user", "content": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "https://x.example/a.png"}]},
    {"type": "message", "role": "developer", "content": "be brief"},
    {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "gAAA", "content": None},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "ä😀", "annotations": [], "logprobs": []}],
    },
    CALL,
    {"type": "function_call_output", "call_id": "c1", "output": "42"},
    {"type": "function_call_output", "call_id": "c9", "output": [{"type": "input_text", "text": "of no call"}]},
    {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls", "id": "ctc_1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "n", "server_label": "s"},
    {"type": "item_reference", "id": "msg_0"},
    {"role": "user", "content": "NUL \0 and \ud800"},
    {"role": "user", "content": ""},
    {"type": "of tomorrow", "zeta": [1.50, None, {"b": 1, "a": {}}]},
    {"no": "type"},
    {},
]  # fmt: skip


def ran(work: Any) -> Any:  # noqa: ANN401 - a coroutine of anything
    """Run a coroutine."""
    return asyncio.run(work)


async def filled(session: Any, *texts: str) -> Any:  # noqa: ANN401 - the adapter's class is there only with the SDK
    """Add an item of the user for each text, one by one, and return the session."""
    for text in texts:
        await session.add_items([{"role": "user", "content": text}])
    return session


def said(items: list[Any]) -> list[str]:
    """Return the contents of items."""
    return [item["content"] for item in items]


# --- items --------------------------------------------------------------------------------------------------------------------


def test_items_come_back_as_they_were(new_store: Callable[[], Store]) -> None:
    """Any item, also one of an unknown type or one that is no message, comes back equal, keys in their order, to another adapter too."""
    store = new_store()
    session = adapter.PalaverSession("s", store)
    assert isinstance(session, agents.Session)

    async def work() -> object:
        await session.add_items(ITEMS[:3])
        await session.add_items(ITEMS[3:])
        return await adapter.PalaverSession("s", store).get_items()

    assert list(map(json.dumps, ran(work()))) == list(map(json.dumps, ITEMS))
    check_session(session.session)
    assert ran(adapter.PalaverSession("other", store).get_items()) == []


def test_what_a_message_says_is_kept_once(store: Store) -> None:
    """Only an item that its message does not say completely has its JSON beside it; a call's result is none of them."""
    session = adapter.PalaverSession("s", store)
    ran(session.add_items([ITEMS[0], CALL, ITEMS[6]]))
    dialog = session.session.root
    entries = [entry_at(store, dialog.messages.handle(index)) for index in range(3)]
    assert [entry.raw is not None for entry in entries] == [False, True, False]


def test_limit_returns_the_newest(store: Store) -> None:
    """A limit, or that of the settings, counts from the end over any number of entries; 0 is none; a negative one is refused."""
    session = adapter.PalaverSession("s", store, session_settings=agents.SessionSettings(limit=2))
    texts = [str(number) for number in range(300)]
    ran(session.add_items([{"role": "user", "content": text} for text in texts]))
    assert said(ran(session.get_items())) == texts[-2:]
    for limit in (0, 1, 128, 129, 257, 299, 300, 301):
        assert said(ran(session.get_items(limit))) == (texts[-limit:] if limit else [])
    with pytest.raises(InvalidInput):
        ran(session.get_items(-1))
    with pytest.raises(InvalidInput):
        adapter.PalaverSession("", store)


def test_pop_and_clear_lose_nothing(new_store: Callable[[], Store]) -> None:
    """The newest item leaves, then all; what left is still in its branch, and undoing the rewind brings it back."""
    store = new_store()
    session = adapter.PalaverSession("s", store)

    async def work() -> None:
        assert await session.pop_item() is None
        await session.clear_session()
        await filled(session, "a", "b", "c")
        assert (await session.pop_item())["content"] == "c"
        assert (await session.pop_item())["content"] == "b"
        await filled(session, "d")
        assert said(await session.get_items()) == ["a", "d"]
        await session.clear_session()
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await filled(session, "e")
        assert said(await session.get_items()) == ["e"]

    ran(work())
    known = session.session
    check_session(known)
    texts = {tuple(message.content for message in dialog.messages) for dialog in known.dialogs}
    assert texts == {("a", "b", "c"), ("a", "b"), ("a", "d"), ("e",)}
    known.undo_rewind(known.root)
    assert said(ran(session.get_items())) == ["a", "d"]


def test_a_failed_batch_writes_nothing(store: Store) -> None:
    """A batch with an item that is not JSON, or not a dict, raises, and none of its items is there."""
    session = ran(filled(adapter.PalaverSession("s", store), "a"))
    for wrong in (object(), float("nan")):
        with pytest.raises(InvalidInput):
            ran(session.add_items([{"role": "user", "content": "b"}, {"role": "user", "content": wrong}]))
    for items in ("text", [{"role": "user", "content": "b"}, 1]):
        with pytest.raises(InvalidInput, match="dict"):
            ran(session.add_items(items))
    assert said(ran(session.get_items())) == ["a"]


def test_secrets_are_taken_out_of_items(store: Store) -> None:
    """A redacting store keeps a key neither in the message nor in the JSON beside it."""
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    session = adapter.PalaverSession("s", redacting(store, redact=True))
    ran(
        session.add_items(
            [{"role": "user", "content": f"use {key}"}, {**CALL, "arguments": json.dumps({"token": key})}]
        )
    )
    assert not any(key.encode() in body for _, body in store.bodies(session.session.root.dialog_id))
    first, second = ran(session.get_items())
    assert first["content"] == "use [redacted:github-token]"
    assert second["name"] == "look"


def test_erased_item_stays_erased(store: Store) -> None:
    """After an erasure the item says so, and its words are nowhere."""
    session = ran(filled(adapter.PalaverSession("s", store), "a", "secret"))
    known = session.session
    known.erase(entries=[known.root.messages.handle(1)])
    assert said(ran(session.get_items())) == ["a", "[erased]"]


def test_damaged_item_hides_no_other(tmp_path: Path) -> None:
    """An item that cannot be read any more is passed over: a limit counts those that can, and popping returns the newest of them."""
    backend = SqliteBackend(tmp_path / "store.db")
    with open_store(str(backend.path)) as store:
        session = ran(filled(adapter.PalaverSession("s", store), "a", "b", "c"))
        backend.damage(session.session.root.dialog_id, 2)
        assert said(ran(session.get_items())) == ["a", "b"]
        assert said(ran(session.get_items(2))) == ["a", "b"]
        assert ran(session.pop_item())["content"] == "b"
        assert said(ran(session.get_items())) == ["a"]


def test_image_of_another_agent_is_an_item(tmp_path: Path) -> None:
    """An image that palaver stored is in its item; where its bytes are lost, a text stands for it, and the other items are there."""
    backend = SqliteBackend(tmp_path / "store.db")
    with open_store(str(backend.path)) as store:
        known = Session.create(store, "s")
        known.root.put_image(png(3, 4), caption="a lamp")
        session = adapter.PalaverSession.of(known)
        (item,) = ran(session.get_items())
        assert [part["type"] for part in item["content"]] == ["input_text", "input_image"]
        backend.run("DELETE FROM blob_bytes")
        (item,) = ran(session.get_items())
        assert [part["type"] for part in item["content"]] == ["input_text", "input_text"]


def test_session_in_the_trash_begins_anew(store: Store) -> None:
    """After its session was moved to the trash, the name begins another one; restored or not, the first one keeps its items."""
    session = ran(filled(adapter.PalaverSession("s", store), "a"))
    known = session.session
    known.delete()
    assert ran(session.get_items()) == []
    ran(filled(session, "b"))
    assert said(ran(session.get_items())) == ["b"]
    assert [message.content for message in Session.open(store, known.session_id).root.messages] == ["a"]


def test_session_of_another_agent_goes_on() -> None:
    """A session that palaver wrote is a list of valid items; what is added continues it, and popping takes items one by one."""
    known = Session.create(MemoryStore(), "imported")
    call = ToolCallContent(id="c1", name="look", args={"at": 1})
    known.root.append(
        [
            UserMessage.text("look"),
            AssistantMessage(contents=(TextContent("I look."), call)),
            ToolMessage(contents=(ToolResultContent(id="c1", content="42"),)),
        ]
    )
    session = adapter.PalaverSession.of(known)
    items = ran(session.get_items())
    assert [item.get("type", "message") for item in items] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [item.get("call_id") for item in items[2:]] == ["c1", "c1"]
    assert [ran(session.pop_item()) for _ in range(2)] == items[:1:-1]
    assert ran(session.get_items()) == items[:2]
    ran(filled(session, "on"))
    assert ran(session.get_items())[:2] == items[:2]
    assert known.root.reload().tail is not None


# --- several writers ----------------------------------------------------------------------------------------------------------


def write(url: str, who: str, popped: Path) -> None:
    """Add batches, pop an item after every fifth, and write down what was popped: in a process of its own."""

    async def work() -> None:
        session = adapter.PalaverSession("shared", url)
        for number in range(15):
            await session.add_items([{"role": "user", "content": f"{who} {number} {part}"} for part in "xyz"])
            if number % 5 == 4:
                item = await session.pop_item()
                with popped.open("a") as file:
                    file.write(f"{item['content']}\n")
        session.close()

    asyncio.run(work())


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store of each kind that processes share."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres_server")
    return emptied(server)


def test_two_processes_lose_nothing(url: str, tmp_path: Path) -> None:
    """Both begin one session, append batches and pop: each batch is whole and in order, each popped item left once, the rest is there."""
    context = get_context("fork")  # the SDK takes seconds to import
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, about a fork in a process with threads
        jobs = [context.Process(target=write, args=(url, who, tmp_path / who)) for who in "ab"]
        for job in jobs:
            job.start()
    for job in jobs:
        job.join(120)
    assert [job.exitcode for job in jobs] == [0, 0]
    popped = [line for who in "ab" for line in (tmp_path / who).read_text().splitlines()]
    written = {f"{who} {number} {part}" for who in "ab" for number in range(15) for part in "xyz"}
    with open_store(url) as store:
        assert len(list(store.sessions())) == 1
        session = adapter.PalaverSession("shared", store)
        texts = said(ran(session.get_items()))
        check_session(session.session)
    assert sorted([*texts, *popped]) == sorted(written)
    for who in "ab":
        own = [text for text in texts if text.startswith(who)]
        assert own == sorted(own, key=lambda text: (int(text.split()[1]), text))
    for text in texts:
        who, number, part = text.split()
        at = texts.index(text)
        if part != "x" and f"{who} {number} x" in texts:
            assert texts[at - 1].split()[:2] == [who, number], "a batch is not torn"


@pytest.mark.parametrize("leave", ["pop_item", "clear_session"])
def test_a_writer_of_palaver_is_told(two_stores: tuple[Store, Store], leave: str) -> None:
    """A process that has the dialog open when the SDK leaves it does not go on there unaware: its next message conflicts, and the new root takes it."""
    store, another = two_stores
    session = ran(filled(adapter.PalaverSession("s", store), "a", "b"))
    dialog = Session.open(another, "s").root
    ran(getattr(session, leave)())
    with pytest.raises(Conflict):
        dialog.append(UserMessage.text("c"))
    Session.open(another, "s").root.append(UserMessage.text("c"))
    assert said(ran(session.get_items()))[-1] == "c"
    session.session.undo_rewind(session.session.root)
    assert said(ran(session.get_items())) == ["a", "b"]
    check_session(session.session)


def test_tasks_of_several_adapters_lose_nothing(store: Store) -> None:
    """Adapters of one process, each in tasks at once, write every item once."""
    sessions = [adapter.PalaverSession("s", store) for _ in range(3)]

    async def work() -> object:
        jobs = [
            one.add_items([{"role": "user", "content": f"{who} {n}"}])
            for who, one in enumerate(sessions)
            for n in range(8)
        ]
        await asyncio.gather(*jobs)
        return await sessions[0].get_items()

    assert sorted(said(ran(work()))) == sorted(f"{who} {number}" for who in range(3) for number in range(8))


def test_cancelled_write_is_whole(store: Store) -> None:
    """A caller that is cancelled while a batch is written gets the cancellation after the batch is there, or none of it is."""
    session = adapter.PalaverSession("s", store)

    async def work() -> object:
        task = asyncio.ensure_future(session.add_items([{"role": "user", "content": str(n)} for n in range(20)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert len(ran(work())) in {0, 20}


# --- runs of the SDK ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tool() -> object:
    """Return a tool of the SDK with a long result."""

    def look(at: int) -> str:
        """Look at something."""
        return f"At {at}: " + "lamp " * 400

    return agents.function_tool(look)


def call(call_id: str, name: str, **arguments: object) -> object:
    """Return a step of a scripted model that calls a tool."""
    return [testing.function_call(name, json.dumps(arguments), call_id=call_id)]


def answer(text: str) -> object:
    """Return a step of a scripted model that says a text."""
    return [testing.assistant_message(text)]


@pytest.fixture(autouse=True)
def _untraced() -> None:
    """Send no traces."""
    agents.set_tracing_disabled(disabled=True)


def test_runs_continue_with_all_that_was_said(new_store: Callable[[], Store], tool: object) -> None:
    """The second run's request has every item of the first; palaver shows the same conversation with its calls answered."""
    store = new_store()
    model = testing.ScriptedModel([call("c1", "look", at=1), answer("Lamps."), answer("Many.")])
    agent = agents.Agent(name="helper", model=model, tools=[tool])

    async def work() -> object:
        await agents.Runner.run(agent, "What is there?", session=adapter.PalaverSession("s", store))
        result = await agents.Runner.run(agent, "How many?", session=adapter.PalaverSession("s", store))
        return result.final_output

    assert ran(work()) == "Many."
    sent = model.calls[-1].input
    assert [item.get("role") or item["type"] for item in sent] == [
        *("user", "function_call", "function_call_output", "assistant", "user"),
    ]
    known = adapter.PalaverSession("s", store).session
    check_session(known)
    assert [message.role.value for message in known.root.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert known.root.append(UserMessage.text("on")) is not None
    assert known.root.request("openai-responses", "gpt-5")["input"]


def test_filter_makes_requests_fit_and_the_session_keeps_all(store: Store, tool: object) -> None:
    """Every request is within the budget and valid, what is left out can be recalled by the model, and the session has every item."""
    turns = 8
    steps = [step for n in range(turns) for step in (call(f"c{n}", "look", at=n), answer(f"Seen {n}."))]
    model = testing.ScriptedModel([*steps, call("r", "search_history", query="lamp"), answer("Done.")])
    fits = adapter.FitFilter("gpt-5", budget=2_500)
    agent = agents.Agent(name="helper", model=model, instructions="Look.", tools=[tool, *fits.tools])
    session = adapter.PalaverSession("s", store)
    config = agents.RunConfig(call_model_input_filter=fits)

    async def work() -> None:
        for n in range(turns):
            await agents.Runner.run(agent, f"Look at {n}.", session=session, run_config=config)
        await agents.Runner.run(agent, "What did you see?", session=session, run_config=config)

        newest.append(fits.fit)

    newest: list[Any] = []
    ran(work())
    assert newest[0].omitted
    assert newest[0].tokens <= 2_500 < newest[0].tokens_before
    assert all(len(json.dumps(made.input)) < 12_000 for made in model.calls)
    for made in model.calls:
        asked = [item["call_id"] for item in made.input if item.get("type") == "function_call"]
        answered = [item["call_id"] for item in made.input if item.get("type") == "function_call_output"]
        assert asked == answered
    found = next(item["output"] for item in model.calls[-1].input if item.get("call_id") == "r" and "output" in item)
    assert "lamp" in found
    kept = ran(session.get_items())
    assert len(kept) == 4 * turns + 4
    assert sum("lamp " * 400 in str(item.get("output")) for item in kept) == turns


def test_runs_at_once_recall_their_own(store: Store) -> None:
    """Two conversations that share a filter each find what was said in their own."""
    fits = adapter.FitFilter("gpt-5", budget=2_500)
    config = agents.RunConfig(call_model_input_filter=fits)
    fitted = asyncio.Barrier(2)

    class TogetherModel(testing.ScriptedModel):  # type: ignore[misc,name-defined] # of a package that may be missing
        async def get_response(self, *args: object, **kwargs: object) -> object:
            await fitted.wait()
            return await super().get_response(*args, **kwargs)

    async def talk(word: str) -> str:
        model = TogetherModel([call("r", "search_history", query="secret"), answer("Done.")])
        agent = agents.Agent(name=word, model=model, tools=fits.tools)
        session = adapter.PalaverSession(word, store)
        for number in range(8):
            await session.add_items([{"role": "user", "content": f"The secret is {word}. " + f"line {number} " * 300}])
            await session.add_items([{"role": "assistant", "content": "Noted."}])
        await agents.Runner.run(agent, "What is the secret?", session=session, run_config=config)
        found = (item for item in model.calls[-1].input if item.get("call_id") == "r" and "output" in item)
        return str(next(found)["output"])

    async def both() -> list[str]:
        return list(await asyncio.gather(talk("apple"), talk("pear")))

    apple, pear = ran(both())
    assert "apple" in apple
    assert "pear" not in apple
    assert "pear" in pear
    assert "apple" not in pear


def test_filter_without_anything_left_out_changes_nothing(store: Store) -> None:
    """A list that fits is sent as it is; recalling says that nothing was left out before the first call."""
    fits = adapter.FitFilter(policy="full", budget=50_000)
    model = testing.ScriptedModel([answer("Hello.")])
    agent = agents.Agent(name="helper", model=model)
    assert ran(fits.tools[0].on_invoke_tool(None, "{}")) == "Nothing was left out."
    config = agents.RunConfig(call_model_input_filter=fits)
    ran(agents.Runner.run(agent, "Hi.", session=adapter.PalaverSession("s", store), run_config=config))
    assert model.calls[0].input == [{"role": "user", "content": "Hi."}]


def test_window_is_that_of_the_model(store: Store) -> None:
    """The window is that of the agent's model, or of the filter's where it names one; a model that nobody knows is refused with what to do."""

    async def asked(model: Any, fits: Any) -> None:  # noqa: ANN401 - a model of the SDK
        agent = agents.Agent(name="helper", model=model)
        session = adapter.PalaverSession("s", store)
        config = agents.RunConfig(call_model_input_filter=fits)
        await agents.Runner.run(agent, "Hi.", session=session, run_config=config)

    class HomemadeModel(testing.ScriptedModel):  # type: ignore[misc,name-defined] # of a package that may be missing
        model = "homemade"

    made = [HomemadeModel([answer("Hello.")]) for _ in range(3)]
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        ran(asked(made[0], adapter.FitFilter()))
    ran(asked(made[1], adapter.FitFilter("gpt-5")))
    ran(asked(made[2], adapter.FitFilter(budget=8_000)))
    assert [len(model.calls) for model in made] == [0, 1, 1]


def test_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python of the section on this SDK runs and prints what it says."""
    section = PAGE.read_text("utf-8").partition("## OpenAI Agents SDK")[2].partition("\n## ")[0]
    code = "\n".join(re.findall(r"```python[^\n]*\n(.*?)```", section, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})  # noqa: S102 - of our own page
    assert capsys.readouterr().out.splitlines() == re.findall(r"^#> (.*)$", code, re.MULTILINE)


def test_fitted_requests_are_valid_for_the_provider(store: Store, tool: object) -> None:
    """«leading history cut x strict»: a server that refuses what OpenAI refuses has nothing to refuse while the filter cuts bound reasoning."""
    server = strict.openai_responses()
    fits = adapter.FitFilter("gpt-5", budget=2_500)
    settings = agents.ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
    session = adapter.PalaverSession("s", store)

    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="any", max_retries=0) as client:
            model = agents.OpenAIResponsesModel(model="gpt-5", openai_client=client)
            agent = agents.Agent(
                name="helper", model=model, instructions="Look.", tools=[tool, *fits.tools], model_settings=settings
            )
            for number in range(8):
                asked = {"type": "function_call", "name": "look", "arguments": json.dumps({"at": number})}
                server.answers([{"type": "reasoning", "summary": []}, asked], [f"Seen {number}."])
                config = agents.RunConfig(call_model_input_filter=fits)
                await agents.Runner.run(agent, f"Look at {number}.", session=session, run_config=config)

            newest.append(fits.fit)

    newest: list[Any] = []
    with server:
        ran(work())
    assert len(server.served) == 16
    assert server.refused == []
    assert newest[0].omitted
    assert len(ran(session.get_items())) == 8 * 5
    check_session(session.session)
