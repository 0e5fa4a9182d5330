"""Bring back the files that were worked on last, when the exchanges that showed them leave the view.

(Claude Code re-reads up to five files of 5,000 tokens each, 50,000 in all, after it has compacted.) What a file says is taken from the ledger,
where somebody can read files; else from the log: what was last read of it, or written to it, if nothing may have changed it since. A part that was
read is told as that part. Either way the text becomes part of the plan, so a past view never depends on the disk.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.record.carried import sources_of
from palaver.context.texts import file_as_seen
from palaver.context.work import Act
from palaver.context.work.acts import asked_for
from palaver.context.work.deeds import deed
from palaver.context.work.paths import ends_of, normal, said_by, same_file
from palaver.context.work.reach import ANYTHING, Reach, reach_of, reach_of_words
from palaver.context.work.shown import says_refused
from palaver.log import Handle, gaps, part_of
from palaver.messages import Role, TextContent, ToolCallContent, Trust
from palaver.view import Exchange, Insert, Reason, View
from palaver.view.spelling import NEWEST

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
    missing, broken = frozenset(ground.missing(layout)), _breaks(ground.view)
    # what came since it was made smaller stands behind the files, and changes nothing in front of it
    exchanges = ground.view.exchanges[: layout.at + 1 if layout.at >= 0 else None]
    files = _Files(by_name=any(isinstance(block.content, ToolCallContent) for x in exchanges for block in x.blocks()))
    for index, exchange in enumerate(exchanges):
        if index in broken:
            files.reached(ANYTHING)
        # the results of the newest response may still come, and what stands in front of it is to stay: its calls count as they do without one
        acts = () if index == layout.at and exchange.role is Role.ASSISTANT else ground.acts.at(index)
        files.happened(exchange, acts, gone=index in missing)
    return files.newest()


_NO_DEEDS = frozenset({Reason.DUPLICATE_RESULT, Reason.EMPTY, Reason.NOT_SHOWN, Reason.SUPERSEDED})
"""Why entries are left out that did nothing which the view does not show."""


def _breaks(view: View) -> frozenset[int]:
    """Give the exchanges in front of which something is missing: entries that are left out without a text, or that the dialog does not hold.

    Where another dialog goes on, the one before may have gone on besides, over the same files.
    """
    between = gaps(view.shared)
    parts = {part_of(Handle(span.dialog, span.start), between): place for place, span in enumerate(view.shared)}

    def place(handle: Handle) -> tuple[int, int]:
        return parts.get(part_of(handle, between), len(parts)), handle.seq

    left_out = [gone.span for gone in view.omissions if gone.span is not None and gone.reason not in _NO_DEEDS]
    missing = sorted(place(Handle(span.dialog, span.start)) for span in left_out)
    found: set[int] = set()
    passed, part = 0, -1
    for index, exchange in enumerate(view.exchanges):
        if exchange.first is None:
            continue
        here = place(exchange.first)
        count = bisect_left(missing, here)
        if count > passed or here[0] != part:
            found.add(index)
        passed, part = max(count, passed), here[0]
    return frozenset(found)


class _Files:
    """What is known of files while a conversation is gone through."""

    def __init__(self, *, by_name: bool = True) -> None:
        """Know none.

        Args:
            by_name: Whether the model calls tools by their names, so that code in its words is no call.
        """
        self._by_name = by_name
        self._seen: dict[str, _Seen] = {}
        # the same by what their paths say, and by each end of that, for of many files few have one
        self._at: dict[str, dict[str, None]] = {}
        self._ending: dict[str, dict[str, None]] = {}
        # those of which it is known what they say
        self._told: set[str] = set()

    def newest(self) -> Sequence[_Seen]:
        """Give the files, the one touched last first."""
        return list(reversed(self._seen.values()))

    def happened(self, exchange: Exchange, acts: Sequence[Act], *, gone: bool) -> None:
        """Take what was said and done in an exchange.

        Args:
            exchange: The exchange.
            acts: Its calls with their results.
            gone: Whether it leaves the view.
        """
        if exchange.derived or (exchange.observes and not acts):  # it stands for calls of which nothing is known here
            self.reached(ANYTHING)
        elif not acts and exchange.role is not Role.ASSISTANT:
            self.reached(
                reach_of_words(
                    "\n".join(c.content for b in exchange.blocks() if isinstance(c := b.content, TextContent))
                )
            )
        for act in acts:
            self.take(act, gone=gone)
        if len(acts) > 1:
            self._at_once(acts)
        for call in _unanswered(exchange, acts):
            self.reached(reach_of(call, deed(call)))
        self._in_words(exchange)

    def _at_once(self, acts: Sequence[Act]) -> None:
        """Forget what one call of a response showed and another may have changed: they may have run at once, in any order."""
        reaches = [reach_of(act.content, act.deed) for act in acts]
        everything = sum(reach.everything for reach in reaches)
        names = Counter(name for reach in reaches for name in reach.names)
        folders = [reach for reach in reaches if reach.folders]
        for act, own in zip(acts, reaches, strict=True):
            for path in map(normal, () if act.deed.run else (*act.deed.read, *act.deed.wrote)):
                name = posixpath.basename(path)
                others = everything - own.everything or names[name] - (name in own.names)
                if others or any(reach.has(path) for reach in folders):
                    self.reached(Reach(names=frozenset({name})))

    def _in_words(self, exchange: Exchange) -> None:
        """Take a call of a text protocol, whether anything is known to answer it or not."""
        asked = asked_for(exchange)
        if asked is None:
            return
        block, call = asked
        text = block.content.content if isinstance(block.content, TextContent) else ""
        named = any(True for _ in NEWEST.action.finditer(text)) or NEWEST.json.search(text) is not None
        if named or not self._by_name:
            once = sum(1 for pattern in (NEWEST.action, NEWEST.json) for _ in pattern.finditer(text)) == 1
            self.reached(reach_of(call, deed(call)) if once else ANYTHING)

    def take(self, act: Act, *, gone: bool) -> None:
        """Take what a call did.

        Args:
            act: The call with its result.
            gone: Whether it leaves the view. What stays shows by itself what it did, and the file before that is no more.
        """
        reach, done = reach_of(act.content, act.deed), act.deed
        aside = _ASIDE.search(act.said)
        if aside is not None:  # what a harness says beside a result is no part of it
            self.reached(reach_of_words(act.said[aside.start() :]))
        if done.run or act.failed or reach.far:
            self.reached(reach)  # of what failed, nobody knows how far it came
        if done.read and not act.failed and says_refused(act.words):
            self.reached(Reach(names=frozenset(posixpath.basename(normal(path)) for path in done.read)))
        if not done.run and not act.failed:
            for path in map(normal, done.wrote):  # by another spelling it may be the same
                for each in self._maybe(path):
                    self._forget(each)
            for path in (*done.read, *done.wrote):
                self._touched(path, act, gone=gone, known=not reach.everything)

    def reached(self, reach: Reach) -> None:
        """Forget what files said that something may have changed."""
        if reach.far:
            paths = [path for path in self._told if reach.has(path)]
        else:
            paths = [path for name in reach.names for path in self._ending.get(name, ())]
        for path in paths:
            self._forget(path)

    def _forget(self, path: str) -> None:
        if path in self._told:
            self._told.discard(path)
            self._seen[path] = replace(self._seen[path], text=None)

    def _lose(self, path: str) -> _Seen:
        for key, paths in self._places(path):
            del paths[key][path]
        self._told.discard(path)
        return self._seen.pop(path)

    def _places(self, path: str) -> Iterator[tuple[str, dict[str, dict[str, None]]]]:
        """Give under which keys a path is found, and where."""
        bare = said_by(path)
        yield bare, self._at
        for end in ends_of(bare):
            yield end, self._ending

    def _maybe(self, path: str) -> Sequence[str]:
        """Give the paths that may be of the same file as another one."""
        bare = said_by(path)
        ends = (each for end in ends_of(bare) for each in self._at.get(end, ()))
        return list(dict.fromkeys((*self._ending.get(bare, ()), *ends)))

    def _touched(self, named: str, act: Act, *, gone: bool, known: bool) -> None:
        path = normal(named)
        before = [each for each in self._maybe(path) if same_file(each, path)]
        if not gone:
            for each in before:
                self._forget(each)
            return
        was = {each: self._lose(each) for each in before}
        seen = _as_shown(named, act) if known else _Seen(named, act, None, "")
        whole = next((each for each, old in was.items() if old.text is not None and not old.part), None)
        if whole is not None and named not in act.deed.wrote and (seen.text is None or seen.part):
            path, seen = whole, was[whole]  # a look at a part of it changed nothing
        self._seen[path] = seen
        for key, paths in self._places(path):
            paths.setdefault(key, {})[path] = None
        if seen.text is not None:
            self._told.add(path)


def _unanswered(exchange: Exchange, acts: Sequence[Act]) -> Iterator[ToolCallContent]:
    """Give the calls of an exchange that have no result: nobody knows how far they came."""
    answered = {act.call.origin for act in acts}
    for block in exchange.turns[0].blocks:
        if isinstance(block.content, ToolCallContent) and block.origin not in answered:
            yield block.content


_ASIDE = re.compile("<(?:system-reminder|environment_details)>|[Tt]he user said:")

_CUT = re.compile(
    r"truncated|clipped|elided|abridged|only part of|more lines|lines? (?:omitted|remain|not shown|above|below)|use .{0,20}offset",
    re.IGNORECASE,
)
_EDGE = 300
"""Characters at either end of an output in which a tool says that it did not show all."""


def _as_shown(path: str, act: Act) -> _Seen:
    """Give what an act shows of a file; no text where it changed a part of it, or tells something about it."""
    if act.whole:
        return _Seen(path, act, act.written if act.shows else None, "")
    if not act.reads or act.answer.reason is not None:
        return _Seen(path, act, None, "")
    said = act.words
    if not said.strip():  # a picture
        return _Seen(path, act, None, "")
    cut = _CUT.search(said[:_EDGE]) or _CUT.search(said[-_EDGE:])
    return _Seen(path, act, said, act.part or ("as much as was shown" if cut else ""))
