"""What a view shows, kept from call to call, is what it shows when it is looked at alone."""

from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.context import Meter
from palaver.lab.looks import Looks, ShownParts
from palaver.lab.recorded import recorded_dialog
from palaver.lab.things import things, words
from palaver.log import Run
from palaver.messages import Speaker, Trust
from palaver.testing.conversations import ConversationStep, played
from palaver.testing.strategies import conversations
from palaver.tokens import counter
from palaver.view import Exchange, View, apply, fold
from tests.view.plans import plans


def _units(looks: Looks, view: View) -> list[tuple[bytes, int]]:
    """Give the units of a view as the cache reads them."""
    return [*looks.system(view).units, *(unit for each in view.exchanges for unit in looks.of(each).units)]


@given(steps=conversations(least=3, most=6), data=st.data())
@settings(deadline=None, max_examples=12)
def test_looking_at_what_changed_is_looking_at_all(steps: list[ConversationStep], data: st.DataObject) -> None:
    """Tokens, parts, identifiers and digest are those of a fresh look; the stable prefix is that of the units."""
    log = played(steps)
    calls = recorded_dialog(log.store, log.dialog)
    looks = Looks(things(calls), Meter(counter("gpt-4o")))
    going, before = ShownParts(looks), None
    for at in range(log.store.last(log.dialog).seq + 1):
        view = fold(log.store, log.dialog, at)
        if data.draw(st.booleans()):
            view = apply(view, data.draw(plans(view)))
        going.take(view)
        fresh = ShownParts(looks)
        fresh.take(view)
        assert (going.tokens, going.parts) == (fresh.tokens, fresh.parts)
        assert going.tokens == sum(going.parts) == looks.meter.view(view).total
        assert going.digest() == fresh.digest()
        said = [words(block.content) for each in view.exchanges for block in each.blocks()]
        assert all(going.holds(name) for text in said for name in looks.things.names.found(text))
        if before is not None:
            both = takewhile(
                lambda pair: pair[0] == pair[1], zip(_units(looks, before), _units(looks, view), strict=False)
            )
            assert going.stable == sum(tokens for (_, tokens), _ in both)
            assert going.goes_on == (_units(looks, view)[: len(_units(looks, before))] == _units(looks, before))
        before = view


def test_a_record_names_the_entries_of_its_spans() -> None:
    """A handle, a list and a span that a record prints name each of their entries; a range of the first line names its ends."""
    log = played([])
    looks = Looks(things(recorded_dialog(log.store, log.dialog)), Meter(counter("gpt-4o")))
    text = "[Record; recall 0123456789ab:0 to 0123456789ab:9]\n(earlier: recall 0123456789ab:2-4,6; ba9876543210:1)"
    record = Exchange.stated(text, "record", (Run(dialog=log.dialog, start=0, stop=1),), Speaker.SUMMARY, Trust.OUTSIDE)
    named = {(dialog, seq) for dialog, seq in looks.of(record).places}
    assert named == {("0123456789ab", seq) for seq in (0, 2, 3, 4, 6, 9)} | {("ba9876543210", 1)}
