"""A folder of bundles, one file a session, that any program may carry to other machines.

A file is never changed. Its name has the session and a digest of what it says, so two machines that write the same session make two files and no conflict;
the next sync replaces both by one. A file appears whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import file_digest
from pathlib import Path

from palaver.files import write_whole
from palaver.ids import SessionId
from palaver.store.erasing import Erasing, NotedFile
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.transfer.bundle import export_bundle, import_bundle_file

_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{16})\.bundle")
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # conversations are private
_ERASED = ".erased"


class BundleFolder:
    """A folder with a bundle of each session.

    Attributes:
        path: The folder; created on the first write, readable only by its owner.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def sessions(self) -> dict[SessionId, dict[str, Path]]:
        """Return the files of each session by the digests in their names."""
        named: dict[SessionId, dict[str, Path]] = {}
        for path, parts in self._files():
            if parts is not None:
                named.setdefault(SessionId(parts[1]), {})[parts[2]] = path
        return named

    def strays(self) -> Iterator[Path]:
        """Yield the bundles with other names, such as copies that a program made of a conflict."""
        return (path for path, parts in self._files() if parts is None)

    def _files(self) -> Iterator[tuple[Path, re.Match[str] | None]]:
        return ((path, _NAME.fullmatch(path.name)) for path in sorted(self.path.glob("*.bundle")))

    @staticmethod
    def load(path: Path) -> MemoryStore:
        """Read a file.

        Raises:
            UnsupportedTranscript: It is no whole bundle.
        """
        store = MemoryStore()
        import_bundle_file(store, path)
        return store

    def write(self, store: Store, session_id: SessionId, digest: str, *, replacing: Iterable[Path]) -> Path:
        """Write the file of a session, then delete those that it replaces."""
        path = self.path / f"{session_id}-{digest}.bundle"
        if not path.exists():
            write_whole(path, export_bundle(store, session_id))
        for old in replacing:
            if old != path:
                old.unlink(missing_ok=True)
        return path

    @staticmethod
    def note(store: Erasing, session_id: SessionId, path: Path, replaced: Iterable[Path]) -> None:
        """Let a store know of a file, so that an erasure of the session reaches it."""
        for old in replaced:
            store.forget_file(session_id, str(old.resolve()))
        store.note_file(session_id, note_of(path))

    # --- what was erased ----------------------------------------------------------------------------------------------------------

    def erased(self, session_id: SessionId) -> str | None:
        """Return the receipt of an erased session, or None."""
        path = self.path / f"{session_id}{_ERASED}"
        return path.read_text("utf-8").strip() if path.exists() else None

    def erase(self, session_id: SessionId, files: Iterable[Path], receipt: str) -> None:
        """Delete the files of a session, and keep the id of the receipt for other machines."""
        path = self.path / f"{session_id}{_ERASED}"
        if not path.exists():
            write_whole(path, [f"{receipt}\n".encode()])
        for file in files:
            file.unlink(missing_ok=True)


def note_of(path: Path) -> NotedFile:
    """Return what a store remembers of a file, so that an erasure of its session can delete it."""
    with path.open("rb") as file:
        return NotedFile(str(path.resolve()), file_digest(file, "sha256").hexdigest(), path.stat().st_ino)
