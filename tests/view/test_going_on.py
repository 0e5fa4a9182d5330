"""A fold that is gone on with gives, at every length of the log, the view that a fold from scratch gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import StoreDamaged
from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    BlockEdit,
    BranchSummary,
    Compaction,
    ContextEdit,
    Custom,
    Entry,
    Header,
    Instructions,
    LateResult,
    ModelChange,
    Omitted,
    Pin,
    Place,
    Quarantine,
    Run,
    Section,
    Span,
    Toolset,
    ToolSpec,
)
from palaver.messages import Message
from palaver.store.memory import MemoryStore
from palaver.testing.log_strategies import plans, sayings
from palaver.testing.logs import Log, model, result, sketch, user
from palaver.view import Folding, View, apply, checkpoint, fold, held


def whole(view: View) -> tuple[View, list[bool]]:
    """Give all that a view says, also what does not count when views are compared."""
    return view, [exchange.stale for exchange in view.exchanges]


def _places(log: Log) -> list[Place]:
    view = fold(log.store, log.dialog)
    blocks = [block for exchange in view.exchanges for block in exchange.blocks()] + list(view.system)
    return [
        Place(dialog=block.origin.dialog, seq=block.origin.seq, block=block.origin.block)
        for block in blocks
        if block.origin is not None
    ]


def _compaction(data: st.DataObject, log: Log) -> Compaction:
    """Make a checkpoint of the log as it stands, or as it stood a little before."""
    last = log.store.last(log.dialog).seq
    view = fold(log.store, log.dialog, data.draw(st.integers(max(-1, last - 2), last)))
    small = apply(view, data.draw(plans(view)))
    return checkpoint(small, held(log.store, log.dialog, view.at), policy="any", tokens_before=2, tokens_after=1)


def _edit(data: st.DataObject, log: Log, place: Place) -> ContextEdit:
    kind = data.draw(st.sampled_from(["rewrite", "remove", "unpaired"]))
    base = log.store.last(log.dialog).seq
    if kind == "remove":
        return ContextEdit(base=base, omitted=(Omitted(target=place, reason="over_budget"),), policy="edits")
    reason = "offloaded" if kind == "rewrite" else "unpaired"
    return ContextEdit(base=base, edits=(BlockEdit(target=place, text="see there", reason=reason),), policy="edits")


def _entry(data: st.DataObject, log: Log) -> Entry:
    """Draw an entry that is no message, about what the view holds."""
    number = str(data.draw(st.integers(0, 9)))
    makers: dict[str, Callable[[], Entry]] = {
        "instructions": lambda: Instructions(sections=(Section(name="role", text=number),)),
        "toolset": lambda: Toolset(tools=(ToolSpec(name=f"tool_{number}"),)),
        "model": lambda: ModelChange(model=f"model-{number}"),
        "summary": lambda: BranchSummary(summary=f"on that branch, {number}"),
        "late": lambda: LateResult(message=result("a", "late")),
        "custom": lambda: Custom(custom_type="note"),
        "compaction": lambda: _compaction(data, log),
    }
    if places := _places(log):
        place = data.draw(st.sampled_from(places))
        entry = place.model_copy(update={"block": None})
        makers |= {
            "pin": lambda: Pin(target=entry, pinned=data.draw(st.booleans())),
            "quarantine": lambda: Quarantine(
                target=data.draw(st.sampled_from([place, entry])), reason="refused", lifted=data.draw(st.booleans())
            ),
            "edit": lambda: _edit(data, log, place),
        }
    return makers[data.draw(st.sampled_from(sorted(makers)))]()


def _grow(data: st.DataObject, log: Log) -> Log:
    """Add something to a log, or fork it: the whole of it, or a part."""
    what = data.draw(st.sampled_from(["say", "say", "entry", "entry", "entry", "fork", "window"]))
    if what == "say":
        log.put(*data.draw(sayings()))
    elif what == "entry":
        log.put(_entry(data, log))
    elif what == "fork":
        return log.fork()
    elif length := log.store.last(log.dialog).seq + 1:
        cut = data.draw(st.integers(0, length - 1))
        return Log(log, (*log.store.node(log.dialog).ranges, Span(log.dialog, cut, length)))
    return log


@settings(max_examples=150)
@given(data=st.data(), passes_over=st.booleans())
def test_what_is_gone_on_with_equals_what_is_begun_anew(data: st.DataObject, passes_over: bool) -> None:
    """Over any log (compactions, edits, pins, refused blocks, late results, forks): the same view, and the same doubts about signatures."""
    log = Log()
    foldings: dict[DialogId, Folding] = {}
    for _ in range(data.draw(st.integers(2, 8))):
        log = _grow(data, log)
        if log.dialog not in foldings:
            foldings[log.dialog] = Folding(log.store, log.store.node(log.dialog), whole=passes_over)
        if data.draw(st.booleans()):
            gone_on = foldings[log.dialog].view(log.store.last(log.dialog))
            assert whole(gone_on) == whole(fold(log.store, log.dialog, whole=passes_over))


@settings(max_examples=50)
@given(said=sayings(), order=st.lists(st.integers(-1, 9), max_size=8))
def test_views_may_be_asked_for_in_any_order(said: list[Message], order: list[int]) -> None:
    """An earlier view after a later one is the earlier one, and going on from there gives the later one again."""
    log = Log()
    headers = [NOTHING, *log.put(*said)]
    folding = Folding(log.store, log.store.node(log.dialog))
    for at in order:
        upto = headers[min(at + 1, len(headers) - 1)]
        assert whole(folding.view(upto)) == whole(fold(log.store, log.dialog, upto.seq))


@pytest.mark.parametrize(
    "change",
    [
        lambda place: Pin(target=place),
        lambda place: Quarantine(target=place, reason="refused"),
        lambda place: ContextEdit(base=3, omitted=(Omitted(target=place, reason="over_budget"),)),
    ],
    ids=["pin", "quarantine", "edit"],
)
def test_what_changes_how_others_are_shown_changes_what_was_settled(change: Callable[[Place], Entry]) -> None:
    """An exchange that stood settled in the view before is shown anew when an entry says so."""
    log = Log()
    log.put(user("one"), model("two", response="r1"), user("three"), model("four", response="r2"))
    folding = Folding(log.store, log.store.node(log.dialog))
    before = folding.view(log.store.last(log.dialog))

    log.put(change(Place(dialog=log.dialog, seq=0, block=0)))
    after = folding.view(log.store.last(log.dialog))

    assert after.exchanges != before.exchanges
    assert whole(after) == whole(fold(log.store, log.dialog))


class Counting(MemoryStore):
    """A store that counts the bodies it gives, and can be told to break after so many more."""

    given = 0
    breaks_after = -1

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies."""
        for seq, body in super().bodies(dialog_id, start, stop):
            if self.given == self.breaks_after:
                raise StoreDamaged(f"{dialog_id}:{seq}", "lost")
            self.given += 1
            yield seq, body


