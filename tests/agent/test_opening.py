"""Taking a dialog up: what an agent reads of a long log, and that it is what reading all of it would tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver import AssistantMessage, MemoryStore, Prompt, Session, UserMessage
from palaver.agent import Agent, ProviderInvoker
from palaver.agent.turn import CALL, DELIVERED, Turn, read_turn
from palaver.errors import IllegalEntry
from palaver.ids import DialogId
from palaver.log import Entry, Header, Span, decode_entry, draft, rule
from palaver.log.entries import Custom, Inbox, Invocation, MessageEntry, TurnEnded, TurnStarted
from palaver.messages import FrozenDict, Message
from palaver.models import ScriptedProvider
from palaver.session.calls.booking import Books
from palaver.store import Store
from palaver.testing.logs import Log
from palaver.view import Drop, Plan, apply, checkpoint, fold, held
from tests.agent.helper import MODEL


def delivered(log: Log, number: int) -> tuple[Entry, ...]:
    """Give a message of the user's that delivers one of those that arrived meanwhile, once more perhaps."""
    arrived = [header.seq for header in log.store.headers(log.dialog) if header.kind == "inbox"]
    metadata = FrozenDict({DELIVERED: arrived[number % len(arrived)]} if arrived else {})
    return (MessageEntry(message=UserMessage.text("late").model_copy(update={"metadata": metadata})),)


def begun(log: Log, _number: int) -> tuple[Entry, ...]:
    """Give what takes a turn in hand, as the loop does."""
    turn = read_turn(log.store, log.dialog)
    seq = log.store.last(log.dialog).seq + 1
    data = {"began": turn.began if turn.began >= 0 else None, "inbox": min(turn.inbox, default=seq)}
    return (TurnStarted(agent="a"), Custom(custom_type=CALL, data=data))


STEPS: dict[str, Callable[[Log, int], tuple[Entry, ...]]] = {
    "user": lambda _, number: (MessageEntry(message=UserMessage.text(f"said {number}")),),
    "deliver": delivered,
    "model": lambda _, number: (MessageEntry(message=AssistantMessage(content=f"answer {number}")),),
    "inbox": lambda _, number: (Inbox(message=UserMessage.text(f"meanwhile {number}")),),
    "begin": begun,
    "begin as another program": lambda *_: (TurnStarted(agent="b"),),
    **{end: lambda *_, end=end: (TurnEnded(outcome=end),) for end in ("final", "failed", "waiting")},
    "call": lambda *_: (Invocation(model="m"),),
    "other": lambda *_: (Custom(custom_type="other", data={}),),
}
"""What may happen to a dialog, as entries."""


def written(steps: list[str]) -> Log:
    """Write the steps that may stand where they come."""
    log = Log()
    for number, name in enumerate(steps):
        for entry in STEPS[name](log, number):
            ready, last = draft(entry)[0], log.store.last(log.dialog)
            try:
                if rule(ready.kind).turn:
                    log.store.append(log.dialog, [ready], last.turn_head)
                else:
                    log.store.annotate(log.dialog, ready)
            except IllegalEntry:
                break
    return log


# --- the same by reading everything --------------------------------------------------------------------------------------------


def all_entries(store: Store, dialog: DialogId) -> list[Entry]:
    """Read a whole log."""
    return [decode_entry(body) for _, body in store.bodies(dialog)]


def undelivered(said: list[Entry], since: int) -> dict[int, Message]:
    """Give the messages of the inbox from an entry on that no later message delivers."""
    messages = [one.message for one in said[since:] if isinstance(one, MessageEntry)]
    done = {one.metadata.get(DELIVERED) for one in messages}
    arrived = enumerate(said)
    return {seq: one.message for seq, one in arrived if isinstance(one, Inbox) and seq >= since and seq not in done}


