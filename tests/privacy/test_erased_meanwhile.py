"""What was erased between a look and a write is not brought back by the write: plans, merges, names and summaries by hand, in every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from palaver import Conflict, Dialog, MemoryStore, Session, SessionManager
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.ids import DialogId
from palaver.log import Draft, Handle, Header
from palaver.messages import AssistantMessage
from palaver.session.erasure import Receipt, erase, verify_receipt
from palaver.session.reading.erased import erased_since
from palaver.store import Durability, SqliteStore, Store
from palaver.store.postgres import PostgresStore
from palaver.view import apply
from palaver.view.plan import Drop, Insert, Plan
from tests.store.postgres_backend import emptied

SECRET = "ZEBRA-9911"
WORDS = f"You must never move the money of {SECRET} away."
AGAIN = "Make the plan again."


class Opened:
    """A store by two connections: one that writes what it made, and another one that erases meanwhile."""

    def __init__(self, one: Store, other: Store) -> None:
        """Take both; of a store in memory there is one for both."""
        self.one = one
        self.other = other

    def erase(self, *places: Handle) -> Receipt:
        """Erase entries by the other connection."""
        return erase(self.other, entries=places)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Give an empty store of each kind, opened twice."""
    if request.param == "memory":
        store = MemoryStore()
        yield Opened(store, store)
        return
    if request.param == "sqlite":
        both: list[Any] = [SqliteStore(tmp_path / "s.db", Durability.NORMAL) for _ in range(2)]
    else:
        url = emptied(request.getfixturevalue("postgres_server"))
        both = [PostgresStore(url, Durability.NORMAL) for _ in range(2)]
    yield Opened(both[0], both[1])
    for store in both:
        store.close()


def talked(store: Store, words: str = WORDS, newest: str = "And now?") -> tuple[Dialog, Handle]:
    """Make a dialog of which most leaves when it is compacted; give it, and where the words stand that are erased."""
    dialog = Session.create(store, owner="a").root
    dialog.put_text("Make it fast.")
    dialog.put_text(words)
    for number in range(12):
        dialog.append(AssistantMessage(content=f"a{number} " + "word " * 60))
        dialog.put_text(f"q{number} " + "word " * 60)
    dialog.put_text(newest)
    return dialog, Handle(dialog.dialog_id, 1)


async def retelling(request: SummaryRequest, /) -> SummaryAnswer:
    """Summarise, and say the secret in other words."""
    return SummaryAnswer(
        text="\n\n".join(f"## {heading}\nThe owner of {SECRET} is rich." for heading in request.headings)
    )


def held(dialog: Dialog) -> list[int]:
    """Give the own entries that hold the secret."""
    return [seq for seq, body in dialog.store.bodies(dialog.dialog_id) if SECRET.encode() in body]


def refused(act: Callable[[], object]) -> str:
    """Insist that something is a conflict, and give what it says."""
    with pytest.raises(Conflict) as caught:
        act()
    return str(caught.value)


@pytest.mark.parametrize("how", ["record", "summary", "a view by hand", "a plan by hand"])
def test_a_plan_made_of_what_was_erased_since_is_refused_and_says_what_to_do(opened: Opened, how: str) -> None:
    """B0: a record, a summary, a view by hand: nothing is written, the error says what happened, and what is planned anew has none of the words."""
    dialog, place = talked(opened.one)

    def commit() -> Callable[[], Handle]:
        if how.endswith("by hand"):
            seen = dialog.view()
            text = "".join(str(getattr(block.content, "content", "")) for block in seen.exchanges[1].blocks())
            plan = Plan(policy="mine", drops=tuple(map(_drop, range(1, 20))), inserts=(Insert(before=0, text=text),))
            made = apply(seen, plan) if how.startswith("a view") else plan
            return lambda: dialog.commit(made)
        if how == "summary":
            return dialog.compact(budget=1_500, summarizer=retelling, model="gpt-4o").approve
        return dialog.compact(policy="fold", budget=1_000, model="gpt-4o").approve

    approve = commit()
    receipt = opened.erase(place)
    before = opened.one.last(dialog.dialog_id).seq
    said = refused(approve)
    assert "was erased" in said
    assert AGAIN in said
    assert opened.one.last(dialog.dialog_id).seq == before
    assert held(dialog) == []
    if how == "record":
        dialog.reload()
        commit()()
        assert held(dialog) == []
        assert SECRET not in str(dialog.request("openai-chat", "gpt-4o").body)
    assert verify_receipt(opened.one, receipt.to_json()).holds


