"""The calls that were made: a value that grows at the cost of what is new."""

from threading import Barrier

from hypothesis import given
from hypothesis import strategies as st

from palaver.context.schedule.calls import Called, Made
from palaver.ids import DialogId
from palaver.log import Handle
from tests.threads import WAIT, at_once

DIALOGS = [DialogId("a" * 32), DialogId("b" * 32)]


@given(dialogs=st.lists(st.sampled_from(DIALOGS), max_size=12), data=st.data())
def test_each_value_knows_the_calls_up_to_it_and_no_later_one(dialogs: list[DialogId], data: st.DataObject) -> None:
    """Whichever value is asked, also an earlier one that others came of twice, it says what a list of its calls says."""
    values, lists = [Made()], [[]]  # type: ignore[var-annotated] # of calls
    for number, dialog in enumerate(dialogs):
        call = Called(place=Handle(dialog, 2 * number), at=float(number), model="m")
        grown = data.draw(st.integers(0, len(values) - 1))
        values.append(values[grown].then(call))
        lists.append([*lists[grown], call])
    for made, plain in zip(values, lists, strict=True):
        assert (len(made), made[:], made == tuple(plain)) == (len(plain), tuple(plain), True)
        for dialog in DIALOGS:
            for seq in range(2 * len(dialogs) + 1):
                before = [call for call in plain if call.place.dialog == dialog and call.place.seq < seq]
                assert made.before(Handle(dialog, seq)) == (before[-1] if before else None)


class Meeting(str):
    """The id of a dialog that is looked up by two threads at the same time: each waits for the other."""

    __slots__ = ()
    barrier = Barrier(2, timeout=WAIT)

    def __hash__(self) -> int:
        """Wait, and hash."""
        self.barrier.wait()
        return super().__hash__()


def test_threads_that_go_on_from_the_same_calls_each_have_their_own() -> None:
    """Of two at once one goes on with the calls that are shared, the other with a copy: neither sees the other's."""
    begun = Made([Called(place=Handle(DIALOGS[1], 0), at=0.0, model="m")])
    calls = [Called(place=Handle(DialogId(Meeting("a" * 32)), seq), at=float(seq), model="m") for seq in range(2)]
    made = at_once(2, lambda number, _: begun.then(calls[number]))
    assert [one[:] for one in made] == [(*begun, call) for call in calls]
