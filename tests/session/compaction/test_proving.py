"""What a summariser wrote is offered only if the log would give it back; else the plan of code stands, and the summariser has failed."""

from dataclasses import replace

from palaver import Dialog, erase
from palaver.context import Composed, Summarized
from palaver.context.summary import Breaker
from palaver.messages import TextContent, Usage
from palaver.session.compaction.proving import or_plain
from palaver.store import Store
from palaver.view import View


def talked(dialog: Dialog) -> Composed:
    """Say much, and give what code plans of it."""
    for number in range(12):
        dialog.put_text(f"q{number} " + "word " * 60)
        dialog.put_text(f"a{number} " + "word " * 60, role="assistant")
    dialog.put_text("And now?")
    return dialog.compose("fold", 1_000, model="gpt-4o")


def unlogged(view: View) -> View:
    """Give a view that shows the newest words otherwise than the log has them, and does not say so."""
    *others, last = view.exchanges
    (turn,) = last.turns
    (block,) = turn.blocks
    other = replace(turn, blocks=(replace(block, content=TextContent(content="Something else.")),))
    return replace(view, exchanges=(*others, replace(last, turns=(other,))))


def test_what_does_not_read_back_is_refused_before_it_is_offered(store: Store, dialog: Dialog) -> None:
    """The plan of code in its place, the summary before, what was paid, why, and a failure more; what reads back stays as it is."""
    plain = talked(dialog)
    usages = (Usage({"input_tokens": 5}),)
    made = Summarized(composed=replace(plain), summary="new", requests=2, model="m", usages=usages, invented=("x",))
    assert or_plain(store, dialog.view(), made, plain, "before", Breaker(1, 5)) is made
    spoilt = replace(made, composed=replace(plain, view=unlogged(plain.view)))
    found = or_plain(store, dialog.view(), spoilt, plain, "before", Breaker(1, 5))
    assert found.composed is plain
    assert "would not give back" in found.refused
    assert (found.summary, found.requests, found.model, found.usages) == ("before", 2, "m", usages)
    assert (found.invented, found.breaker) == ((), Breaker(2, plain.tokens_before))


def test_where_something_was_erased_meanwhile_nothing_is_judged(store: Store, dialog: Dialog) -> None:
    """What does not read back because of an erasure is no fault of the summariser's: the commit refuses it, as what it is."""
    plain = talked(dialog)
    before = dialog.view()
    spoilt = Summarized(composed=replace(plain, view=unlogged(plain.view)), summary="new")
    erase(store, entries=[dialog.messages.handle(0)])
    assert or_plain(store, before, spoilt, plain, None, Breaker()) is spoilt
