"""What SQLite's errors mean, and those of the file system."""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from palaver.errors import InvalidInput, MissingFile, PalaverError, StoreBusy, StoreDamaged, StoreError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}


def read_only(path: Path) -> StoreError:
    """Return the error for a place that cannot be written."""
    return StoreError(
        f"This user cannot write {path} or its folder.",
        reason="read_only",
        hint="Open it read-only, or name another place.",
    )


def busy(path: Path, wait: float) -> StoreBusy:
    """Return the error for a store that others kept for too long; `wait` is in seconds."""
    return StoreBusy(
        f"Another writer held {path} for more than {wait:g} seconds.", hint="Nothing was written. Try again."
    )


def moved(path: Path) -> StoreError:
    """Return the error for a file that is not the one that was opened any more."""
    return StoreError(
        f"{path} was moved, replaced or deleted while it was open.",
        reason="moved",
        hint="Nothing was written. Move it back, or close the store and open it again.",
    )


def _full(path: Path) -> StoreError:
    return StoreError(
        f"There is no room left for {path}; the write was undone as a whole.",
        reason="full",
        hint="Free some space and try again.",
    )


def _by_number(path: Path, number: int) -> PalaverError | None:
    """Return the error for an errno."""
    if number in _NO_ROOM:
        return _full(path)
    if number in _NO_RIGHT:
        return read_only(path)
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return MissingFile(path, what="store", hint="create=True makes one.")
    return None


def os_fault(path: Path, error: OSError) -> PalaverError:
    """Return palaver's error for one of the operating system's."""
    return _by_number(path, error.errno or 0) or StoreError(f"{path} cannot be opened: {error.strerror}.")


def _by_result(path: Path, wait: float, error: apsw.Error) -> PalaverError | None:
    """Return the error for a result code of SQLite that says enough by itself."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return busy(path, wait)
        case apsw.FullError():
            return _full(path)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return read_only(path)
        case apsw.NotADBError() | apsw.CorruptError() | apsw.ConstraintError():
            return StoreDamaged(str(path), str(error))
        case apsw.TooBigError():
            return InvalidInput("A single value can have at most 1,000,000,000 bytes.", hint="Keep it elsewhere.")
    return None


def fault(path: Path, wait: float, error: apsw.Error, number: int = 0) -> PalaverError:
    """Return palaver's error for one of SQLite's.

    Args:
        path: The store's file.
        wait: How long this store waits for others, in seconds.
        error: SQLite's error.
        number: The errno of the last failed system call of that connection, 0 for none.
    """
    known = _by_result(path, wait, error)
    if known is None and isinstance(error, apsw.CantOpenError | apsw.IOError):
        known = _by_number(path, number)
    return known or StoreError(f"SQLite failed on {path}: {error}.")
