"""The stores as the laws want them: where they lie, and how to look behind their backs."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import apsw

from palaver.ids import DialogId
from palaver.store import Durability, MemoryStore, SqliteStore, Store
from palaver.store.route import PartStore
from palaver.store.routed import RoutedStore
from palaver.testing.store_laws import Backend


class MemoryBackend(Backend):
    """A store in memory: opening it again would be another one."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def open(self) -> Store:
        """Return the one store."""
        return self.store

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self.store.contents.logs[dialog_id].bodies[seq]

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        bodies = self.store.contents.logs[dialog_id].bodies
        bodies[seq] = bodies[seq][:-1] + bytes([bodies[seq][-1] ^ 1])

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Delete it."""
        raise NotImplementedError("memory loses nothing")

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        put_at = self.store.contents.put_at
        put_at.update({blob: at - seconds for blob, at in put_at.items()})


class SqliteBackend(Backend):
    """A store in one file, looked at through a connection of our own."""

    def __init__(self, path: Path, durability: Durability = Durability.NORMAL) -> None:
        self.path = path
        self.durability = durability

    def open(self) -> Store:
        """Open the file."""
        return SqliteStore(self.path, self.durability)

    def run(self, sql: str, *values: object) -> object:
        """Execute a statement behind the store's back, and return its first value."""
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(60_000)
        try:
            return connection.execute(sql, values).get
        finally:
            connection.close()

    def _body_no(self, dialog_id: DialogId, seq: int) -> object:
        sql = "SELECT body_no FROM headers JOIN dialogs USING (session_no, dialog_no) WHERE dialog_id = ? AND seq = ?"
        return self.run(sql, dialog_id, seq)

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body."""
        return self.lying(dialog_id, seq)

    def lying(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        body = self.run("SELECT body FROM bodies WHERE body_no = ?", self._body_no(dialog_id, seq))
        return body if isinstance(body, bytes) else b""

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        body = self.lying(dialog_id, seq)
        changed = body[:-1] + bytes([body[-1] ^ 1])
        self.run("UPDATE bodies SET body = ? WHERE body_no = ?", changed, self._body_no(dialog_id, seq))

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Delete it."""
        self.run("DELETE FROM bodies WHERE body_no = ?", self._body_no(dialog_id, seq))

    def damage_header(self, dialog_id: DialogId, seq: int) -> None:
        """Change the kind in a header."""
        self.run("UPDATE headers SET kind = 'messagf' WHERE body_no = ?", self._body_no(dialog_id, seq))

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        self.run("UPDATE blobs SET put_at = put_at - ?", seconds)


class RoutedBackend(Backend):
    """A store over several others; behind its back, each looks at its own."""

    def __init__(self, parts: Sequence[Backend]) -> None:
        self.parts = parts

    def open(self) -> Store:
        """Open all of them."""
        return RoutedStore([cast("PartStore", part.open()) for part in self.parts])

    def _at(self, dialog_id: DialogId) -> Backend:
        return self.parts[int(dialog_id[-4:], 16) * len(self.parts) >> 16]

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self._at(dialog_id).stored(dialog_id, seq)

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        self._at(dialog_id).damage(dialog_id, seq)

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Delete it."""
        self._at(dialog_id).lose(dialog_id, seq)

    def damage_header(self, dialog_id: DialogId, seq: int) -> None:
        """Change the kind in a header."""
        self._at(dialog_id).damage_header(dialog_id, seq)

    def age_payloads(self, seconds: float) -> None:
        """Turn all clocks back."""
        for part in self.parts:
            part.age_payloads(seconds)
