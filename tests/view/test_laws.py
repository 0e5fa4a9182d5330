"""The laws of the view, on any log."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.ids import DialogId
from palaver.log import NOTHING, Handle
from palaver.messages import Message, canonical_json, words_of
from palaver.testing.logs import Log, assert_closed, user
from palaver.testing.strategies import sayings
from palaver.view import Fold, Reason, View, apply, fold_messages, manifest, omitted, restored
from tests.view.growing import commit, grow, seen
from tests.view.plans import flat, plans
from tests.view.reference import Reference, lines

DECIDED = {Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER}


def grown(data: st.DataObject, *, compact: bool = True) -> Log:
    """Draw a log that grew a few times."""
    log = Log()
    for _ in range(data.draw(st.integers(1, 8))):
        log = grow(data, log, compact=compact)
    return log


@settings(max_examples=100)
@given(data=st.data())
def test_fold_equals_eager_reference(data: st.DataObject) -> None:
    """What the fold makes of headers is what reading every body at once gives, over messages, pins, edits, quarantines, forks and windows."""
    log = grown(data, compact=False)
    assert lines(seen(log)) == Reference(log.store, log.dialog).lines()


@settings(max_examples=80)
@given(data=st.data(), whole=st.booleans())
def test_incremental_fold_equals_fresh_one(data: st.DataObject, whole: bool) -> None:
    """A fold that goes on, or back to an earlier entry, gives the view that a new one gives, whatever was asked for before."""
    log = Log()
    folds: dict[DialogId, Fold] = {}
    for _ in range(data.draw(st.integers(2, 8))):
        log = grow(data, log)
        going = folds.setdefault(log.dialog, Fold(log.store, log.store.node(log.dialog), whole=whole))
        if data.draw(st.booleans()):
            headers = [NOTHING, *log.store.headers(log.dialog)]
            upto = data.draw(st.sampled_from([headers[-1], *headers[-4:]]))
            view, fresh = going.view(upto), seen(log, upto.seq, whole=whole)
            assert view == fresh
            assert view.columns == fresh.columns == replace(fresh).columns


@given(data=st.data())
def test_loading_before_or_after_shows_the_same(data: st.DataObject) -> None:
    """Bodies read in one scan, one by one, or after a plan was applied make the same view."""
    log = grown(data)
    plan = data.draw(plans(seen(log)))
    loaded = seen(log)
    loaded.load()
    assert all(exchange.loaded for exchange in loaded.exchanges)
    assert apply(loaded, plan) == apply(seen(log), plan)


@given(data=st.data())
def test_law_1_views_and_plans_keep_calls_closed(data: st.DataObject) -> None:
    """Whatever was appended, forked, edited or planned, every call has exactly one result."""
    log = grown(data)
    assert_closed(seen(log))
    assert_closed(apply(seen(log), data.draw(plans(seen(log)))))


@given(data=st.data(), later=sayings())
def test_law_6_checkpoint_restores_the_view(data: st.DataObject, later: list[Message]) -> None:
    """Folding a checkpoint gives the view that was recorded, and later entries follow it."""
    log = grown(data)
    small = apply(seen(log), data.draw(plans(seen(log))))
    log.put(commit(log, small))
    again = seen(log)
    assert again.exchanges == small.exchanges
    assert (again.system, again.tools, again.leading) == (small.system, small.tools, small.leading)
    assert set(small.omissions) == set(again.omissions)

    log.put(user("between"), *later)
    waits = any(block.derived in {"waiting", "interrupted"} for each in small.exchanges for block in each.blocks())
    assert waits or flat(seen(log))[: len(flat(small))] == flat(small)


@given(data=st.data())
def test_law_6_manifest_restores_the_view(data: st.DataObject) -> None:
    """With the log, the stored manifest of any view gives that view back."""
    log = grown(data)
    folded = seen(log)
    view = apply(folded, data.draw(plans(folded)))
    stored = json.loads(canonical_json(manifest(view, folded)))
    assert restored(stored, seen(log, view.at)) == view


@given(said=sayings(), at=st.integers(0, 13))
def test_law_6_past_views_do_not_change(said: list[Message], at: int) -> None:
    """The view at an entry is the view computed when that entry was the newest."""
    log = Log()
    log.put(*said[: at + 1])
    then = seen(log)
    log.put(*said[at + 1 :])
    assert seen(log, then.at) == then


@given(said=sayings())
def test_law_7_earlier_request_is_a_prefix(said: list[Message]) -> None:
    """Once no call is open, appending a message leaves all that was in the view where it was."""
    log = Log()
    earlier: list[object] = []
    settled = True
    for message in said:
        fragment = message.response_id is not None and message.response_id == log.store.last(log.dialog).response
        log.put(message)
        view = seen(log)
        if settled and not fragment:
            assert flat(view)[: len(earlier)] == earlier
        earlier, settled = flat(view), not any(x.open for x in view.exchanges)


@settings(max_examples=100)
@given(data=st.data())
def test_law_9_all_is_shown_or_omitted(data: st.DataObject) -> None:
    """Every message is in the view or in an omission, no decided omission names an entry twice, and every handle resolves."""
    log = grown(data)
    whole = seen(log, whole=True)
    small = apply(seen(log), data.draw(plans(seen(log))))
    assert _messages(whole) <= _shown(small) | {(handle.dialog, handle.seq) for handle in _handles(small)}
    once = [handle for gone in small.omissions if gone.reason in DECIDED and gone.span for handle in gone.handles()]
    assert len(once) == len(set(once))
    for handle in _handles(small):
        assert log.store.body(handle.dialog, handle.seq)


def _handles(view: View) -> list[Handle]:
    return [handle for gone in view.omissions for handle in gone.handles()]


def _shown(view: View) -> set[tuple[DialogId, int]]:
    spans = [*view.state, *(run for each in view.exchanges for run in each.runs)]
    return {(span.dialog, seq) for span in spans for seq in range(span.start, span.stop)}


def _messages(view: View) -> set[tuple[DialogId, int]]:
    return {(run.dialog, seq) for each in view.exchanges for run in each.runs for seq in range(run.start, run.stop)}


@given(data=st.data())
def test_law_9_omissions_count_what_left(data: st.DataObject) -> None:
    """The messages of the omissions that a plan made are those that the view shows no more."""
    log = Log()
    log.put(*data.draw(sayings()))
    view = seen(log)
    small = apply(view, data.draw(plans(view)))
    left = sum(x.messages for x in view.exchanges) - sum(x.messages for x in small.exchanges)
    assert sum(each.messages for each in small.omissions if each.reason in DECIDED) == left


@given(data=st.data())
def test_omitted_exchanges_are_those_of_the_whole_log(data: st.DataObject) -> None:
    """What left a view is read again, with the words it had."""
    log = Log()
    log.put(*data.draw(sayings()))
    view = seen(log)
    log.put(commit(log, apply(view, data.draw(plans(view)))))
    left = [*omitted(seen(log))]
    gone = [handle for each in seen(log).omissions if each.reason in DECIDED and each.span for handle in each.handles()]
    assert {entry for each in left for entry in each.entries()} <= set(gone)
    blocks = [block for each in left for block in each.blocks() if not block.derived]
    texts = {words_of(block.content) for each in seen(log, whole=True).exchanges for block in each.blocks()}
    assert {words_of(block.content) for block in blocks} <= texts or any(
        block.reason is Reason.UNPAIRED for block in blocks
    )


@given(said=sayings())
def test_list_of_messages_folds_like_a_log(said: list[Message]) -> None:
    """A view of a plain list shows what the view of a log of the same messages shows."""
    log = Log()
    log.put(*said)
    listed = fold_messages(said, log.dialog)
    assert flat(listed) == flat(seen(log))
    assert [x.runs for x in listed.exchanges] == [x.runs for x in seen(log).exchanges]
    assert [gone.reason for gone in listed.omissions] == [gone.reason for gone in seen(log).omissions]
