"""LangGraph's checkpoints on stores of palaver: its own conformance suite, its own saver as the oracle, and conversations that can be read."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Session
from palaver.session import searchable
from palaver.store import MemoryStore, Store

conformance = pytest.importorskip(
    "langgraph.checkpoint.conformance", reason="langgraph is not installed: ./run integrations"
)
base = pytest.importorskip("langgraph.checkpoint.base")
memory = pytest.importorskip("langgraph.checkpoint.memory")
said = pytest.importorskip("langchain_core.messages")
adapter = pytest.importorskip("palaver.integrations.langgraph")


def test_the_conformance_suite_passes_whole(new_store: Callable[[], Store]) -> None:
    """Every capability that LangGraph knows is there, also the optional ones, and passes."""

    async def saver() -> AsyncGenerator[Any, None]:
        yield adapter.PalaverCheckpointSaver(new_store())

    registered = conformance.checkpointer_test(name="palaver")(saver)
    report = asyncio.run(conformance.validate(registered))
    results = {name: (one.detected, one.failures) for name, one in report.results.items()}
    assert len(results) == 8
    assert results == dict.fromkeys(results, (True, []))


def checkpoint(number: int, values: dict[str, Any], versions: dict[str, int]) -> Any:  # noqa: ANN401 - LangGraph's own
    """Return a checkpoint whose id grows with its number."""
    made = base.empty_checkpoint()
    return {**made, "id": f"{number:08d}", "ts": str(number), "channel_values": values, "channel_versions": versions}


def at(thread: str, name: str = "", checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return a configuration."""
    told = {"thread_id": thread, "checkpoint_ns": name}
    return {"configurable": told if checkpoint_id is None else {**told, "checkpoint_id": checkpoint_id}}


THREADS = st.sampled_from(["a", "b"])
SPACES = st.sampled_from(["", "", "sub:1"])
PUT = st.tuples(st.just("put"), THREADS, SPACES, st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3), max_size=3))
WRITES = st.tuples(
    st.just("writes"),
    THREADS,
    SPACES,
    st.tuples(st.sampled_from(["t1", "t2"]), st.sampled_from(["", "p"]), st.sampled_from(["x", "__error__"])),
)
FORGET = st.tuples(st.just("forget"), THREADS, SPACES, st.none())


class Pair:
    """Our saver and LangGraph's, told the same. Ours is a new one now and then, as another process would have."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ours = adapter.PalaverCheckpointSaver(self.store)
        self.theirs = memory.InMemorySaver()
        self.count = 0
        self.parents: dict[tuple[str, str], list[str]] = {}

    def act(self, what: str, thread: str, name: str, told: Any) -> None:  # noqa: ANN401 - as the action has it
        """Call both."""
        known = self.parents.setdefault((thread, name), [])
        if what == "forget":
            self.ours = adapter.PalaverCheckpointSaver(self.store)
        elif what == "put":
            self.count += 1
            parent = known[self.count % len(known)] if known else None
            versions = dict.fromkeys(told, self.count)
            made = checkpoint(self.count, dict(list(told.items())[:2]), versions)
            for saver in (self.ours, self.theirs):
                saver.put(at(thread, name, parent), made, {"step": self.count % 3}, versions)
            known.append(made["id"])
        elif known:
            task, path, channel = told
            self.count += 1
            for saver in (self.ours, self.theirs):
                saver.put_writes(at(thread, name, known[-1]), [(channel, self.count), ("y", 1)], task, path)

    def seen(self, saver: Any) -> list[Any]:  # noqa: ANN401 - either saver
        """Return all that a saver gives."""
        found = [saver.get_tuple(at(*key)) for key in self.parents]
        found += [saver.get_tuple(at(*key, one)) for key, ids in self.parents.items() for one in ids]
        for key in self.parents:
            found += saver.list(at(*key), filter={"step": 1}, limit=2)
            found += sorted(saver.list({"configurable": {"thread_id": key[0]}}), key=str)
            found += saver.list(at(*key), before=at(*key, f"{self.count:08d}"))
        return found


@settings(max_examples=40)
@given(st.lists(PUT | WRITES | FORGET, max_size=14))
def test_saver_equals_the_saver_in_memory(acts: list[tuple[str, str, str, Any]]) -> None:
    """Whatever is put, forgotten and asked: ours and LangGraph's own saver in memory give the same, values, writes and order."""
    pair = Pair()
    for act in acts:
        pair.act(*act)
    assert pair.seen(pair.ours) == pair.seen(pair.theirs)


def put_messages(saver: Any, number: int, parent: int | None, *messages: Any) -> None:  # noqa: ANN401 - LangGraph's own
    """Put a state that holds these messages."""
    made = checkpoint(number, {"messages": list(messages)}, {"messages": number})
    above = at("talk", "", None if parent is None else f"{parent:08d}")
    saver.put(above, made, {"step": number}, {"messages": number})


def spoken(store: Store) -> list[list[str]]:
    """Return the words of each dialog of the conversation, the one that goes on last."""
    session = Session.open(store, "talk")
    dialogs = [one for one in session.dialogs if not one.owner.endswith(("checkpoints", "values"))]
    dialogs.sort(key=lambda one: one.dialog_id == session.root.dialog_id)
    return [[f"{message.role}: {message.text_content()}" for message in one.messages] for one in dialogs]


def test_a_conversation_can_be_read(store: Store) -> None:
    """Messages are there once, each in its role, with calls, results and usage, and can be searched."""
    saver = adapter.PalaverCheckpointSaver(store)
    asked = said.HumanMessage("Which files?", id="h1")
    calls = [{"id": "c1", "name": "ls", "args": {"path": "."}}]
    usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    looked = said.AIMessage([{"type": "text", "text": "I look."}], id="a1", tool_calls=calls, usage_metadata=usage)
    result = said.ToolMessage("a.txt", id="r1", tool_call_id="c1")
    told = said.AIMessage("One: a.txt.", id="a2")
    put_messages(saver, 1, None, asked)
    put_messages(saver, 2, 1, asked, looked, result)
    put_messages(adapter.PalaverCheckpointSaver(store), 3, 2, asked, looked, result, told)
    dialog = Session.open(store, "talk").root
    assert spoken(store) == [["user: Which files?", "assistant: I look.", "tool: a.txt", "assistant: One: a.txt."]]
    assert [dict(call.args) for call in dialog.messages[1].tool_calls()] == [{"path": "."}]
    assert dialog.messages[1].usage.input_tokens == 7
    assert [one.id for one in dialog.messages[2].tool_results()] == ["c1"]
    assert len(dialog.view().exchanges) == 3
    store.index(searchable)
    assert len(store.search("a.txt")) == 2


def test_changed_message_begins_a_fork(store: Store) -> None:
    """A message that is gone or changed, and a state that goes on from an older one, begin a fork behind what is the same."""
    saver = adapter.PalaverCheckpointSaver(store)
    one, two, three = (said.HumanMessage(word, id=word) for word in ("one", "two", "three"))
    put_messages(saver, 1, None, one, two)
    put_messages(saver, 2, 1, one, three)  # two was taken away
    put_messages(saver, 3, 1, one, two, three)  # gone on from the first: its own dialog takes it
    put_messages(saver, 4, 1, one, two, said.HumanMessage("other", id="o"))  # and again: now that is a fork
    assert spoken(store) == [
        ["user: one", "user: two", "user: three"],
        ["user: one", "user: three"],
        ["user: one", "user: two", "user: other"],
    ]
    put_messages(saver, 5, 4, said.HumanMessage("anew", id="n"))
    assert spoken(store)[-1] == ["user: anew"]
