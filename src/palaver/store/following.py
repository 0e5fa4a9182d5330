"""Following a dialog: what is appended to it, in order, as it comes, without writing anything into the log.

`follow` works over any store by asking whether there is something new. A store that can tell by itself (`Watching`) is listened to instead;
it is asked once a second all the same, so that a signal that was lost costs a moment and never an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from time import monotonic, sleep
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from palaver.ids import DialogId
from palaver.log import Header
from palaver.store.protocol import Store

SHORTEST_PAUSE, LONGEST_PAUSE = 0.005, 0.25
"""How long a store that cannot tell is left alone between two questions, in seconds: longer, the longer it has had nothing new."""

LONGEST_SILENCE = 1.0
"""How long a store that can tell is trusted to tell, in seconds."""

Wait: TypeAlias = Callable[[float], None]
"""Returns when there may be something new, and after so many seconds at the latest."""


class Followed(NamedTuple):
    """An entry as it came.

    Attributes:
        header: Its header.
        body: Its body; None when it was lost.
    """

    header: Header
    body: bytes | None


@runtime_checkable
class Watching(Protocol):
    """A store that can tell when a dialog has grown."""

    def watch(self, dialog_id: DialogId) -> AbstractContextManager[Wait]:
        """Give what waits for the next entry of a dialog: entries that come after the block was entered end a wait."""
        ...


def follow(
    store: Store, dialog_id: DialogId, after: int = -1, *, idle: float | None = None
) -> Generator[Followed, None, None]:
    """Give the own entries of a dialog beyond number `after`, those that are there and those that come, each once and in order.

    Args:
        store: The store; it is only read.
        dialog_id: The dialog.
        after: The number of the last entry that is known already, -1 for none.
        idle: End when nothing has come for so many seconds, 0 to give what is there and end; None to go on until the iterator is closed.

    Raises:
        UnknownDialog: No such dialog; raised at once.
        StoreUnavailable: The server went away and did not come back in time; follow again after the last entry given.
    """
    store.last(dialog_id)
    return _follow(store, dialog_id, after, idle)


def _follow(store: Store, dialog_id: DialogId, after: int, idle: float | None) -> Generator[Followed, None, None]:
    watching = store if isinstance(store, Watching) else None
    with nullcontext(sleep) if watching is None else watching.watch(dialog_id) as wait:
        news = monotonic()
        while True:
            for followed in _new(store, dialog_id, after):
                yield followed
                after = followed.header.seq
                news = monotonic()
            quiet = monotonic() - news
            if idle is not None and quiet >= idle:
                return
            pause = LONGEST_SILENCE if watching else min(max(SHORTEST_PAUSE, quiet / 4), LONGEST_PAUSE)
            wait(pause if idle is None else min(pause, idle - quiet))


def _new(store: Store, dialog_id: DialogId, after: int) -> Iterator[Followed]:
    """Give what is there beyond a number."""
    stop = store.last(dialog_id).seq + 1
    if stop <= after + 1:
        return
    bodies = store.bodies(dialog_id, after + 1, stop)
    seq, body = next(bodies, (stop, b""))
    for header in store.headers(dialog_id, after + 1, stop):
        if header.seq == seq:
            yield Followed(header, body)
            seq, body = next(bodies, (stop, b""))
        else:
            yield Followed(header, None)
