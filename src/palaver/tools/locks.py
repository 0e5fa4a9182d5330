"""A lock that does not outlive its process."""

from __future__ import annotations

import os
import threading

__all__ = ["OwnLock"]


class OwnLock:
    """A lock of one process: a child that was forked off while another thread held it has its own, which nobody holds."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        """Begin with nobody holding it."""
        self._lock, self._process = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        """Wait until no other thread holds it."""
        if self._process != os.getpid():
            self._lock, self._process = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        """Let it go."""
        self._lock.release()
