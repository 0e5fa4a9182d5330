"""The two stores as the laws want them: where they lie, and how to look behind their backs."""

from pathlib import Path

import apsw

from palaver.ids import DialogId
from palaver.store import Durability, MemoryStore, SqliteStore, Store
from palaver.testing.store_laws import Backend


class MemoryBackend(Backend):
    """A store in memory: opening it again would be another one."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def open(self) -> Store:
        """Give the one store."""
        return self.store

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self.store._logs[dialog_id].bodies[seq]

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        bodies = self.store._logs[dialog_id].bodies
        bodies[seq] = bodies[seq][:-1] + bytes([bodies[seq][-1] ^ 1])

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Take it away."""
        raise NotImplementedError("memory loses nothing")

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        self.store._times = {blob: at - seconds for blob, at in self.store._times.items()}


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
        connection.execute("UPDATE blob_times SET at = at - ?", (seconds,))
        connection.close()
