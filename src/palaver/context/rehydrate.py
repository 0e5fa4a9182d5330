"""Bring back the files that were worked on last, when the exchanges that showed them leave the view.

(Claude Code re-reads up to five files of 5,000 tokens each, 50,000 in all, after it has compacted.) What a file says is taken from the ledger,
where somebody can read files; else from the log: what was last read of it, or written to it, if nothing changed it since. Either way the
text becomes part of the plan, so a past view never depends on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.record.carried import sources_of
from palaver.context.texts import file_as_seen
from palaver.context.work import Act
from palaver.messages import Trust
from palaver.view import Insert

__all__ = ["Rehydrating"]

_SHARE = 6
"""At most a sixth of the room is for files: of the 167,000 tokens of Claude Code's, all five files with their 5,000."""

_TRIES = 8
"""How often the beginning of a file is tried that has as many tokens as there is room for."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was last seen of a file."""

    path: str
    act: Act
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehydrating(Beside):
    """Stands for exchanges with what another stand-in says, and the newest of their files.

    Attributes:
        files: How many files.
        each: The most of one file, in the unit of the measure.
        most: The most of all of them.
        now: Gives what a file says now, or None.
    """

    files: int = 5
    each: int = 5_000
    most: int = 50_000
    now: Callable[[str], str | None] | None = field(default=None, compare=False)

    def own_room(self, ground: Ground) -> int:
        """Give what the files have at most."""
        return max(min(self.most, self.each * self.files, ground.room.high // _SHARE), 0)

    def own(self, ground: Ground, layout: Layout) -> Iterator[Insert]:
        """Make the texts of the files."""
        free, left = self.own_room(ground), self.files
        gap = ground.gap(layout)
        for seen in _last_seen(ground, layout):
            text = self._text(seen)
            if left == 0 or text is None:
                continue
            insert = self._insert(ground, gap, seen, text, min(self.each, free))
            if insert is not None:
                free -= ground.inserted(insert.text, insert.label)
                left -= 1
                yield insert

    def _text(self, seen: _Seen) -> str | None:
        said = None if self.now is None else self.now(seen.path)
        return seen.text if said is None else said

    def _insert(self, ground: Ground, gap: int, seen: _Seen, text: str, room: int) -> Insert | None:
        """Make the text of one file, of a large one the beginning; None where there is no room for it."""
        shown = self._shown(ground, seen, text, room)
        if not shown:
            return None
        exchange = ground.view.exchanges[seen.act.index]
        return Insert(before=gap, text=shown, label="file", sources=sources_of([exchange]), trust=Trust.OUTSIDE)

    def _shown(self, ground: Ground, seen: _Seen, text: str, room: int) -> str:
        """Give what is shown of a file: all of it, else as much of its beginning as has room; empty where nothing has."""
        handle = seen.act.call.origin
        shown = file_as_seen(seen.path, handle, text, 0)
        if ground.inserted(shown, "file") <= room:
            return shown
        kept, best = len(text), ""
        low = 0
        for _ in range(_TRIES):
            size = ground.inserted(shown, "file")
            if size <= room:
                low, best = kept, shown
            if 0 <= room - size <= room // 64:
                break
            kept = min(max(kept * room // max(size, 1), low), len(text) - 1)
            shown = file_as_seen(seen.path, handle, text[:kept], len(text) - kept)
        return best if low else ""


def _last_seen(ground: Ground, layout: Layout) -> Sequence[_Seen]:
    """Give the files of the exchanges that a layout leaves out, the one touched last first."""
    missing = frozenset(ground.missing(layout))
    found: dict[str, _Seen] = {}
    for act in ground.acts.all:
        if act.index in missing and not act.failed and not act.deed.run:
            for path in (*act.deed.read, *act.deed.wrote):
                found.pop(path, None)
                found[path] = _Seen(path, act, _content(act, path))
    return list(reversed(found.values()))


def _content(act: Act, path: str) -> str | None:
    """Give what an act shows of a file: all that it read or wrote of it; None where it changed a part."""
    if act.deed.read == (path,) and not act.deed.wrote and act.answer.reason is None:
        return act.said
    return act.written if act.whole else None
