"""Compactions: previewed before anything is written, committed as one entry, undone and redone; law 8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from palaver.context import POLICIES
from palaver.context.meter import Meter
from palaver.errors import Conflict, InfeasibleBudget, InvalidInput
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Compaction, Derived, Header, entry_at
from palaver.messages import ImageContent, Media, Message
from palaver.session import Dialog, Session
from palaver.store import MemoryStore, Store
from palaver.tokens import counter
from palaver.view import View
from tests.wire.pictures import png

MODEL = "gpt-4o"
ROLES = [(at, "user" if at % 2 == 0 else "assistant") for at in range(24)]


@pytest.fixture
def long(store: Store) -> Dialog:
    """Return a dialog of forty rounds."""
    dialog = Session.create(store, "long").root
    for number in range(40):
        dialog.put_text(f"question {number}")
        dialog.put_text(f"answer {number} " + "word " * 60, role="assistant")
    return dialog


def compacted(dialog: Dialog, budget: int) -> View:
    """Commit a compaction, and return the view after it."""
    dialog.compaction.preview(budget=budget, model=MODEL).approve()
    return dialog.view()


def shown(view: View) -> list[str]:
    """Return what a view shows."""
    return [repr(block.content) for exchange in view.exchanges for block in exchange.blocks()]


def test_preview_writes_nothing(long: Dialog) -> None:
    """Law 8: what is previewed is smaller, and only `approve` writes, one entry; rejecting it without a summary writes nothing."""
    last = long.store.last(long.dialog_id)
    preview = long.compaction.preview(budget=1_500, model=MODEL)
    assert preview.reject("no") is None
    assert long.store.last(long.dialog_id) == last
    assert preview.worthwhile
    place = preview.approve()
    assert (place.seq, long.store.last(long.dialog_id).kind) == (last.seq + 1, "compaction")
    assert shown(long.view()) == shown(preview.composed.view)
    entry = long.recall(place)
    assert isinstance(entry, Compaction)
    assert entry.tokens_after < entry.tokens_before


def test_compaction_is_asked_for_below_the_limit(long: Dialog) -> None:
    """R305: a compaction that somebody asks for makes the view smaller although it fits; `claude-code` then folds, as its source does."""
    for policy in ("palaver", "claude-code"):
        assert long.compaction.preview(policy, model=MODEL).worthwhile


def talkative(store: Store, rounds: int, words: int = 300) -> Dialog:
    """Return a dialog of rounds, each of about `words` tokens in the answer."""
    dialog = Session.create(store).root
    for number in range(rounds):
        dialog.put_text(f"question {number}")
        dialog.put_text(f"answer {number} " + "word " * words, role="assistant")
    return dialog


def tail(view: View, model: str = "") -> int:
    """Return the tokens of what a view shows as it was said."""
    meter = Meter(counter(model))
    return sum(meter.exchange(exchange) for exchange in view.exchanges if not exchange.derived)


@pytest.mark.parametrize("model", ["", MODEL, "claude-sonnet-4-5"])
def test_an_asked_compaction_goes_as_far_as_its_policy(store: Store, model: str) -> None:
    """Shares of a limit are the same shares of a view that fits it; a tail is the source's own, and a view that is no longer than that stays as it is."""
    dialog = talkative(store, 100)
    whole = tail(dialog.view(), model)
    for policy, least, most in (
        ("pi", 19_000, 20_000),
        ({"type": "pi", "keep_recent_tokens": 9_000}, 8_000, 9_000),
        ("opencode", 14_000, 15_000),
        ("letta", 0.6 * whole, 0.7 * whole),
        ("palaver", 0.4 * whole, 0.5 * whole),
    ):
        preview = dialog.compaction.preview(policy, model=model)
        assert least <= tail(preview.composed.view, model) <= most, policy
        assert preview.worthwhile
    short = talkative(store, 30)
    assert not short.compaction.preview("pi", model=model).worthwhile
    assert short.compaction.preview("pi", model=model).composed.view == short.view()


@pytest.mark.parametrize("policy", ["full", {"type": "dynamiq", "enabled": False}])
def test_a_policy_that_cuts_nothing_needs_no_budget(long: Dialog, policy: Any) -> None:  # noqa: ANN401 - as a caller writes it
    """Without model and budget it shows everything, and a compaction leaves nothing out."""
    assert long.view(policy) == long.view()
    preview = long.compaction.preview(policy)
    assert (preview.worthwhile, preview.omitted) == (False, ())
    assert len(long.request("openai-chat", MODEL, policy=policy).body["messages"]) == len(long.messages)
    with pytest.raises(InvalidInput, match="neither a window nor a model"):
        long.view("palaver")


def test_full_within_a_budget_shows_all_or_nothing(long: Dialog) -> None:
    """A budget that somebody sets applies to `full`, too."""
    for act in (long.view, long.compaction.preview):
        with pytest.raises(InfeasibleBudget):
            act("full", 100)


