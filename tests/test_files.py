"""Files that are written whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.files import write_once, write_whole


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """What fails in the middle leaves what was there, names the file, and leaves nothing else behind; only the owner can read it."""
    path = tmp_path / "made" / "file"

    def full() -> Iterator[bytes]:
        yield b"new"
        raise OSError(28, "No space left on device")

    write_whole(path, [b"o", b"ld"])
    with pytest.raises(OSError, match="No space left") as failed:
        write_whole(path, full())
    assert (failed.value.filename, path.read_bytes()) == (str(path), b"old")
    assert list(path.parent.iterdir()) == [path]
    assert [made.stat().st_mode & 0o777 for made in (path, path.parent)] == [0o600, 0o700]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """Whoever is later changes nothing."""
    path = tmp_path / "file"
    for data in (b"first", b"second"):
        write_once(path, data)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"first", [path])
