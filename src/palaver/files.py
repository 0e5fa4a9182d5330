"""Files that appear whole or not at all, and that only their owner can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

PRIVATE_FOLDER = 0o700


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file durably, in place of one that is there; folders above it are made.

    Raises:
        OSError: It cannot be written; the error names the file, and what was there stays.
    """
    _write(path, pieces, Path.replace)


def write_once(path: Path, data: bytes = b"") -> None:
    """Write a file durably unless it is there; folders above it are made.

    The file gets its name when it is closed already: closing a descriptor drops all locks that this process has on a file, also those of
    another handle (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """

    def name(unnamed: Path, path: Path) -> None:
        with suppress(FileExistsError):  # another was faster
            path.hardlink_to(unnamed)

    _write(path, (data,), name)


def _write(path: Path, pieces: Iterable[bytes], name: Callable[[Path, Path], object]) -> None:
    path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    # a random name: on a cluster, a second attempt at a task can have the same process number
    descriptor, made = mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)  # mode 0600
    unnamed = Path(made)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.writelines(pieces)
            file.flush()
            os.fsync(descriptor)
        name(unnamed, path)
    except OSError as error:  # the error of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        unnamed.unlink(missing_ok=True)
    flush_names(path.parent)


def flush_names(folder: Path) -> None:
    """Let the names in a folder survive a power cut."""
    with suppress(OSError):  # folders cannot be flushed on Windows
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
