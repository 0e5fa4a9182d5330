"""Two writers on one dialog: every entry of both is there, or the loser was told (law 5)."""

from contextlib import closing
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Conflict, Store, UserMessage, open_store
from palaver.log import Label, Place
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from tests.threads import WAIT


def _twice(store: Store) -> tuple[Dialog, Dialog]:
    """Open one dialog as two processes would."""
    session = Session.create(store, "shared")
    return session.root, Session.open(store, "shared").root


def _texts(dialog: Dialog) -> list[str]:
    return [message.text_content() for message in dialog.messages]


def _writes(dialog: Dialog, who: int, turns: int, together: Barrier) -> None:
    """Append at the same moment as the others, and again when one of them was first; whatever stands before an append is known then."""
    for turn in range(turns):
        together.wait(WAIT)
        while True:
            try:
                dialog.put_text(f"{who}.{turn}")
                break
            except Conflict:
                dialog.reload()
        assert dialog.messages[-1].text_content() == f"{who}.{turn}"
        assert len(dialog.messages) == dialog.messages.handle(-1).seq + 1


def _opens_and_writes(url: str, who: int, turns: int, together: Barrier) -> None:
    with closing(open_store(url)) as store:
        _writes(Session.open(store, "shared").root, who, turns, together)


def test_messages_are_there_once_though_appended_twice() -> None:
    """Messages that are there already, by their ids, directly after what the writer knows, are appended; any others there are a conflict."""
    mine, others = _twice(MemoryStore())
    said = [UserMessage("a"), UserMessage("b")]
    stored = others.append(said)
    others.marks.label(others.messages.handle(0), "note")
    with pytest.raises(Conflict):
        mine.append([*said, UserMessage("c")])
    assert mine.append(said) == stored
    mine.put_text("c")
    assert _texts(mine) == _texts(others.reload()) == ["a", "b", "c"]
    mine.append(said)
    assert _texts(mine) == ["a", "b", "c", "a", "b"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("processes", "turns"), [(3, 12), pytest.param(8, 400, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_law_05_processes_share_a_dialog(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, how: str, processes: int, turns: int
) -> None:
    """A process and its children append at once: forked ones with the dialog that was open, spawned ones with their own; nothing is lost."""
    url = str(tmp_path / "s.db") if kind == "sqlite" else request.getfixturevalue("postgres_server").url()
    context = get_context("fork") if how == "fork" else get_context("spawn")
    together = context.Barrier(processes)
    with closing(open_store(url)) as store:
        dialog = Session.create(store, "shared").root
        dialog.put_text("first")
        work = partial(_writes, dialog) if how == "fork" else partial(_opens_and_writes, url)
        children = [
            context.Process(target=work, args=(who, turns, together), daemon=True) for who in range(1, processes)
        ]
        for child in children:
            child.start()
        _writes(dialog, 0, turns, together)
        for child in children:
            child.join()
        texts = _texts(dialog.reload())
        assert {child.exitcode for child in children} == {0}
        assert texts == _texts(Session.open(store, "shared").root)
        for who in range(processes):
            assert [text for text in texts if text.startswith(f"{who}.")] == [f"{who}.{turn}" for turn in range(turns)]
        assert len(texts) == 1 + processes * turns
        assert store.verify(dialog.dialog_id) == ()


def test_an_annotation_never_makes_a_turn_fail(every_store: Store) -> None:
    """A label by one writer lets the other's next append through; an append hidden behind an own annotation does not pass unseen."""
    one, two = _twice(every_store)
    one.put_text("first")
    two.reload()
    two.marks.label(two.messages.handle(0), "start")
    one.put_text("second")
    two.marks.label(two.messages.handle(0), "begin")
    assert _texts(two) == ["first"]
    with pytest.raises(Conflict):
        two.put_text("unaware")
    assert _texts(two.reload()) == ["first", "second"]
    assert dict(two.marks.labels) == {two.messages.handle(0): "begin"}


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["append", "append", "annotate", "reload"])), max_size=30
    )
)
def test_law_05_nothing_is_lost_and_nobody_is_ignored(steps: list[tuple[int, str]]) -> None:
    """Three writers in any order: the log holds what was acknowledged, in that order; what was not made on the newest head was refused."""
    store = MemoryStore()
    session = Session.create(store, "s")
    writers = [session.root, Session.open(store, "s").root, Session.open(store, "s").root]
    said: list[str] = []
    known = [0, 0, 0]
    for number, (who, what) in enumerate(steps):
        if what == "annotate":
            label = Label(target=Place(dialog=session.root.dialog_id, seq=0), label=str(number))
            writers[who].record(label, beside=True)
        elif what == "reload":
            writers[who].reload()
            known[who] = len(said)
        elif known[who] == len(said):
            writers[who].put_text(str(number))
            said.append(str(number))
            known[who] = len(said)
        else:
            with pytest.raises(Conflict):
                writers[who].put_text(str(number))
        assert _texts(writers[who]) == said[: known[who]]
    assert _texts(session.root.reload()) == said
