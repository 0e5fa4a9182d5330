"""SQLite's errors in palaver's words: whose fault it is, and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from palaver.errors import (
    InvalidInput,
    MissingStore,
    PalaverError,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}


def full(path: Path) -> StoreFull:
    """Give the error for a device without room."""
    return StoreFull(
        f"There is no room left for {path}; what was being written was undone as a whole.",
        hint="Free some space and try again.",
    )


def read_only(path: Path) -> StoreReadOnly:
    """Give the error for a place that may not be written."""
    return StoreReadOnly(
        f"{path}, or the folder it lies in, may not be written by this user.",
        hint="Open it read-only, or name another place.",
    )


def busy(path: Path, wait: float) -> StoreBusy:
    """Give the error for a store that others held for too long; `wait` is in seconds."""
    return StoreBusy(
        f"Another writer held {path} for more than {wait:g} seconds.", hint="Try again; nothing was written."
    )


def closed(path: Path) -> StoreClosed:
    """Give the error for a store that was closed."""
    return StoreClosed(f"The store {path} was closed.", hint="Open it again.")


def _by_number(path: Path, number: int) -> PalaverError | None:
    """Give the error behind a failure of the operating system, by its errno."""
    if number in _NO_ROOM:
        return full(path)
    if number in _NO_RIGHT:
        return read_only(path)
    return MissingStore(str(path)) if number in {errno.ENOENT, errno.ENOTDIR} else None


def os_fault(path: Path, error: OSError) -> PalaverError:
    """Give palaver's error for one of the operating system's."""
    return _by_number(path, error.errno or 0) or StoreError(f"{path} cannot be opened: {error.strerror}.")


def _by_result(path: Path, wait: float, error: apsw.Error) -> PalaverError | None:
    """Give the error behind a result code of SQLite's that says enough by itself."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return busy(path, wait)
        case apsw.FullError():
            return full(path)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return read_only(path)
        case apsw.NotADBError() | apsw.CorruptError() | apsw.ConstraintError():
            return StoreDamaged(str(path), str(error))
        case apsw.TooBigError():
            return InvalidInput(
                "A single value is limited to 1,000,000,000 bytes.", hint="Keep it outside of the store."
            )
    return None


def fault(path: Path, wait: float, error: apsw.Error, number: int = 0) -> PalaverError:
    """Give palaver's error for one of SQLite's.

    Args:
        path: The store's file.
        wait: How long this store waits for others, in seconds.
        error: What SQLite said.
        number: The errno of the last failed system call of that connection, 0 for none.
    """
    found = _by_result(path, wait, error)
    if found is None and isinstance(error, apsw.CantOpenError | apsw.IOError):
        found = _by_number(path, number)
    return found or StoreError(f"SQLite failed on {path}: {error}.")
