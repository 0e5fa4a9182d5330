"""Bring back the files that were worked on last, when the exchanges that showed them leave the view.

(Claude Code re-reads up to five files of 5,000 tokens each, 50,000 in all, after it has compacted.) What a file says is taken from the ledger,
where somebody can read files; else from the log: what was last read of it, or written to it, if nothing may have changed it since. A part that was
read is told as that part. Either way the text becomes part of the plan, so a past view never depends on the disk.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.record.carried import sources_of
from palaver.context.texts import file_as_seen
from palaver.context.work import Act
from palaver.context.work.deeds import deed
from palaver.context.work.reach import ANYTHING, Reach, normal, reach_of, same_file
from palaver.messages import ToolCallContent, Trust
from palaver.view import Exchange, Insert

__all__ = ["Rehydrating"]

_SHARE = 6
"""At most a sixth of the room is for files: of the 167,000 tokens of Claude Code's, all five files with their 5,000."""

_TRIES = 8
"""How often the beginning of a file is tried that has as many tokens as there is room for."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was last seen of a file.

    Attributes:
        path: Its path, as it was named last.
        act: What showed it, or touched it last.
        text: What it said; None where that is not known any more.
        part: Which part of it that is; empty for all of it.
    """

    path: str
    act: Act
    text: str | None
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehydrating(Beside):
    """Stands for exchanges with what another stand-in says, and the newest of their files.

    Attributes:
        files: How many files.
        each: The most of one file, in the unit of the measure.
        most: The most of all of them.
        now: Gives what a file says now, or None where it is not there. Where nobody can read files, the log says what was seen.
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
        return seen.text if self.now is None else self.now(seen.path)

    def _insert(self, ground: Ground, gap: int, seen: _Seen, text: str, room: int) -> Insert | None:
        """Make the text of one file, of a large one the beginning; None where there is no room for it."""
        shown = self._shown(ground, seen, text, room)
        if not shown:
            return None
        exchange = ground.view.exchanges[seen.act.index]
        return Insert(before=gap, text=shown, label="file", sources=sources_of([exchange]), trust=Trust.OUTSIDE)

    def _shown(self, ground: Ground, seen: _Seen, text: str, room: int) -> str:
        """Give what is shown of a file: all of it, else as much of its beginning as has room; empty where nothing has."""
        handle, part = seen.act.call.origin, seen.part if self.now is None else ""
        shown = file_as_seen(seen.path, handle, text, 0, part)
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
            shown = file_as_seen(seen.path, handle, text[:kept], len(text) - kept, part)
        return best if low else ""


def _last_seen(ground: Ground, layout: Layout) -> Sequence[_Seen]:
    """Give the files of the exchanges that a layout leaves out, the one touched last first."""
    missing = frozenset(ground.missing(layout))
    files = _Files()
    upto = (
        layout.at + 1 if layout.at >= 0 else None
    )  # what came since stands behind the files, and changes nothing in front of it
    for index, exchange in enumerate(ground.view.exchanges[:upto]):
        acts = ground.acts.at(index)
        if exchange.derived:  # it stands for calls of which nothing is known here
            files.reached(ANYTHING)
        for act in acts:
            files.take(act, gone=index in missing)
        for call in _unanswered(exchange, acts):
            files.reached(reach_of(call, deed(call)))
    return files.newest()


class _Files:
    """What is known of files while a conversation is gone through."""

    def __init__(self) -> None:
        """Know none."""
        self._seen: dict[str, _Seen] = {}
        # the same by the last parts of their paths, for of many files few have one; and those of which it is known what they say
        self._named: dict[str, dict[str, None]] = {}
        self._told: set[str] = set()

    def newest(self) -> Sequence[_Seen]:
        """Give the files, the one touched last first."""
        return list(reversed(self._seen.values()))

    def take(self, act: Act, *, gone: bool) -> None:
        """Take what a call did.

        Args:
            act: The call with its result.
            gone: Whether it leaves the view. What stays shows by itself what it did, and the file before that is no more.
        """
        reach, done = reach_of(act.content, act.deed), act.deed
        if done.run or reach.everything:
            self.reached(reach)  # of a command that failed, nobody knows how far it came
        if not done.run and not act.failed:
            for path in (*done.read, *done.wrote):
                self._touched(path, act, gone=gone, known=not reach.everything)

    def reached(self, reach: Reach) -> None:
        """Forget what files said that something may have changed."""
        if reach.far:
            paths = [path for path in self._told if reach.has(path)]
        else:
            paths = [path for name in reach.names for path in self._named.get(name, ())]
        for path in paths:
            self._forget(path)

    def _forget(self, path: str) -> None:
        if path in self._told:
            self._told.discard(path)
            self._seen[path] = replace(self._seen[path], text=None)

    def _touched(self, named: str, act: Act, *, gone: bool, known: bool) -> None:
        path = normal(named)
        name = posixpath.basename(path)
        paths = self._named.setdefault(name, {})
        before = [each for each in paths if same_file(each, path)]
        if not gone:
            for each in before:
                self._forget(each)
            return
        was = {each: self._seen.pop(each) for each in before}
        for each in before:
            del paths[each]
            self._told.discard(each)
        seen = _as_shown(named, act) if known else _Seen(named, act, None, "")
        whole = next((each for each, old in was.items() if old.text is not None and not old.part), None)
        if whole is not None and named not in act.deed.wrote and (seen.text is None or seen.part):
            path, seen = whole, was[whole]  # a look at a part of it changed nothing
        self._seen[path] = seen
        paths[path] = None
        if seen.text is not None:
            self._told.add(path)


def _unanswered(exchange: Exchange, acts: Sequence[Act]) -> Iterator[ToolCallContent]:
    """Give the calls of an exchange that have no result: nobody knows how far they came."""
    answered = {act.call.origin for act in acts}
    for block in exchange.turns[0].blocks:
        if isinstance(block.content, ToolCallContent) and block.origin not in answered:
            yield block.content


_SEARCHES = re.compile(r"grep|glob|search|find|list|tree|outline|symbol|diff|stat|\bls\b|count|exists", re.IGNORECASE)
"""Tools that tell something about a file and not what it says."""

_ASKS = ("pattern", "query", "regex", "glob", "search", "symbol")
"""Arguments of such tools."""

_CUT = re.compile(
    r"truncated|more lines|lines? (?:omitted|remain|not shown|above|below)|use .{0,20}offset", re.IGNORECASE
)
_EDGE = 300
"""Characters at either end of an output in which a tool says that it did not show all."""


def _as_shown(path: str, act: Act) -> _Seen:
    """Give what an act shows of a file; no text where it changed a part of it, or tells something about it."""
    if act.whole:
        return _Seen(path, act, act.written, "")
    args, deed = act.content.args, act.deed
    tells = _SEARCHES.search(act.tool) or any(args.get(name) is not None for name in _ASKS)
    if deed.read != (path,) or deed.wrote or tells or act.answer.reason is not None:
        return _Seen(path, act, None, "")
    said = act.said
    cut = _CUT.search(said[:_EDGE]) or _CUT.search(said[-_EDGE:])
    return _Seen(path, act, said, act.part or ("as much as was shown" if cut else ""))
