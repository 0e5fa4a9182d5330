"""The two stores as the laws want them: where they lie, and how to look behind their backs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw

from palaver.ids import DialogId
from palaver.store import Durability, MemoryStore, SqliteStore, Store
from palaver.store.memory.contents import Guard
from palaver.testing.store_laws import Backend


class _Telling(Guard):
    """A lock that tells when it is free again; not of what is done meanwhile."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act
        self._depth = 0
        self._telling = False

    def __enter__(self) -> None:
        super().__enter__()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        super().__exit__(*error)
        if not self._depth and not self._telling:
            self._telling = True
            self._act()
            self._telling = False


@contextmanager
def between_pages(store: Any, act: Callable[[], None]) -> Iterator[None]:  # noqa: ANN401 - of either kind
    """Act behind each reading of a store that keeps rows; not behind those of the act itself."""
    plain = store._rows
    telling = False

    @contextmanager
    def rows(*, write: bool = False) -> Iterator[Any]:
        nonlocal telling
        with plain(write=write) as given:
            yield given
        if not telling:
            telling = True
            act()
            telling = False

    store._rows = rows
    try:
        yield
    finally:
        store._rows = plain


class MemoryBackend(Backend):
    """A store in memory: opening it again would be another one."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def open(self) -> Store:
        """Give the one store."""
        return self.store

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self.store.contents.logs[dialog_id].bodies[seq]

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        bodies = self.store.contents.logs[dialog_id].bodies
        bodies[seq] = bodies[seq][:-1] + bytes([bodies[seq][-1] ^ 1])

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Take it away."""
        raise NotImplementedError("memory loses nothing")

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        self.store.contents.times = {blob: at - seconds for blob, at in self.store.contents.times.items()}

    @contextmanager
    def between(self, store: Store, act: Callable[[], None]) -> Iterator[None]:
        """Act whenever the store's lock is free again."""
        assert isinstance(store, MemoryStore)
        plain = store.contents.guard
        store.contents.guard = _Telling(act)
        try:
            yield
        finally:
            store.contents.guard = plain


class SqliteBackend(Backend):
    """A store in one file, looked at through a connection of our own."""

    def __init__(self, path: Path, durability: Durability = Durability.NORMAL) -> None:
        self.path = path
        self.durability = durability

    def open(self) -> Store:
        """Open the file."""
        return SqliteStore(self.path, self.durability)

    def _body(self, sql: str, dialog_id: DialogId, seq: int) -> bytes:
        place = """
            (SELECT body_no FROM headers WHERE id = (SELECT dialog_no << 32 FROM dialogs WHERE dialog_id = :dialog) + :seq)
        """
        connection = apsw.Connection(str(self.path))
        found = connection.execute(sql.replace("PLACE", place), {"dialog": dialog_id, "seq": seq}).get
        connection.close()
        return found if isinstance(found, bytes) else b""

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self._body("SELECT body FROM bodies WHERE body_no = PLACE", dialog_id, seq)

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        body = self.stored(dialog_id, seq)
        changed = body[:-1] + bytes([body[-1] ^ 1])
        self._body(f"UPDATE bodies SET body = x'{changed.hex()}' WHERE body_no = PLACE", dialog_id, seq)  # noqa: S608

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Take it away."""
        self._body("DELETE FROM bodies WHERE body_no = PLACE", dialog_id, seq)

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(60_000)
        connection.execute("UPDATE blob_times SET at = at - ?", (seconds,))
        connection.close()

    def between(self, store: Store, act: Callable[[], None]) -> AbstractContextManager[None]:
        """Act behind each page that is read."""
        return between_pages(store, act)
