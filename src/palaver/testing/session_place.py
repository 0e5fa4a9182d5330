"""Where the sessions of the session machine lie: places that two writers share, that note what was made durable, and that can die."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from palaver.ids import DialogId
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.testing.disk import Act, Loss, Note
from palaver.testing.sqlite_disk import Disk, close_on, put_back, sqlite_on
from palaver.testing.tape import Recorder, Step, play

__all__ = ["Died", "MemoryPlace", "Place", "SharedPlace", "SqlitePlace"]


class Died(BaseException):
    """The process would be dead now."""


class Handle(Recorder):
    """One process's handle of the store: what it makes durable goes onto the one tape of the place, and it dies when it is told to.

    Attributes:
        bodies_read: How many bodies it has read.
    """

    def __init__(self, place: Place, store: Store) -> None:
        super().__init__(store)
        self._place = place
        self.bodies_read = 0

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give bodies, and count them."""
        for found in self._store.bodies(dialog_id, start, stop):
            self.bodies_read += 1
            yield found

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give a body, and count it."""
        self.bodies_read += 1
        return self._store.body(dialog_id, seq)

    def _made(self, step: Step) -> None:
        self._place.made(step)


class Place(ABC):
    """A place for one store, and all that was made durable in it.

    Attributes:
        steps: What was made durable, in order.
        marks: How far the disk was when each was acknowledged.
        dies_in: It dies behind so many steps more, before whoever made the last of them is told; 0 for never.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.marks: list[int] = []
        self.dies_in = 0

    @abstractmethod
    def store(self) -> Store:
        """Open the store."""

    def handle(self) -> Store:
        """Open the store for one process, which notes what it writes."""
        return cast("Store", Handle(self, self.store()))

    def made(self, step: Step) -> None:
        """Note a step, and die behind it if it was the last."""
        self.steps.append(step)
        self.marks.append(self.at())
        if self.dies_in:
            self.dies_in -= 1
            if not self.dies_in:
                raise Died

    def at(self) -> int:
        """Tell how far the disk is."""
        return len(self.steps)

    def known(self, count: int) -> MemoryStore:
        """Give what there is after so many steps, by the reference store."""
        store = MemoryStore()
        for step in self.steps[:count]:
            play(step, store)
        return store

    def crash(self, since: int, choose: Callable[[int], int], loss: Loss, seed: int) -> range:
        """Die: of all processes, and, where it can be, of the machine.

        Args:
            since: How far the disk was when the last operation began: nothing before is cut off.
            choose: Chooses one of so many points.
            loss: What a power cut does to what was not flushed.
            seed: What it is drawn from.

        Returns:
            The numbers of steps of which one must be what is there: those acknowledged, and with the one under way.
        """
        del since, choose, loss, seed
        return range(len(self.steps), len(self.steps) + 1)

    def cut(self, count: int) -> None:
        """Forget the steps that did not survive."""
        del self.steps[count:], self.marks[count:]

    def close(self) -> None:  # noqa: B027 - a place may have nothing to take away
        """Take everything away."""


class MemoryPlace(Place):
    """A store in memory: it outlives the objects that use it, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._store = MemoryStore()

    def store(self) -> Store:
        """Give the one store."""
        return self._store


class SharedPlace(Place):
    """A store behind an address; processes that die let go of it without a word."""

    def __init__(self, opened: Callable[[], Store]) -> None:
        """Keep what opens it: each time for another process."""
        super().__init__()
        self._opened = opened
        self._stores: list[Store] = []

    def store(self) -> Store:
        """Open it."""
        self._stores.append(self._opened())
        return self._stores[-1]

    def crash(self, since: int, choose: Callable[[int], int], loss: Loss, seed: int) -> range:
        """Let go of everything."""
        self.close()
        return super().crash(since, choose, loss, seed)

    def close(self) -> None:
        """Close what was opened."""
        while self._stores:
            self._stores.pop().close()


class SqlitePlace(Place):
    """A SQLite file on a disk whose power can be cut anywhere in the last operation."""

    def __init__(self, folder: Path) -> None:
        """Begin in an empty folder; `close` leaves it to whoever made it."""
        super().__init__()
        self._folder = folder
        self._lives = 0
        self._disk = Disk()
        self._stack = ExitStack()
        self._stack.enter_context(sqlite_on(self._disk))
        self._stores: list[SqliteStore] = []

    def at(self) -> int:
        """Tell how much was done to the files."""
        return len(self._disk.notes)

    def store(self) -> Store:
        """Open the file."""
        self._stores.append(SqliteStore(self._folder / str(self._lives) / "store.db"))
        return self._stores[-1]

    def crash(self, since: int, choose: Callable[[int], int], loss: Loss, seed: int) -> range:
        """Cut the power at a point of the last operation, and go on with what is on the disk."""
        at = since + choose(self.at() - since + 1)
        left = self._disk.notes.left(at, loss, seed)
        acknowledged = sum(mark <= at for mark in self.marks)
        self._close()
        self._lives += 1
        put_back(left, self._folder / str(self._lives))
        self._disk.notes.acts.clear()
        for name, content in left.items():
            self._disk.notes.acts += [Note(Act.MADE, name), Note(Act.WROTE, name, 0, content), Note(Act.FLUSHED, name)]
        self.marks = [0 for _ in self.marks]
        return range(acknowledged, min(acknowledged + 1, len(self.steps)) + 1)

    def _close(self) -> None:
        while self._stores:
            close_on(self._stores.pop())

    def close(self) -> None:
        """Close the file, and give SQLite its own disk back."""
        self._close()
        self._stack.close()
