"""The durable store in one SQLite file."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from palaver.errors import InvalidInput
from palaver.store.protocol import Durability
from palaver.store.sql import SqlStore
from palaver.store.sqlite.database import SqliteDatabase
from palaver.store.sqlite.opening import Opener, formats, prepare

WAIT_SECONDS = 5.0
"""How long a call waits for other writers before it raises `StoreBusy`."""


class SqliteStore(SqlStore):
    """A store in one SQLite file, for any number of threads and processes of one machine.

    The file has mode 0600, missing folders are made with 0700. While the store is open SQLite keeps `-wal` and `-shm` files of the same mode
    beside it. It must not lie on a network share.

    Attributes:
        path: The file.
    """

    beyond: tuple[str, ...] = (
        "copies of the file, and what a file system or a flash drive keeps of blocks that it wrote anew",
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
    ) -> None:
        """Open the store, and make or upgrade it when needed.

        Args:
            path: The file.
            durability: `FULL` flushes the disk at every write; `NORMAL` leaves that to the next checkpoint.
            read_only: True to refuse every write; the only way to open a store where nothing may be written.
            create: False to raise when there is no such file.
            wait: How long a call waits for other writers, in seconds.

        Raises:
            MissingFile: There is no such file, and `create` is False.
            InvalidInput: The file is not a store, its name is not UTF-8, or a file cannot have this durability.
            StoreError: A later palaver wrote it (`too_new`), or it cannot be written (`read_only`).
        """
        if os.fspath(path) == ":memory:":
            raise InvalidInput("A SqliteStore lies in a file.", hint="MemoryStore() is the store in memory.")
        if durability is Durability.MEMORY:
            raise InvalidInput("A file outlives the process: its durability is full or normal.")
        self.path = Path(os.path.realpath(path))  # SQLite puts the side files beside the target of a link, too
        try:
            url = f"sqlite://{quote(str(self.path))}"
        except UnicodeEncodeError as error:
            raise InvalidInput(f"SQLite opens files whose names are UTF-8, and {str(self.path)!r} is not.") from error
        opener = Opener(self.path, durability, wait, writable=not read_only)
        prepare(opener, create=create)
        super().__init__(SqliteDatabase(opener), url, durability, formats())