def _counted() -> tuple[Log, Counting, Folding]:
    log = Log()
    store = Counting()
    store.contents.sessions, store.contents.logs = log.store.contents.sessions, log.store.contents.logs
    log.store = store
    return log, store, Folding(store, store.node(log.dialog))


def test_only_what_is_new_is_read() -> None:
    """A view after one more entry reads one body, however long the log."""
    log, store, folding = _counted()
    log.put(*(user(f"word {number}") for number in range(50)))
    folding.view(store.last(log.dialog))
    store.given = 0

    for number in range(10):
        log.put(user(f"more {number}"))
        folding.view(store.last(log.dialog))

    assert store.given == 10


def test_a_compaction_begins_anew_from_itself() -> None:
    """After a compaction only what it holds is read."""
    log, store, folding = _counted()
    log.put(*(user(f"word {number}") for number in range(50)))
    folding.view(store.last(log.dialog))
    kept = Run(dialog=log.dialog, start=48, stop=50)
    gone = Omitted(run=Run(dialog=log.dialog, start=0, stop=48), reason="over_budget")
    log.put(Compaction(base=49, pieces=(kept,), omitted=(gone,)))
    store.given = 0

    view = folding.view(store.last(log.dialog))

    assert sketch(view) == ["user[word 48]", "user[word 49]"]
    assert store.given == 2


def test_an_error_while_reading_leaves_nothing_half_taken() -> None:
    """A store that fails in the middle fails this view; the next one is whole."""
    log, store, folding = _counted()
    log.put(user("hi"), model("", "a"))
    folding.view(store.last(log.dialog))
    log.put(result("a"), user("go on"))
    store.breaks_after = store.given + 1
    with pytest.raises(StoreDamaged):
        folding.view(store.last(log.dialog))
    store.breaks_after = -1

    newest: Header = store.last(log.dialog)
    assert whole(folding.view(newest)) == whole(fold(store, log.dialog))