def test_undo_and_redo_are_a_stack(long: Dialog) -> None:
    """Each undo takes one compaction back, each redo puts one back; what was said since stays, and other objects see the same."""
    views = [long.view(), compacted(long, 3_000), compacted(long, 1_500)]
    for number in (1, 0):
        long.compaction.undo()
        assert shown(long.view()) == shown(views[number])
    with pytest.raises(InvalidInput, match="no compaction of its own"):
        long.compaction.undo()
    long.put_text("said meanwhile")
    for number in (1, 2):
        long.compaction.redo()
        assert shown(long.view())[: len(shown(views[number]))] == shown(views[number])
        assert "said meanwhile" in shown(long.view())[-1]
    with pytest.raises(InvalidInput, match="no undo"):
        long.compaction.redo()
    assert shown(Session.open(long.store, "long").root.view()) == shown(long.view())


def test_undo_spares_an_imported_compaction(long: Dialog) -> None:
    """A second undo takes back only what this store committed: the imported session's own compaction stays in force."""
    entry = long.recall(long.compaction.preview(budget=3_000, model=MODEL).approve())
    assert isinstance(entry, Compaction)
    long.record(entry.model_copy(update={"foreign": True, "base": long.store.last(long.dialog_id).seq}), beside=True)
    imported = shown(long.view())
    compacted(long, 1_500)
    long.compaction.undo()
    assert shown(long.view()) == imported
    with pytest.raises(InvalidInput, match="imported"):
        long.compaction.undo()
    assert shown(long.view()) == imported


def test_a_fork_undoes_its_own_compaction_only(long: Dialog) -> None:
    """A fork shows its parent's compaction and cannot undo it; its own undo and redo change no ancestor."""
    view = compacted(long, 3_000)
    child = long.fork().fork()
    assert shown(child.view()) == shown(view)
    with pytest.raises(InvalidInput, match="inherited"):
        child.compaction.undo()
    own = compacted(child, 1_500)
    child.compaction.undo()
    assert shown(child.view()) == shown(view)
    child.compaction.redo()
    assert (shown(child.view()), shown(long.view())) == (shown(own), shown(view))


def test_outdated_preview_is_refused(long: Dialog) -> None:
    """Of two compactions made from one view, the second is refused, and nothing is written."""
    first, second = (long.compaction.preview(budget=budget, model=MODEL) for budget in (3_000, 1_500))
    first.approve()
    last = long.store.last(long.dialog_id)
    with pytest.raises(Conflict):
        second.approve()
    assert long.store.last(long.dialog_id) == last


def test_view_that_is_not_smaller_is_refused(long: Dialog) -> None:
    """Law 8: a commit makes the view smaller, and is of this dialog."""
    with pytest.raises(InvalidInput, match="smaller"):
        long.compaction.commit(long.view(), model=MODEL)
    with pytest.raises(InvalidInput, match="not of"):
        long.fork().compaction.commit(long.view(), model=MODEL)


def test_law_11_the_hundredth_compaction_costs_as_the_fiftieth() -> None:
    """What a compaction reads does not grow with what earlier ones left out."""

    class Reading(MemoryStore):
        read = 0

        def headers(
            self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
        ) -> Iterator[Header]:
            for header in super().headers(dialog_id, start, stop, reverse=reverse):
                self.read += 1
                yield header

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            for body in super().bodies(dialog_id, start, stop):
                self.read += 1
                yield body

    store = Reading()
    dialog = Session.create(store, "long").root
    costs = []
    for number in range(100):
        dialog.append([Message(role=role, content=f"{role} {number} {at} " + "word " * 20) for at, role in ROLES])
        before = store.read
        dialog.compaction.preview(budget=1_000, model=MODEL).approve()
        dialog.view()
        costs.append(store.read - before)
    assert sum(costs[90:]) <= 1.1 * sum(costs[50:60])


def test_law_11_a_record_grows_with_no_chain_of_forks() -> None:
    """Each fork is compacted: the record's sources are what it is made of, not a part of the log for each ancestor."""
    dialog = Session.create(MemoryStore(), "chain").root
    sources = {}
    for depth in range(81):
        dialog = dialog.fork()
        dialog.append([Message(role=role, content=f"{role} {depth} {at} " + "word " * 60) for at, role in ROLES])
        entry = entry_at(dialog.store, dialog.compaction.preview("fold", 2_500, model=MODEL).approve())
        assert isinstance(entry, Compaction)
        sources[depth] = sum(len(piece.sources) for piece in entry.pieces if isinstance(piece, Derived))
    assert sources[80] == sources[40]


def test_planning_reads_no_media() -> None:
    """Views, previews and commits of every policy work from headers and sizes; only the request reads the bytes of pictures."""

    class Reading(MemoryStore):
        read = 0

        def blob(self, session_id: SessionId, blob_id: BlobId) -> bytes:
            self.read += 1
            return super().blob(session_id, blob_id)

    store = Reading()
    dialog = Session.create(store, "pictures").root
    for number in range(30):
        picture = ImageContent(images=(Media(data=png(200, 200 + number)),))
        dialog.append(Message(role="user", contents=(picture,)))
        dialog.put_text("seen " * 60, role="assistant")
    for policy in set(POLICIES) - {"provider"}:  # it asks its provider, so that there is nothing to preview
        with suppress(InfeasibleBudget):  # of the one that shows everything or nothing
            assert dialog.compaction.preview(policy, budget=9_000, model=MODEL).worthwhile
    compacted(dialog, 9_000)
    assert store.read == 0
    dialog.request("openai-chat", MODEL)
    assert store.read > 0
