"""A tape of what was made durable: recorded from real work once, and played into any store as often as one likes.

Whoever wants to know what a store holds after a crash needs to know what it held after every single write. A tape knows: it is the list of a
history's durable steps, and `states` gives the digest of everything after each of them, by the reference store in memory. What is found after
a crash must be one of two neighbours in that list: the state after the last step that was acknowledged, or the one after the step in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from palaver.ids import DialogId, SessionId
from palaver.log import NOTHING, Draft, Header, Node
from palaver.store import MemoryStore, SessionRecord, Store
from palaver.store.copying import fingerprint
from palaver.store.erasing import Eraser, Erasing
from palaver.store.records import checked

__all__ = ["Step", "Tape", "entries_in", "play", "recorder", "state_of", "states"]


_T = TypeVar("_T")


class Write(NamedTuple):
    """One call of a store that wrote something.

    Attributes:
        method: The name of the method; of an erasure's own, behind `eraser.`.
        arguments: What it was given by position.
        named: What it was given by name.
    """

    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


Step: TypeAlias = tuple[Write, ...]
"""What is made durable at once: one call, or all the calls of one block."""

Tape: TypeAlias = tuple[Step, ...]
"""A history: its durable steps in order."""

_WRITES = ("create_session", "update_session", "create_dialog", "put_blob", "put_source", "scrub")
_ERASURE = "eraser."


class Recorder:
    """Hands everything on to another store, and notes what was written. For one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        for name in dir(store):  # what a store can do is looked for on the object itself since Python 3.12
            if not name.startswith("_") and not hasattr(type(self), name) and callable(getattr(store, name)):
                setattr(self, name, self.__getattr__(name))
        self.beyond = getattr(store, "beyond", ())
        self._steps: list[Step] = []
        self._block: list[Write] | None = None

    @property
    def tape(self) -> Tape:
        """What was made durable so far."""
        return tuple(self._steps)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        found = getattr(self._store, name)
        return self._noting(found, name) if name in _WRITES else found

    def _noting(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Give a method that notes what it was called with, when it has not raised."""

        def noted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the method takes and gives
            made = method(*arguments, **named)
            self._note(Write(name, tuple(map(_kept, arguments)), named))
            return made

        return noted

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append; without drafts nothing is written, and nothing noted."""
        headers = self._store.append(dialog_id, drafts, turn_head)
        if headers:
            self._note(Write("append", (dialog_id, tuple(drafts), turn_head), {}))
        return headers

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Annotate."""
        header = self._store.annotate(dialog_id, draft)
        self._note(Write("annotate", (dialog_id, draft), {}))
        return header

    @contextmanager
    def together(self) -> Iterator[None]:
        """Note the calls of a block as one step, if it does not raise; an inner block that raises takes its own calls with it."""
        with self._block_of(self._store.together()):
            yield

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        """Note an erasure as one step, as `together` does."""
        with self._block_of(cast("Erasing", self._store).erasing()) as eraser:
            yield cast("Eraser", _NotedEraser(eraser, self._noting))

    @contextmanager
    def _block_of(self, block: AbstractContextManager[_T]) -> Iterator[_T]:
        outer, self._block = self._block, []
        try:
            with block as given:
                yield given
            made = self._block
        except BaseException:  # an interrupt, too, ends the block
            self._block = outer
            raise
        self._block = outer
        if outer is not None:
            outer.extend(made)
        elif made:
            self._made(tuple(made))

    def _made(self, step: Step) -> None:
        self._steps.append(step)

    def _note(self, write: Write) -> None:
        if self._block is None:
            self._made((write,))
        else:
            self._block.append(write)


class _NotedEraser:
    """Hands an erasure's acts on, and notes them."""

    def __init__(self, eraser: Eraser, noting: Callable[[Callable[..., Any], str], Callable[..., Any]]) -> None:
        self._eraser = eraser
        self._noting = noting

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever an erasure can do
        found = getattr(self._eraser, name)
        return found if name == "unnamed" else self._noting(found, f"{_ERASURE}{name}")


def _kept(argument: object) -> object:
    """Give what was handed in as nobody can change it any more, and as it can be written down."""
    match argument:
        case list():
            return tuple(argument)
        case SessionRecord():
            return checked(argument)
        case Node():
            return checked(argument)
        case _:
            return argument


def recorder(store: Store) -> tuple[Store, Recorder]:
    """Give a store that notes what is written into another one; the second value is the same object, whose `tape` gives the notes."""
    made = Recorder(store)
    return cast("Store", made), made


def play(step: Step, store: Store) -> None:
    """Make one step of a tape durable in a store."""
    if any(write.method.startswith(_ERASURE) for write in step):
        with cast("Erasing", store).erasing() as eraser:
            for write in step:
                name = write.method.removeprefix(_ERASURE)
                _call(write, store if name == write.method else eraser, name)
        return
    if len(step) == 1:
        _call(step[0], store, step[0].method)
        return
    with store.together():
        for write in step:
            _call(write, store, write.method)


def _call(write: Write, whom: Store | Eraser, name: str) -> None:
    getattr(whom, name)(*write.arguments, **write.named)


def states(tape: Tape) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Give the state after each number of steps, beginning with none, and how many entries there are then; by the store in memory."""
    store = MemoryStore()
    known, counts = [state_of(store)], [0]
    for step in tape:
        play(step, store)
        known.append(state_of(store))
        counts.append(entries_in(store))
    return tuple(known), tuple(counts)


def state_of(store: Store) -> str:
    """Give a digest of everything a store holds: what `fingerprint` tells of, what is remembered to be erased, and the receipts."""
    gone = (sorted(store.all_gone()), sorted(store.receipts())) if isinstance(store, Erasing) else ()
    return sha256(f"{fingerprint(store)} {gone!r}".encode()).hexdigest()


def session_ids(store: Store) -> list[SessionId]:
    """Give the ids of all sessions, those in the trash too, in order."""
    return sorted(record.session_id for record in chain(store.sessions(), store.sessions(trashed=True)))


def entries_in(store: Store) -> int:
    """Count the entries of all sessions."""
    nodes = [node for session_id in session_ids(store) for node in store.nodes(session_id)]
    return sum(store.last(node.dialog_id).seq - NOTHING.seq for node in nodes)
