"""A compaction that somebody took back: it stays so in the turns that follow, whoever goes on and wherever, until there is a reason."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import AutoCompact, MemoryStore, Prompt, Session, SqliteStore, tool
from palaver.agent import Agent
from palaver.context import POLICIES
from palaver.context.triggers import EventCount, Figures, Idle, Tokens, fired
from palaver.session import Dialog
from palaver.session.calls.composing import PolicyLike, tokens_of
from palaver.wire import Request, broken_at
from tests.agent.helper import MODEL, calling, scripted
from tests.agent.test_compacting import made

WHEN = AutoCompact(triggers=(Tokens(limit=1_500),))


def compacted(answers: int = 12) -> Agent:
    """Give an agent whose view has just become smaller by itself, without being asked."""
    agent, _ = scripted(["ok"] * answers, compact=WHEN)
    for number in range(20):
        agent.current_dialog.put_text(f"question {number} " + "word " * 40)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 40, role="assistant")
    turn(agent)
    assert len(made(agent)) == 1
    return agent


def turn(agent: Agent, text: str = "and?") -> int:
    """Have the agent answer, and give how often its view was compacted or taken back so far."""
    agent.receive(text)
    agent.respond()
    return len(made(agent))


def test_an_undo_holds_in_the_next_turns() -> None:
    """Not taken back by the next message, nor by those after it, until the view has grown by a tenth; then once."""
    agent = compacted()
    agent.current_dialog.undo()
    whole = agent.current_dialog.figures(model=MODEL)
    assert whole.undone
    assert whole.tokens == whole.compacted > 1_500
    assert [turn(agent) for _ in range(4)] == [2, 2, 2, 2]
    assert turn(agent, "word " * (whole.tokens // 9)) == 3
    assert not agent.current_dialog.figures(model=MODEL).undone


def test_somebody_who_asks_is_not_held_up() -> None:
    """By hand it is made smaller at once; behind that the figures are those of a compaction."""
    agent = compacted()
    agent.current_dialog.undo()
    assert WHEN.due(agent.current_dialog, MODEL) is None
    preview = WHEN.preview(agent.current_dialog, MODEL)
    preview.approve()
    figures = agent.current_dialog.figures(model=MODEL)
    assert (figures.compacted, figures.undone) == (preview.tokens_after, False)


def test_a_second_undo_holds_what_it_gives_back() -> None:
    """Two compactions, both taken back: the size that holds is that of the view that is there now."""
    agent = compacted()
    dialog = agent.current_dialog
    for number in range(12):
        dialog.put_text(f"more {number} " + "word " * 40)
        dialog.put_text(f"reply {number} " + "word " * 40, role="assistant")
    turn(agent)
    dialog.reload()
    assert len(made(agent)) == 2
    sizes = []
    for _ in range(2):
        dialog.undo()
        figures = dialog.figures(model=MODEL)
        assert figures.compacted == figures.tokens
        assert WHEN.due(dialog, MODEL) is None
        sizes.append(figures.tokens)
    assert sizes[0] < sizes[1]


def test_it_is_read_from_the_log(tmp_path: Path) -> None:
    """A dialog that is opened anew from the file, as by another process, and counts by another model; and a fork of it."""
    agent = compacted()
    with SqliteStore(tmp_path / "a.db") as store:
        dialog = Session.create(store, "s", owner="a").root
        for message in agent.current_dialog.messages:
            dialog.append(message)
        dialog.compact(budget=1_000, model=MODEL).approve()
        dialog.undo()
        dialog.put_text("said since")
    with SqliteStore(tmp_path / "a.db") as store:
        again = Session.open("s", store).root
        for model in (MODEL, "gpt-4o", "claude-sonnet-4-5", "gpt-4"):
            for one in (again, again.fork()):
                one.put_text("go on")
                figures = one.figures(model=model)
                assert figures.undone
                assert 0 < figures.compacted < figures.tokens < figures.compacted * 1.1
                assert WHEN.due(one, model) is None


def test_what_is_too_long_for_the_model_is_not_held() -> None:
    """A window that does not hold the view counts before the undo; behind a compaction it does not, for that could do no better."""
    undone = Figures(tokens=1_001, window=1_000, compacted=1_000, undone=True)
    assert fired((Tokens(),), undone) is not None
    assert fired((Tokens(),), replace(undone, tokens=1_000)) is None
    assert fired((Tokens(),), replace(undone, undone=False)) is None
    assert fired((Tokens(limit=10),), replace(undone, window=0)) is None


@given(
    st.integers(1, 10_000),
    st.integers(0, 20_000),
    st.integers(0, 20_000),
    st.integers(0, 500),
    st.floats(0, 10_000),
)
def test_no_trigger_fires_before_there_is_a_reason(
    compacted_to: int, tokens: int, window: int, events: int, idle: float
) -> None:
    """Whatever the figures: it has grown by a tenth, or the window does not hold it, or nothing fires."""
    figures = Figures(events=events, tokens=tokens, window=window, idle=idle, compacted=compacted_to, undone=True)
    if fired((EventCount(1), Tokens(limit=1), Idle(1, least=0)), figures) is not None:
        assert tokens >= compacted_to * 1.1 or tokens > window > 0


@settings(max_examples=25)
@given(st.lists(st.integers(1, 120), min_size=1, max_size=12), st.booleans())
def test_it_holds_exactly_so_long(lengths: list[int], elsewhere: bool) -> None:
    """Messages of any length, in the same dialog or in one that is opened anew each time: due at a tenth more, and never before."""
    store = MemoryStore()
    dialog: Dialog = Session.create(store, "s", owner="a").root
    for number in range(8):
        dialog.put_text(f"question {number} " + "word " * 100)
        dialog.put_text(f"answer {number} " + "word " * 100, role="assistant")
    whole = dialog.figures(model=MODEL).tokens
    dialog.compact(budget=700, model=MODEL).approve()
    dialog.undo()
    for length in lengths:
        dialog = Session.open("s", store).root if elsewhere else dialog
        dialog.put_text("word " * length)
        size = dialog.figures(model=MODEL).tokens
        assert (WHEN.due(dialog, MODEL) is not None) == (size >= whole * 1.1)


# --- under a context manager that commits by itself -----------------------------------------------------------------------------------


@tool
def cat(path: str) -> str:
    """Show a file."""
    return f"{path}\n" + f"a line of {path}\n" * 100


def reader(manager: object, turns: int = 2, **words: Any) -> tuple[Agent, list[Request]]:  # noqa: ANN401 - what an agent takes
    """Give an agent that looked at three files again and again (what it saw before is of no more use) and talks since, and its requests."""
    asked: list[Request] = []

    def answer(request: Request) -> object:
        asked.append(request)
        number = len(asked)
        return calling("cat", "", f"c{number}", path=f"{number % 3}.py") if number % 6 and talks else "done"

    talks = True
    prompt = Prompt(path="tester/reader", prompt="You read.", function_list=[cat])
    agent, _ = scripted(answer, prompt, context_manager=manager, **words)
    for number in range(turns):
        turn(agent, f"Look at it, {number}.")
    talks = False
    return agent, asked


def size(request: Request) -> int:
    """Give the size of what a request shows."""
    assert request.view is not None
    return tokens_of(request.view, MODEL)


SCHEDULED = ("palaver", {"type": "scheduled", "policy": "claude-code", "newest": 2})


@pytest.mark.parametrize("manager", SCHEDULED, ids=["palaver", "scheduled"])
@pytest.mark.parametrize("by_hand", [True, False])
def test_it_holds_under_a_schedule(manager: PolicyLike, by_hand: bool) -> None:
    """What somebody took back, his own compaction or the schedule's, is sent whole and not committed again; when it has grown by a tenth, it is."""
    agent, asked = reader(manager)
    dialog = agent.current_dialog.reload()
    assert made(agent)
    if by_hand:
        dialog.compact(budget=2_000, model=MODEL).approve()
    dialog.undo()
    whole, commits, begun = dialog.figures(model=MODEL).tokens, len(made(agent)), len(asked)
    assert [turn(agent) for _ in range(5)] == [commits] * 5
    assert all(whole < size(one) < whole * 1.1 for one in asked[begun:])
    assert all(broken_at(one, other) is None for one, other in pairwise(asked[begun:]))
    told = agent.current_dialog.compose(manager, model=MODEL)
    assert told.held
    assert told.plan.notes[-1].startswith("schedule: held")
    assert turn(agent, "word " * (whole // 9)) > commits
    assert size(asked[-1]) < whole
    calls = list(agent.current_dialog.reload().invocations)
    assert all(past.request().body == sent.body for past, sent in zip(calls, asked, strict=True))


def test_it_holds_under_a_schedule_in_another_process_and_in_a_fork(tmp_path: Path) -> None:
    """Read from the log: whoever opens the session, or forks it, and lets an agent go on."""
    for fork in (False, True):
        with SqliteStore(tmp_path / f"{fork}.db") as store:
            agent, _ = reader("palaver", store=store)
            agent.current_dialog.reload().undo()
            name = agent.current_dialog.session_id
        with SqliteStore(tmp_path / f"{fork}.db") as store:
            dialog = Session.open(name, store).root
            whole = dialog.figures(model=MODEL).tokens
            again, asked = reader("palaver", 0, store=store)
            again.adopt("other", dialog.fork() if fork else dialog)
            commits = len(made(again))
            assert turn(again) == commits
            assert size(asked[-1]) > whole


def test_want_of_room_ends_it() -> None:
    """A budget of each request that does not hold what was taken back: it is kept, and what is left out for it is written down."""
    agent, asked = reader("palaver", budget=4_000)
    dialog = agent.current_dialog.reload()
    while dialog.figures(model=MODEL).tokens <= 4_000:
        dialog.undo()
    commits = len(made(agent))
    assert turn(agent) == commits + 1
    assert size(asked[-1]) <= 4_000


@pytest.mark.parametrize("manager", sorted(POLICIES))
def test_nothing_is_written_behind_an_undo_by_whatever_shapes_requests(manager: str) -> None:
    """Every policy, with a window that holds the view: turns behind an undo add no compaction."""
    agent, asked = reader(manager, 1)
    dialog = agent.current_dialog.reload()
    dialog.compact(budget=1_500, model=MODEL).approve()
    dialog.undo()
    commits = len(made(agent))
    assert [turn(agent) for _ in range(2)] == [commits] * 2
    assert asked