def turn_of_all(store: Store, dialog: DialogId) -> Turn:
    """Give where the newest turn stands, from a walk through the whole log."""
    said = all_entries(store, dialog)
    started = max((seq for seq, one in enumerate(said) if isinstance(one, TurnStarted)), default=-1)
    behind = said[started + 1] if 0 <= started < len(said) - 1 else None
    mark: Mapping[str, Any] = behind.data if isinstance(behind, Custom) and behind.custom_type == CALL else {}
    began, since = (started if mark.get(name) is None else int(mark[name]) for name in ("began", "inbox"))
    turn = Turn()
    for seq, entry in enumerate(said):
        if 0 <= began <= seq:
            turn.take(seq, entry)
    if 0 <= since < began:
        turn.inbox |= {seq: one for seq, one in undelivered(said, since).items() if seq < began}
    if began >= 0 and not (turn.over and (turn.said or turn.inbox)):
        return turn
    return Turn(seen=len(said), said=True, inbox=undelivered(said, max(since, 0)))


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=40))
@example(["inbox", "deliver"])
@example(["user", "inbox", "begin", "final", "deliver", "begin"])
def test_where_a_turn_stands_is_what_the_whole_log_says(steps: list[str]) -> None:
    """Whatever was written, by us or others, what is read from the end back is what a walk through everything gives."""
    log = written(steps)
    assert read_turn(log.store, log.dialog) == turn_of_all(log.store, log.dialog)


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=40), st.data())
def test_the_books_have_the_calls_that_the_whole_log_has(steps: list[str], data: st.DataObject) -> None:
    """Of a log with a checkpoint anywhere: the calls since it, and the last one before it; without one, all."""
    log = written(["user", *steps])
    last = log.store.last(log.dialog).seq
    calls = [seq for seq, one in enumerate(all_entries(log.store, log.dialog)) if isinstance(one, Invocation)]
    if data.draw(st.booleans()):
        view = fold(log.store, log.dialog, data.draw(st.integers(0, last)))
        kept = held(log.store, log.dialog, view.at)
        log.put(checkpoint(view, kept, policy="p", tokens_before=2, tokens_after=1))
        calls = [seq for seq in calls if seq > log.store.last(log.dialog).view_base] or calls[-1:]
    spans = (Span(log.dialog, 0, log.store.last(log.dialog).seq + 1),)
    books = Books(log.store, log.dialog)
    known = books.ledger(books.measured(MODEL), spans, MODEL, None).calls
    assert known is not None
    assert [call.place.seq for call in known.made] == calls


# --- what it costs -------------------------------------------------------------------------------------------------------------


class Counting(MemoryStore):
    """Counts the headers and bodies that are read of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give headers, and count them."""
        for header in super().headers(dialog_id, start, stop, reverse=reverse):
            self.read["headers"] += 1
            yield header

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give bodies, and count them."""
        for one in super().bodies(dialog_id, start, stop):
            self.read["bodies"] += 1
            yield one


def long_log(entries: int) -> Counting:
    """Give a log of so many messages, questions and answers, that no agent has had, whose newest checkpoint shows twenty."""
    store = Counting()
    dialog = Session.create(store, "long", owner="clerk").root
    said = (AssistantMessage(content=f"{n}") if n % 2 else UserMessage.text(f"{n}") for n in range(entries))
    dialog.record(*(MessageEntry(message=message) for message in said))
    view = fold(store, dialog.dialog_id)
    small = apply(view, Plan(policy="p", drops=tuple(Drop(index=index) for index in range(len(view.exchanges) - 20))))
    spans = held(store, dialog.dialog_id, view.at)
    dialog.annotate(checkpoint(small, spans, policy="p", tokens_before=2, tokens_after=1))
    return store


def reads(entries: int, options: Mapping[str, Any]) -> list[Counter[str]]:
    """Give what each of three processes reads that take a long log up, one after another, each for one turn."""
    store, found = long_log(entries), []
    for number in range(3):
        store.read.clear()
        provider = ScriptedProvider([f"answer {number}"])
        agent = Agent(
            "clerk", Prompt(path="p", prompt="You answer."), MODEL, ProviderInvoker(provider), store=store, **options
        )
        agent.resume("long")
        agent.receive("Hello?")
        agent.respond()
        found.append(Counter(store.read))
    return found


@pytest.mark.parametrize("options", [{}, {"context_manager": "palaver", "budget": 20_000}], ids=["plain", "policy"])
def test_a_turn_reads_the_view_and_what_came_since(options: dict[str, Any]) -> None:
    """Whoever takes a dialog up reads as much of a log of 1,500 entries as of one of 150, in its first turn and in any later one."""
    short, long = reads(150, options), reads(1_500, options)
    assert long == short
    assert all(count["headers"] + count["bodies"] < 150 for count in long)
