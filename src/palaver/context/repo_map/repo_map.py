"""A map of a repository for a conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from palaver.context.manager import Viewed
from palaver.context.repo_map.interest import Interest, Places, interest_of
from palaver.context.work import acts_of
from palaver.errors import InvalidInput
from palaver.repomap import Drawing, Limits, Repository, Tags, draw, look, require
from palaver.tokens import Counter
from palaver.tokens import counter as counter_of

__all__ = ["ALONE", "TOKENS", "RepoMap"]

TOKENS = 1_024
"""Tokens of a map, unless it is said (Aider, aider/repomap.py: map_tokens)."""

ALONE = 8
"""How many times as large a map is where no file is before the model's eyes (the same: map_mul_no_files)."""

_DRAWN, _SEEN = 64, 8
"""Maps that are remembered, and questions for which the repository is that they were asked about; those that were wanted last."""

_SHARED = 8
"""Folders of which the maps are shared."""

_Asked = TypeVar("_Asked")
_Told = TypeVar("_Told")


class RepoMap:
    """Tells a model what a repository defines and what of it matters, within a number of tokens.

    The disk is read when a map is drawn, and no map is drawn twice: it comes into a conversation as a text that is recorded, as the result of a call,
    in what a call was sent, or in a compaction. The same files, the same conversation and the same number of tokens give the same text to the byte.

    Attributes:
        folder: The repository.
    """

    def __init__(self, folder: str | Path, *, limits: Limits | None = None) -> None:
        """Map a folder. It is looked at when a map is first wanted.

        Args:
            folder: The repository, or a part of it.
            limits: How much of it is looked at.

        Raises:
            InvalidInput: It is no folder.
            MissingExtra: The extra `repomap` is not installed.
        """
        require()
        self.folder = Path(folder).absolute()
        if not self.folder.is_dir():
            raise InvalidInput(f"{folder} is no folder, so there is nothing to map.", hint="Name the repository's.")
        self._limits = limits or Limits()
        self._known: dict[str, Tags | None] = {}
        self._seen: Repository | None = None
        self._asked: dict[Interest, Repository] = {}
        self._drawn: dict[tuple[Interest, int, Hashable], Drawing] = {}
        self._lock = threading.RLock()

    @classmethod
    def shared(cls, folder: str | Path) -> RepoMap:
        """Give the map of a folder that all share in this process who name only the folder: what one was told, the next one is told.

        Raises:
            InvalidInput: It is no folder.
            MissingExtra: The extra `repomap` is not installed.
        """
        return _shared(Path(folder).absolute())

    @property
    def seen(self) -> Repository:
        """The repository as it was when it was last looked at; it is looked at if it never was."""
        return self._seen or self.look()

    def look(self) -> Repository:
        """Look at the repository anew. Only what changed is parsed.

        Raises:
            InvalidInput: The folder is gone, or nobody may look into it; or the cache cannot be written.
        """
        with self._lock:
            found = look(self.folder, self._limits, self._known)
            if self._seen is None or (found.digest, found.left_out) != (self._seen.digest, self._seen.left_out):
                self._seen = found  # else what was found of the ways between its files is not looked for again
            return self._seen

    def draw(
        self,
        dialog: Viewed | None = None,
        *,
        max_tokens: int | None = None,
        mentioned: Iterable[str] = (),
        model: str = "",
        counter: Counter | None = None,
    ) -> Drawing:
        """Look at the repository and draw it for a conversation.

        Files whose text the model has before its eyes are not shown; what they use, and what is near to what was touched or mentioned,
        matters more.

        Args:
            dialog: The conversation; none for a map of the repository as such.
            max_tokens: How many tokens it may have, exactly; 1,024 unless given, and eight times as many where no file is before the
                model's eyes.
            mentioned: Further names of definitions and files that are of interest.
            model: The model that counts the tokens; the conversation's own unless given.
            counter: What counts instead.

        Raises:
            InvalidInput: The folder cannot be looked at.
        """
        repository = self.look()
        view = None if dialog is None else dialog.view()
        interest = Interest() if view is None else interest_of(view.exchanges, acts_of(view.exchanges).all)
        interest = interest.mentioning(mentioned)
        count = counter or counter_of(model or ("" if view is None else view.model))
        return _draw(self.folder, repository, interest, max_tokens, count.text)

    def drawn(self, interest: Interest, max_tokens: int, count: Callable[[str], int], by: Hashable) -> Drawing:
        """Draw a map for a plan: a question that is new, of the repository as it is; one that was asked before is answered as it was then.

        So a plan that is made again is the same plan, whatever happened to the disk meanwhile. A repository that cannot be looked at any more, or
        is empty now, is drawn as it was last seen.

        Args:
            interest: What the conversation is at.
            max_tokens: How much it may have.
            count: Measures a text.
            by: What tells one measure from another: maps are drawn for each.

        Raises:
            InvalidInput: The folder cannot be looked at, and never was.
        """
        with self._lock:
            asked = (interest, max_tokens, by)

            def tell() -> Drawing:
                repository = _remembered(self._asked, interest, self._now, _SEEN)
                return _draw(self.folder, repository, interest, max_tokens, count)

            return _remembered(self._drawn, asked, tell, _DRAWN)

    def _now(self) -> Repository:
        """Give the repository as it is; as it was where that cannot be told."""
        before = self._seen
        if before is None:
            return self.look()
        try:
            now = self.look()
        except InvalidInput:  # a plan goes on without a disk
            return before
        if before.files and not now.files:
            self._seen = before
        return self.seen

    def __repr__(self) -> str:
        return f"RepoMap({str(self.folder)!r})"


def _remembered(known: dict[_Asked, _Told], asked: _Asked, tell: Callable[[], _Told], most: int) -> _Told:
    """Give what was told before, or tell it; of more than so many the one is forgotten that was not wanted for the longest time."""
    told = known.pop(asked) if asked in known else tell()
    known[asked] = told
    if len(known) > most:
        del known[next(iter(known))]
    return told


@lru_cache(maxsize=_SHARED)
def _shared(folder: Path) -> RepoMap:
    return RepoMap(folder)


def _draw(
    folder: Path, repository: Repository, interest: Interest, max_tokens: int | None, count: Callable[[str], int]
) -> Drawing:
    places = Places(folder.as_posix(), (file.path for file in repository.files))
    known = places.of(interest.whole)
    if max_tokens is None:
        max_tokens = TOKENS if known else TOKENS * ALONE
    return draw(
        repository,
        max_tokens=max_tokens,
        count=count,
        known=known,
        near=places.of(interest.touched) - known,
        mentioned=interest.words,
    )
