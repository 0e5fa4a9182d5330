"""What a process keeps of a dialog's newest entries answers every question as the store does."""

from hypothesis import given
from hypothesis import strategies as st

from palaver import Session, UserMessage
from palaver.log import Label, Place
from palaver.log.entries import Inbox
from palaver.session import Dialog
from palaver.store.memory import MemoryStore
from palaver.store.protocol import TAIL_BYTES

SIZES = st.sampled_from([1, 200, TAIL_BYTES // 3, TAIL_BYTES])
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["say", "label", "wait", "refresh", "reload"]), SIZES), max_size=12
)


def _step(dialog: Dialog, what: str, size: int) -> None:
    if what == "say":
        dialog.reload()
        dialog.append(UserMessage.text("x" * size))
    elif what == "label":
        dialog.record(Label(target=Place(dialog=dialog.dialog_id, seq=0), label="l" * min(size, 200)))
    elif what == "wait":
        dialog.record(Inbox(message=UserMessage.text("x" * size)), beside=True)
    elif what == "refresh":
        dialog.opened.refresh()
    else:
        dialog.reload()


@given(remote=st.booleans(), steps=STEPS, start=st.integers(-1, 14), stop=st.one_of(st.none(), st.integers(-1, 14)))
def test_law_3_recent_entries_are_those_of_the_store(
    remote: bool,
    steps: list[tuple[int, str, int]],
    start: int,
    stop: int | None,
) -> None:
    """Two objects of one dialog write in turns; after a look, headers, bodies and kinds of any range are those that the store returns."""
    store = MemoryStore()
    store.remote = remote
    first = Session.create(store).root
    first.append(UserMessage.text("begin"))
    dialogs = first, Session(store, first.session_id).root
    for who, what, size in steps:
        _step(dialogs[who], what, size)
    for dialog in dialogs:
        dialog.opened.refresh()
        recent, name = dialog.opened.recent, dialog.dialog_id
        assert recent.last(name) == store.last(name)
        assert list(recent.headers(name, start, stop)) == list(store.headers(name, start, stop))
        assert list(recent.headers(name, start, stop, reverse=True)) == list(
            store.headers(name, start, stop, reverse=True)
        )
        assert list(recent.bodies(name, start, stop)) == list(store.bodies(name, start, stop))
        kinds = ("label", "inbox")
        assert list(recent.latest_of_kind(name, kinds, start, stop)) == list(
            store.latest_of_kind(name, kinds, start, stop)
        )
        for header in store.headers(name):
            assert recent.header(name, header.seq) == header
            assert recent.body(name, header.seq) == store.body(name, header.seq)
        assert recent.node(name) == store.node(name)
        assert sum(len(body) for _, body in recent.rows[1:]) <= 2 * TAIL_BYTES
