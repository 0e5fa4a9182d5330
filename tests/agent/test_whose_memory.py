"""Whose memory it is: what one person told an agent is read by nobody else, whichever tool is tried; and it is his in all of his sessions."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from palaver import (
    Agent,
    CoreMemory,
    MemoryStore,
    Prompt,
    ScriptedProvider,
    Session,
    SqliteStore,
    SubjectMemory,
    archival_tools,
    erase,
    file_tools,
    recall_tools,
)
from palaver.agent.config import build_agents, load_config
from palaver.prompts import Runtime
from palaver.session.memory import MemoryWarning, shared_memory
from palaver.store import Store
from tests.agent.helper import both, calling
from tests.session.memory.test_recalling import use

SECRET = "kingfisher"
"""What only Ann says."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store in memory, and one on the disk."""
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield made
    made.close()


def helper(store: Store, *answers: object) -> tuple[Agent, ScriptedProvider]:
    """Give an agent with every tool of memory, all of them of whoever is talked with."""
    memory = SubjectMemory("helper", blocks={"human": {"value": "Nothing is known."}})
    provider = ScriptedProvider(answers)
    agent = Agent(
        "helper",
        Prompt(path="helper/system", prompt="You help."),
        "gpt-4o",
        provider,
        store=store,
        memory=memory,
        max_interrupt_steps=9,
        tools=(*file_tools(memory), *archival_tools(memory), *recall_tools()),
    )
    return agent, provider


KEEPS = both(
    ("core_memory_replace", {"label": "human", "old_content": "Nothing is known.", "new_content": f"A {SECRET} bird."}),
    ("file_write", {"path": "bird.md", "text": f"{SECRET} bird"}),
    ("archival_memory_insert", {"content": f"The {SECRET} is a bird."}),
)
LOOKS = both(
    ("file_list", {}),
    ("file_read", {"path": "bird.md"}),
    ("file_grep", {"pattern": "bird|."}),
    ("file_glob", {"pattern": "**"}),
    ("archival_memory_search", {"query": "a bird"}),
    ("search_history", {"query": "look"}),
    ("list_omitted", {}),
)


def told(agent: Agent, subject: str, alias: str) -> str:
    """Have a turn with somebody, and give all that stands in his session then."""
    agent.open(alias, subject=subject)
    agent.respond(input=f"Look, a {SECRET} bird." if subject == "ann" and alias == "first" else "What do you know?")
    dialog = agent.current_dialog
    said = "".join(
        dialog.store.body(dialog.dialog_id, header.seq).decode() for header in dialog.store.headers(dialog.dialog_id)
    )
    return said + str(dialog.view())


def test_what_one_person_told_is_read_by_nobody_else(store: Store) -> None:
    """Core memory, files, archive, recall by any handle, searches: Bob's requests and his log have no word of Ann's; her next session has hers."""
    agent, provider = helper(store, KEEPS, "Kept.")
    assert SECRET in told(agent, "ann", "first")
    places = [
        f"{node.dialog_id}:{header.seq}"
        for record in store.sessions()
        for node in store.nodes(record.session_id)
        for header in store.headers(node.dialog_id)
    ]
    assert len({place.partition(":")[0] for place in places}) == 2  # what was said, and what was kept
    for name in ("bob", "", "Ann"):
        recalls = both(*(("recall", {"handle": place}) for place in places))
        other, provider = helper(
            store, LOOKS, recalls, calling("core_memory_append", label="human", content="Hi."), "No."
        )
        assert SECRET not in told(other, name, f"of {name}")
        assert all(SECRET not in str(request.body) for request in provider.requests)
    other, provider = helper(store, LOOKS, "Yes.")
    said = told(other, "ann", "second")
    assert f"A {SECRET} bird." in str(provider.requests[0].body)
    assert f"bird.md:1: {SECRET} bird" in said
    assert f"The {SECRET} is a bird." in said
    assert "Look, a" not in said  # what was said in another session is not searched


def test_nobodys_conversation_keeps_its_memory_to_itself_and_its_forks(store: Store) -> None:
    """Without a subject memory lies in the dialog: another session has nothing of it, a fork has what there was."""
    memory = SubjectMemory(blocks={"human": {"value": "new"}})
    one, other = (Session.create(store, name).root for name in ("one", "other"))
    memory.core(one).append("human", SECRET)
    memory.files(one).write("a", SECRET)
    memory.archive(one).insert(SECRET)
    assert memory.core(other).get("human").value == "new"
    assert memory.files(other).list() == ()
    assert len(memory.archive(other)) == 0
    fork = one.reload().fork()
    assert memory.core(fork).get("human").value == f"new\n{SECRET}"
    memory.core(fork).append("human", "more")
    assert "more" not in memory.core(one).get("human").value
    assert len(list(store.sessions())) == 2


