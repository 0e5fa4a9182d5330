"""Files with the conversation: a hook keeps their state when a turn begins, so that a rewind can bring them back, too."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, NotFound, PalaverError, warn
from palaver.log import Custom, Handle, Span, apart, decode_entry, every_header, upto
from palaver.messages import canonical_json
from palaver.session import Dialog
from palaver.store import Store
from palaver.view import held

FILES = "palaver.files"
"""The custom entry at the beginning of a turn that says what the hook returned, or why it failed."""

_REFS = "refs/palaver"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SECONDS = 120.0
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "palaver"), ("EMAIL", "palaver@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
"""The same files on the same commit give the same snapshot, so that turns without changes add nothing."""


class CheckpointWarning(UserWarning):
    """The files were not saved when a turn began; the turn continues, and a rewind to before it does not change files."""


@dataclass(frozen=True)
class Checkpoint:
    """A hook of two functions: `Agent(checkpoint=Checkpoint(snapshot, restore))`. They run in a worker thread.

    Attributes:
        snapshot: Keeps the state of the files, and returns JSON by which `restore` finds it. Called when a turn begins or is continued.
        restore: Brings a state back.
    """

    snapshot: Callable[[], Any]
    restore: Callable[[Any], None]


class FilesAt(NamedTuple):
    """The state of the files for an entry of a dialog.

    Attributes:
        handle: Where it was recorded.
        snapshot: What the hook returned.
        calls: The number of tool calls between it and the entry, which it does not contain; 0 if it is exact.
    """

    handle: Handle
    snapshot: Any
    calls: int


def record_of(hook: Checkpoint) -> Custom:
    """Return the entry with the state of the files now, or if the hook fails the one that says so; then a warning says so, too."""
    try:
        return Custom(custom_type=FILES, data={"snapshot": json.loads(canonical_json(hook.snapshot()))})
    except Exception as error:  # noqa: BLE001 - any exception of the hook, or a value that is not JSON
        why = f"{type(error).__name__}: {error}"
        warn(f"The files were not kept when the turn began: {why}", CheckpointWarning)
        return Custom(custom_type=FILES, data={"error": why})


def files_at(dialog: Dialog, place: Handle) -> FilesAt | None:
    """Return the state of the files for a rewind to an entry, or None if none was kept.

    It is the one that the turn after the entry began with, unless a tool began before that; else the newest one before the entry.
    """
    store, spans = dialog.store, held(dialog.store, dialog.dialog_id, None)
    kept = upto(spans, place)
    for handle, data in _marks(store, apart(spans, kept)):
        if data is None:
            break
        if "snapshot" in data:
            return FilesAt(handle, data["snapshot"], 0)
    calls = 0
    for handle, data in reversed(list(_marks(store, kept))):
        calls += data is None
        if data is not None and "snapshot" in data:
            return FilesAt(handle, data["snapshot"], calls)
    return None


def _marks(store: Store, spans: tuple[Span, ...]) -> Iterator[tuple[Handle, Mapping[str, Any] | None]]:
    """Yield the records about files in order, and None for each tool call that began."""
    for span in spans:
        for header in every_header(store, span):
            handle = Handle(span.dialog, header.seq)
            if header.kind == "call_started":
                yield handle, None
            elif header.kind == "custom":
                entry = decode_entry(store.body(span.dialog, header.seq))
                if isinstance(entry, Custom) and entry.custom_type == FILES and isinstance(entry.data, Mapping):
                    yield handle, entry.data


def restore_files(dialog: Dialog, hook: Checkpoint, snapshot: Any) -> None:  # noqa: ANN401 - the hook's own JSON
    """Bring a state of the files back. The state until now is kept, and recorded in the dialog for `undo_files`."""
    dialog.opened.annotate(Custom(custom_type=FILES, data={"undo": hook.snapshot()}))
    hook.restore(snapshot)


def undo_of(dialog: Dialog) -> Any:  # noqa: ANN401 - the hook's own JSON
    """Return the state of the files before the newest `restore_files` of a dialog.

    Raises:
        NotFound: There was none.
    """
    for header in dialog.store.latest_of_kind(dialog.dialog_id, "custom"):
        entry = decode_entry(dialog.store.body(dialog.dialog_id, header.seq))
        if isinstance(entry, Custom) and entry.custom_type == FILES and "undo" in (entry.data or {}):
            return entry.data["undo"]
    raise NotFound(dialog.dialog_id[:12], what="restored state of files in dialog")


# --- git ------------------------------------------------------------------------------------------------------------------------------


def git_checkpoint(folder: str | os.PathLike[str] = ".") -> Checkpoint:
    """Return a hook for the git work tree that a folder is in: each snapshot is a commit with its own ref below `refs/palaver/`.

    The user's index, branches, HEAD and stash stay as they are. Ignored files are neither kept nor restored.

    Raises:
        InvalidInput: The folder is in no work tree.
    """
    tree = GitTree.of(folder)
    return Checkpoint(tree.snapshot, tree.restore)


class GitTree(NamedTuple):
    """A work tree of git.

    Attributes:
        folder: Its topmost folder.
    """

    folder: Path

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> GitTree:
        """Return the work tree that a folder is in.

        Raises:
            InvalidInput: It is in none.
        """
        try:
            return cls(Path(_git(Path(folder), "rev-parse", "--show-toplevel")))
        except (PalaverError, OSError) as error:
            raise InvalidInput(f"{folder} is in no work tree of git: {error}") from error

    def snapshot(self) -> dict[str, str]:
        """Keep its files in a commit, and return what `restore` takes."""
        with self._index() as index:
            tree = self._git("write-tree", index=index)
        head = self._git("rev-parse", "--verify", "--quiet", "HEAD", check=False)
        parents = ("-p", head) if head else ()
        commit = self._git("commit-tree", tree, *parents, "-m", "Files when a turn of an agent began")
        self._git("update-ref", f"{_REFS}/{commit}", commit)
        return {"git": str(self.folder), "commit": commit}

    def restore(self, snapshot: Any) -> None:  # noqa: ANN401 - JSON of a log
        """Make its files those of a snapshot: nothing is changed if a file is in the way.

        Raises:
            NotFound: The snapshot is not of this work tree.
            PalaverError: git refuses.
        """
        commit = self._commit(snapshot)
        with self._index() as index:
            now = self._git("write-tree", index=index)
            self._require_room(self._changes(now, commit))
            self._git("read-tree", "-m", "-u", now, commit, index=index)

    def changes(self, snapshot: Any) -> list[str]:  # noqa: ANN401 - as above
        """Return what `restore` would do, a line for each file: `A`, `M`, `D` or `T`, and its name."""
        commit = self._commit(snapshot)
        with self._index() as index:
            return [f"{how} {name}" for how, name in self._changes(self._git("write-tree", index=index), commit)]

    def _changes(self, now: str, commit: str) -> list[tuple[str, str]]:
        words = self._git("diff-tree", "-r", "-z", "--name-status", "--no-renames", now, commit).split("\0")
        return list(zip(words[::2], words[1::2], strict=False))

    def _require_room(self, changes: list[tuple[str, str]]) -> None:
        """Refuse to write where a file that git ignores is: it is in no snapshot, and git would overwrite it."""
        gone = {name for how, name in changes if how == "D"}
        for name in (name for how, name in changes if how == "A"):
            path = self.folder / name
            above = (parent for parent in path.parents if self.folder in parent.parents)
            there = [
                part for part in (path, *above) if os.path.lexists(part) and (part.is_symlink() or not part.is_dir())
            ]
            below = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
            there += (part for part in below if part.is_symlink() or not part.is_dir())
            for part in there:
                if str(part.relative_to(self.folder)) not in gone:
                    raise PalaverError(f"{part} is in the way, and git ignores it.", hint="Move it, and try again.")

    def _commit(self, snapshot: Any) -> str:  # noqa: ANN401 - as above
        commit = snapshot.get("commit") if isinstance(snapshot, Mapping) else None
        if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
            raise NotFound(
                str(snapshot), what="snapshot of git", hint="Another hook made it: its `restore` brings it back."
            )
        if not self._git("rev-parse", "--verify", "--quiet", f"{_REFS}/{commit}", check=False):
            raise NotFound(commit, what=f"snapshot in {self.folder}", hint=f"It was made in {snapshot.get('git')}.")
        return commit

    @contextmanager
    def _index(self) -> Iterator[Path]:
        """Yield an index with all files that are not ignored, which begins as a copy of the user's so that only changed files are read."""
        with TemporaryDirectory(prefix="palaver-index-") as folder:
            index = Path(folder) / "index"
            own = self.folder / self._git("rev-parse", "--git-path", "index")
            if own.exists():
                copy2(own, index)  # with its time, by which git knows the files that may have changed since
            self._git("add", "--all", "--", ":/", index=index)
            yield index

    def _git(self, *words: str, index: Path | None = None, check: bool = True) -> str:
        return _git(self.folder, *words, index=index, check=check)


_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.safecrlf=false")
"""What no user sees must run nothing of the user's, and not stop at line ends."""


def _git(folder: Path, *words: str, index: Path | None = None, check: bool = True) -> str:
    """Return what git prints; empty where it fails and `check` is False.

    Raises:
        PalaverError: It fails.
    """
    own = os.environ  # noqa: TID251 - passed on to git
    variables = {name: value for name, value in own.items() if not name.startswith("GIT_")} | _AUTHOR
    if index is not None:
        variables["GIT_INDEX_FILE"] = str(index)
    try:
        ran = subprocess.run(  # noqa: S603 - our own words
            ["git", *_QUIET, *words],  # noqa: S607 - the user's git
            cwd=folder,
            env=variables,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PalaverError(f"git {words[0]}: {error}") from error
    if ran.returncode:
        if check:
            raise PalaverError(f"git {words[0]}: {ran.stderr.decode(errors='replace').strip()}")
        return ""
    return ran.stdout.decode(errors="surrogateescape").rstrip("\n")
