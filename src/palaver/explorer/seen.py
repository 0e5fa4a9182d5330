"""Last-seen marks: how many messages of a session the user has looked at, in one small file of the user's data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock

from palaver.errors import InvalidInput, StoreError
from palaver.files import write_whole

_ID = 32
"""Digits of the id of a session."""

_MOST = 10_000
"""Sessions that are remembered, the newest marks."""


class LastSeen:
    """The marks of one user.

    Attributes:
        path: The file; None to remember nothing beyond this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read what is there; a file that cannot be read has no marks, and the next mark replaces it."""
        self.path = path
        self._lock = Lock()
        self._marks = self._read()

    def get(self, session: str) -> int | None:
        """Return how many messages of a session were seen, or None for a session that was never opened."""
        return self._marks.get(session)

    def put(self, session: object, messages: object) -> None:
        """Remember how many messages of a session were seen.

        Raises:
            InvalidInput: It is not the id of a session, or not a number of messages.
            StoreError: The file cannot be written.
        """
        if not isinstance(session, str) or len(session) != _ID or isinstance(messages, bool):
            raise InvalidInput("A mark has the id of a session and a number of messages.")
        if not isinstance(messages, int) or not 0 <= messages < 2**53:
            raise InvalidInput("A mark has a number of messages.")
        with self._lock:
            marks = self._read() or self._marks  # another explorer may have written it
            marks.pop(session, None)
            self._marks = dict([*marks.items(), (session, messages)][-_MOST:])
            try:
                self._write(self._marks)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _read(self) -> dict[str, int]:
        with suppress(OSError, ValueError, RecursionError):
            marks = {} if self.path is None else json.loads(self.path.read_bytes())
            if isinstance(marks, dict):
                return {name: count for name, count in marks.items() if isinstance(count, int)}
        return {}

    def _write(self, marks: Mapping[str, int]) -> None:
        if self.path is not None:
            write_whole(self.path, [json.dumps(marks).encode()])