def test_erasing_a_subject_erases_his_memory(tmp_path: Path) -> None:
    """One erasure, of what was said and of what was kept; the file has no word of it, and the next session begins anew."""
    path = tmp_path / "s.db"
    with SqliteStore(path) as store:
        told(helper(store, KEEPS, "Kept.")[0], "ann", "first")
        told(helper(store, KEEPS, "Kept.")[0], "bob", "first")
        erase(store, subject="ann")
        assert [record.subject for record in store.sessions()] == ["bob", "bob"]
        agent, provider = helper(store, LOOKS, "No.")
        told(agent, "ann", "again")
        assert "Nothing is known." in str(provider.requests[0].body)
        erase(store, subject="bob")
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_memories_are_made_once_however_many_come_at_the_same_time(tmp_path: Path) -> None:
    """Eight threads with a connection each, the same subject: one session of memory, one block, and every edit is in it."""

    def keep(number: int) -> None:
        with SqliteStore(tmp_path / "s.db") as store:
            dialog = Session.create(store, subject="ann").root
            SubjectMemory(blocks={"human": {"value": "begun"}}).core(dialog).append("human", str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(8)))
    with SqliteStore(tmp_path / "s.db") as store:
        (record,) = store.sessions(name="memory of ann")
        assert record.root is not None
        first, *rest = CoreMemory(Session.open(record.session_id, store).root).get("human").value.splitlines()
        assert (first, sorted(map(int, rest))) == ("begun", list(range(8)))


def test_a_memory_is_opened_once_and_many_are_let_go() -> None:
    """What was read is not read anew with each turn; of ten thousand people no more are kept open than are needed; in the trash is away."""
    store = MemoryStore()
    memory = SubjectMemory()
    ann = Session.create(store, subject="ann").root
    assert memory.core(ann) is memory.core(Session.create(store, subject="ann").root)
    assert memory.files(ann) is memory.files(ann)
    for number in range(300):
        memory.core(Session.create(store, subject=f"s{number}").root)
    assert len(memory._open) == 256
    memory.files(ann).write("a", "x")
    Session.open("memory of ann", store).delete()
    with pytest.warns(MemoryWarning, match="in the trash"):
        assert memory.files(ann).list() == ()


@pytest.mark.parametrize("subject", ["o'hara", "a\nb", "安", "x" * 5_000, "memory of ann", "%", "ann\u0000", "*"])
def test_any_subject_is_itself(store: Store, subject: str) -> None:
    """Whatever signs it has, and none is another one's."""
    memory = SubjectMemory()
    memory.core(Session.create(store, subject="ann").root).create("human", SECRET)
    mine = memory.core(Session.create(store, subject=subject).root)
    assert mine.blocks == ()
    mine.create("human", "mine")
    assert memory.core(Session.create(store, subject=subject).root).get("human").value == "mine"


def test_tools_of_an_agent_without_a_dialog_say_so() -> None:
    """Outside of a dialog nobody knows whose memory is meant."""
    memory = SubjectMemory()
    for tool in (*file_tools(memory), *archival_tools(memory)):
        arguments = {name: ["x"] if name == "tags" else "x" for name in tool.required}
        said, wrong = use((tool,), tool.name, None, **arguments)
        assert wrong
        assert "outside a dialog" in said


# --- configurations ----------------------------------------------------------------------------------------------------------------


def configured(store: Store, **memory: Any) -> Agent:  # noqa: ANN401 - any JSON value
    """Build an agent with a memory as a configuration says it."""
    section = {"name": "a", "model": "m", "system_prompt": "hi", "invoker": {"invoker": "scripted", "script": ["Ok."]}}
    return build_agents(load_config({"agent_configs": [section | memory]}), runtime=Runtime(), store=store)["a"]


@pytest.mark.parametrize("memory", [True, "team", {"name": "team"}, {"blocks": {"human": ""}}, {"shared": False}])
def test_a_configuration_that_does_not_say_whose_is_of_the_subject(store: Store, memory: object) -> None:
    """No way to write it down has two people share a memory without the word for it."""
    for subject, known in (("ann", ""), ("bob", ""), ("ann", SECRET), ("", ""), ("bob", ""), ("", "")):
        agent = configured(store, memory=memory)
        assert isinstance(agent.memory, SubjectMemory)
        agent.open("main", subject=subject)
        core = agent.memory.core(agent.current_dialog)
        if all(block.label != "human" for block in core.blocks):
            core.create("human")
        assert core.get("human").value == known
        if subject == "ann":
            core.rethink("human", SECRET)


def test_a_shared_memory_has_to_be_asked_for_by_that_word(store: Store) -> None:
    """`shared: true` is one memory for everybody, also one that an earlier version made; the memory of a subject is not touched by it."""
    shared_memory(store, "team").create("house", "Tea at four.")
    own = configured(store, memory="team")
    shared = configured(store, memory={"name": "team", "shared": True, "blocks": {"house": "unused", "new": "x"}})
    assert isinstance(shared.memory, CoreMemory)
    assert [block.value for block in shared.memory.blocks] == ["Tea at four.", "x"]
    shared.open("main", subject="ann")
    shared.respond(input="hi")
    assert "Tea at four." in str(shared.current_dialog.view().system)
    own.open("main", subject="ann")
    own.respond(input="hi")
    assert "Tea" not in str(own.current_dialog.view())