def _drop(index: int) -> Drop:
    return Drop(index=index)


def test_a_call_is_not_recorded_with_what_was_erased_since_its_request_was_made(opened: Opened) -> None:
    """What a call saw is written down; of a request that was compiled before an erasure it would be the erased words, and is a conflict."""
    dialog, place = talked(opened.one)
    request = dialog.request("openai-chat", "gpt-4o")
    opened.erase(place)
    assert "Compile it again." in refused(lambda: dialog.record_call(request))
    dialog.record_call(dialog.reload().request("openai-chat", "gpt-4o"))
    assert held(dialog) == []


def test_where_the_erased_entry_stays_in_view_the_error_says_so_too(opened: Opened) -> None:
    """B0 (c): what would not read back because a block of it is erased is a conflict with the erasure, and no view that nobody made with plans."""
    dialog, _ = talked(opened.one, newest=f"And {SECRET}?")
    preview = dialog.compact(policy="fold", budget=1_000, model="gpt-4o")
    opened.erase(Handle(dialog.dialog_id, opened.one.last(dialog.dialog_id).seq))
    assert AGAIN in refused(preview.approve)


class Overtaken:
    """A store in which something happens at one moment of a write: before its block begins, or inside, before the entry is written."""

    def __init__(self, store: Store, act: Callable[[], object], *, inside: bool) -> None:
        """Take the store, what happens, once, and when."""
        self._store = store
        self._act: Callable[[], object] | None = act
        self._inside = inside

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    def together(self) -> AbstractContextManager[None]:
        """Begin a block, perhaps after something happened."""
        if not self._inside:
            self._happen()
        return self._store.together()

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Write beside a turn, perhaps after something happened."""
        if self._inside and draft.kind == "compaction":
            self._happen()
        return self._store.annotate(dialog_id, draft)

    def _happen(self) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()


@pytest.mark.parametrize("what", ["a plan", "a merge"])
def test_an_erasure_between_the_look_and_the_write_is_not_missed(opened: Opened, what: str) -> None:
    """An erasure that another connection commits after everything was checked, and before the block of the write begins, makes it a conflict."""
    dialog, place = talked(opened.one)
    preview = dialog.compact(policy="fold", budget=1_000, model="gpt-4o")
    left = dialog.fork()
    left.put_text(f"{WORDS} Really, and at once.")
    places = {"a plan": place, "a merge": Handle(left.dialog_id, 0)}
    dialog.store = left.store = cast("Store", Overtaken(opened.one, lambda: opened.erase(places[what]), inside=False))
    assert "was erased" in refused(preview.approve if what == "a plan" else partial(dialog.merge, left))
    dialog.store = opened.one
    assert held(dialog) == ([] if what == "a plan" else [1])


def test_an_erasure_that_waits_for_the_write_finds_it(opened: Opened) -> None:
    """An erasure that begins inside the block of a commit takes place before or after it, never between; either way no word is left."""
    dialog, place = talked(opened.one)
    preview = dialog.compact(budget=1_500, summarizer=retelling, model="gpt-4o")
    with ThreadPoolExecutor(1) as pool:
        erasing: list[Future[Receipt]] = []
        begin = lambda: erasing.append(pool.submit(opened.erase, place))  # noqa: E731
        dialog.store = cast("Store", Overtaken(opened.one, begin, inside=True))
        preview.approve()
        receipt = erasing[0].result()
    dialog.store = opened.one
    assert held(dialog) == []
    assert verify_receipt(opened.one, receipt.to_json()).holds


def test_an_ancestors_words_and_constraints_by_hand_count_too(opened: Opened) -> None:
    """What a fork inherited and what was put on the list of constraints tell the plan of the fork: an erasure of either is a conflict there."""
    root, place = talked(opened.one)
    ruled = root.constraints.add(f"Never call {SECRET}.")
    for erased in (ruled, place):
        child = root.fork()
        child.put_text("Go on.")
        preview = child.compact(policy="fold", budget=1_000, model="gpt-4o")
        opened.erase(erased)
        assert AGAIN in refused(preview.approve)
        root.reload()
    assert SECRET not in str(root.fork().request("openai-chat", "gpt-4o").body)


def test_a_plan_made_of_a_merge_is_held_to_the_branch_that_it_tells_of(opened: Opened) -> None:
    """A branch that was merged is told of in the dialog: an erasure there takes the account along, and the plan that was made of it is a conflict."""
    dialog, _ = talked(opened.one, words="Help.")
    left = dialog.fork()
    left.put_text(WORDS)
    dialog.merge(left, f"He spoke of {SECRET}.")
    dialog.put_text("Go on.")
    preview = dialog.compact(policy="fold", budget=1_000, model="gpt-4o")
    opened.erase(Handle(left.dialog_id, 0))
    assert AGAIN in refused(preview.approve)
    assert SECRET not in str(dialog.reload().request("openai-chat", "gpt-4o").body)


def test_an_erasure_elsewhere_is_in_nobodys_way(opened: Opened) -> None:
    """What a dialog does not hold may be erased while somebody looks at a preview of it."""
    dialog, _ = talked(opened.one)
    left = dialog.fork()
    left.put_text("Something else.")
    preview = dialog.compact(policy="fold", budget=1_000, model="gpt-4o")
    opened.erase(Handle(left.dialog_id, 0))
    preview.approve()


def test_a_merge_and_a_name_by_hand_are_refused_until_somebody_looks_again(opened: Opened) -> None:
    """Who tells of a branch, or names an entry, in words of his own, and knows it from before an erasure, is told; after `reload` both go."""
    dialog, place = talked(opened.one)
    left = dialog.fork()
    left.put_text(f"And {SECRET} again.")
    opened.erase(Handle(left.dialog_id, 0), place)
    assert "Merge it again." in refused(lambda: dialog.merge(left, f"He spoke of {SECRET}."))
    assert "was erased meanwhile" in refused(lambda: dialog.label(place, SECRET))
    assert "was erased meanwhile" in refused(lambda: dialog.quarantine(place, SECRET))
    assert "was erased" in refused(lambda: dialog.commit(Plan(policy="mine", inserts=(Insert(before=0, text=SECRET),))))
    assert dialog.label(Handle(dialog.dialog_id, 2), "fine")
    assert held(dialog) == []
    assert dialog.reload().label(place, "gone")
    assert dialog.label(place, None)
    left.reload()
    left.put_text("Something else.")
    dialog.merge(left)
    assert held(dialog) == []


def test_a_manager_takes_no_summary_of_what_was_erased_since(opened: Opened) -> None:
    """Whoever keeps a session by its manager and gives it a summary that was made before an erasure is told, once; then he knows."""
    with SessionManager.create(store=opened.one) as manager:
        ids = [manager.append_message(AssistantMessage(content=f"a{number} {SECRET}")) for number in range(3)]
        dialog = manager.session.root
        opened.erase(Handle(dialog.dialog_id, 0))
        assert "Make it again." in refused(lambda: manager.append_compaction(SECRET, ids[2], 100))
        manager.append_compaction("Fine.", ids[2], 100)
        opened.erase(Handle(dialog.dialog_id, 1))
        assert "Make it again." in refused(lambda: manager.branch_with_summary(SECRET, ids[0]))
        assert manager.leaf_id != ids[0]
        manager.branch_with_summary("Fine.", ids[0])


def test_what_is_recorded_of_a_rejection_does_not_quote_what_was_erased(opened: Opened) -> None:
    """Figures and usage of an attempt are kept; its focus and reasons, which may be words of what was erased meanwhile, are not."""
    dialog, place = talked(opened.one)
    preview = dialog.compact(budget=1_500, summarizer=retelling, focus=SECRET, model="gpt-4o")
    opened.erase(place)
    entry: Any = dialog.recall(preview.reject(f"no {SECRET}"))
    assert held(dialog) == []
    assert (entry.data["summary"]["requests"], entry.data["tokens_before"]) == (1, preview.tokens_before)
    assert "erased meanwhile" in entry.data["rejected"]


def test_the_look_costs_what_came_since() -> None:
    """A commit reads the headers behind the view's last entry to find an erasure, however long the log is, and no body of a message."""
    store = MemoryStore()
    dialog, place = talked(store)
    at = store.last(dialog.dialog_id).seq
    read: list[int] = []

    class Counting(MemoryStore):
        """Counts what is read of another store."""

        def headers(self, *args: Any, **words: Any) -> Iterator[Header]:  # noqa: ANN401 - as the store's
            for header in store.headers(*args, **words):
                read.append(header.seq)
                yield header

    dialog.put_text("One more.")
    assert erased_since(Counting(), dialog.dialog_id, at) is None
    assert read == [at + 1]
    erase(store, entries=[place])
    assert erased_since(store, dialog.dialog_id, at) == at + 2
    assert erased_since(store, dialog.dialog_id, at + 2) is None
