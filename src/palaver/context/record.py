"""The record: the text that code writes, from structured data only, where exchanges are left out.

It lists, each with its handle: the human's messages, word for word; files, with the last action on each; the last commands, with their declared exit status;
the newest plan; and how to recall the rest. It quotes the newest summary that leaves, for which nothing else would be left. What an earlier compaction left
out is read from the log again, so that no record is made of a record.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter, sub
from typing import NamedTuple, TypeVar

from palaver.context.layout import Facts, Layout
from palaver.context.meter import Measure, media_in
from palaver.context.notes import head_and_tail, kinds
from palaver.context.tool_effects import effect
from palaver.ids import DialogId
from palaver.log import Handle, Run, ToolSpec, joined
from palaver.messages import Role, Speaker, ToolCallContent, ToolResultContent, thaw
from palaver.view import Exchange, Insert, load

T = TypeVar("T")

HUMAN_SHARE = 4
"""The human's messages have a quarter of the target: they say what is wanted, and little else may be lost for them."""

_LONGEST_SHARE = 4
"""One message of the human has at most a quarter of that; a longer one is shortened in the middle."""

_SHORT = 300
"""Characters of a long message where not all messages of the human fit: most are shorter (median 86 in recorded coding sessions), and a pasted text is longer."""

_READ = 16
"""Messages of the human that are read at once: one by one, the first record of a long log takes 25 ms more."""

_WORK_SHARE = 16
"""Files, commands and the plan have a sixteenth of the target each."""

_CARRIED_SHARE = 8
"""The newest summary that leaves has an eighth of the target."""

_CALLS = 200
"""Exchanges before the cut that are read for files, commands and the plan."""

_PARTS = 16
"""Parts of the log that the first line names, the newest; the view's omissions have a handle for each."""

_SPANS = 16
"""Numbers and spans by which they are listed, each some three tokens of every request; what lies between two messages of a span comes along when it is recalled."""


def note(layout: Layout) -> Insert:
    """Return one line for everything left out: how much, and where it is."""
    gone = _LeftOut.of(layout)
    text = f"[Earlier in this conversation: {gone.count} left out to fit the context; recall {gone.recall}]"
    return Insert(before=gone.place, text=text, label="notice", sources=gone.sources)


def record(layout: Layout) -> Insert:
    """Return the record of everything left out."""
    gone = _LeftOut.of(layout)
    lines = [f"[Record of {gone.count} left out to fit the context, made by code; recall {gone.recall}]"]
    for section in (_carried, _said_by_human, _worked):
        lines += section(layout, gone)
    return Insert(before=gone.place, text="\n".join(lines), label="record", sources=gone.sources)


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """What is left out, by this plan and by earlier compactions.

    Attributes:
        place: The index in the view of the exchange that follows the text.
        ranges: Ranges of whole indexes (`Facts.whole`), ascending.
        sources: Its entries that are read: the text is made of nothing else.
        count: How many messages, in words.
        recall: The first and last handle of each part of the log that has some of it.
    """

    place: int
    ranges: tuple[range, ...]
    sources: tuple[Run, ...]
    count: str
    recall: str

    @classmethod
    def of(cls, layout: Layout) -> _LeftOut:
        facts, past = layout.facts, layout.facts.past
        dropped = [gone for gone, _ in layout.dropped]
        ranges = [range(gone.start + past, gone.stop + past) for gone in dropped]
        if past and ranges and ranges[0].start == past:
            ranges[0] = range(ranges[0].stop)
        elif past:
            ranges.insert(0, range(past))
        runs = _runs(facts, ranges)
        parts = joined((*facts.older, *(run.span for run in runs)))
        messages = facts.older_messages + sum(
            facts.columns.messages[indexes.stop] - facts.columns.messages[indexes.start] for indexes in ranges
        )
        recall = ", ".join(
            f"{Handle(part.dialog, part.start)}"
            + (f" to {Handle(part.dialog, part.stop - 1)}" if part.stop > part.start + 1 else "")
            for part in parts[-_PARTS:]
        )
        if len(parts) > _PARTS:
            recall += f", and {len(parts) - _PARTS} older parts"
        return cls(
            dropped[-1].stop if dropped else 0,
            tuple(ranges),
            tuple(runs),
            f"{messages:,} messages" if messages != 1 else "1 message",
            recall,
        )

    def newest_first(self) -> Iterator[int]:
        """Iterate over its whole indexes, newest first."""
        for indexes in reversed(self.ranges):
            yield from reversed(indexes)

    def among(self, indexes: Sequence[int], values: Sequence[T]) -> list[T]:
        """Return the values of those of some ascending whole indexes that it contains."""
        inside: list[T] = []
        for span in self.ranges:
            inside += values[bisect_left(indexes, span.start) : bisect_left(indexes, span.stop)]
        return inside


def _runs(facts: Facts, ranges: Sequence[range]) -> Sequence[Run]:
    """Return the entries of ranges, one run for each part of the log. A message that stayed when older and newer ones left comes after both."""
    starts = [start for start, _ in facts.columns.parts]
    runs: list[tuple[tuple[object, ...], Run]] = []
    for span in _split(ranges, facts.past):
        first = max(bisect_right(starts, span.start) - 1, 0)
        edges = [span.start, *(at for at in starts[first + 1 :] if at < span.stop), span.stop]
        for number, (begin, end) in enumerate(pairwise(edges), start=first):
            inside = _ends(facts.whole, begin, end, ordered=end <= facts.past or not facts.past)
            if inside is None or number >= len(facts.columns.parts):
                continue
            part, (oldest, newest) = facts.columns.parts[number][1], inside
            run = Run(dialog=oldest.runs[0].dialog, start=oldest.runs[0].start, stop=newest.runs[-1].stop)
            if runs and runs[-1][0] == part:
                before = runs.pop()[1]
                run = Run(dialog=run.dialog, start=min(before.start, run.start), stop=max(before.stop, run.stop))
            runs.append((part, run))
    return [run for _, run in runs]


def _start(exchange: Exchange) -> int:
    return exchange.runs[0].start


def _split(ranges: Sequence[range], at: int) -> Iterator[range]:
    """Iterate over ranges, split at an index."""
    for span in ranges:
        edges = (span.start, at, span.stop) if span.start < at < span.stop else (span.start, span.stop)
        yield from (range(start, stop) for start, stop in pairwise(edges))


def _ends(whole: Sequence[Exchange], begin: int, end: int, *, ordered: bool) -> tuple[Exchange, Exchange] | None:
    """Return the first and the last exchange of a range that are in the log. Not ordered: what stayed in an earlier compaction may come late."""
    if not ordered:
        said = [exchange for exchange in whole[begin:end] if exchange.runs]
        return (min(said, key=_start), max(said, key=_start)) if said else None
    while begin < end and not whole[begin].runs:
        begin += 1
    while end > begin and not whole[end - 1].runs:
        end -= 1
    return (whole[begin], whole[end - 1]) if begin < end else None


# --- what the human said --------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    text: str
    size: int


def _said_by_human(layout: Layout, gone: _LeftOut) -> list[str]:
    """Quote the human's messages within their share: the first of the dialog, then the newest. List the others by handle.

    Long ones are shortened before any leaves. The room that remains shows them whole: the first, then the newest.
    """
    facts, room = layout.facts, layout.target // HUMAN_SHARE
    columns, whole, most = facts.columns, facts.whole, room // _LONGEST_SHARE
    humans = gone.among(columns.humans, columns.humans)
    first = [*facts.opening, *(whole[index] for index in humans[:1])][:1]
    if first and not (_opens(layout, first[0]) and _quoted(facts, first[0], most).short.size <= room):
        first = []
    newest_first = chain((whole[index] for index in reversed(humans)), facts.opening)
    count = len(humans) + len(facts.opening)
    quoted = []
    for exchange in _read(chain(first, islice(newest_first, count - len(first)))):
        quote = _quoted(facts, exchange, most)
        if quote.short.size > room:
            break
        room -= quote.short.size
        quoted.append(quote)
    lines = []
    for short, long in quoted:
        line = long if long.size - short.size <= room else short
        room -= line.size - short.size
        lines.append(line.text)
    runs = [*(exchange.source.runs[0] for exchange in facts.opening), *gone.among(columns.humans, columns.said)]
    older = [*filter(None, runs[len(first) : count + len(first) - len(quoted)])]
    if not lines and not older:
        return []
    listed = [f"(earlier messages of the user: recall {_listed(older)})"] if older else []
    return ["The user said, oldest first:", *lines[: len(first)], *listed, *reversed(lines[len(first) :])]


def _opens(layout: Layout, exchange: Exchange) -> bool:
    """Return whether no message of the human that stays in the view is older."""
    humans, start = layout.humans, 0
    for hole in (*(gone for gone, _ in layout.dropped), range(layout.end, layout.end)):
        at = bisect_left(humans, start)
        if at < len(humans) and humans[at] < hole.start:
            return layout.facts.place(exchange) < layout.facts.place(layout.view.exchanges[humans[at]])
        start = hole.stop
    return True


def _read(exchanges: Iterator[Exchange]) -> Iterator[Exchange]:
    """Iterate over exchanges, and read some of them at once."""
    while some := list(islice(exchanges, _READ)):
        load(some)
        yield from some


class _Quote(NamedTuple):
    """One message of the human as a line of the record: in about `_SHORT` characters, and as long as one may be."""

    short: _Line
    long: _Line


def _quoted(facts: Facts, exchange: Exchange, most: int) -> _Quote:
    """Return one message of the human as lines of at most so many tokens."""
    made: Callable[[], _Quote] = lambda: _quote(exchange, facts.meter, most)  # noqa: E731
    return facts.meter.remember(exchange, ("human", most), made)


def _quote(exchange: Exchange, meter: Measure, most: int) -> _Quote:
    words = [_words(block.content) for block in exchange.blocks() if block.speaker is Speaker.HUMAN]
    text = "\n".join(filter(None, words))
    keep = len(text) * most // size if (size := meter.text(text)) > most else len(text)

    def line(characters: int) -> _Line:
        short = head_and_tail(exchange.first, text, characters)
        line = f"- {text if keep == len(text) and len(text) <= len(short) else short} ({exchange.first})"
        return _Line(line, meter.text(line))

    long = line(keep)
    return _Quote(line(_SHORT) if keep > _SHORT else long, long)


def _words(content: object) -> str:
    text = getattr(content, "content", "")
    media = tuple(media_in(content))  # type: ignore[arg-type]
    return text if isinstance(text, str) and text else f"[{kinds(media)}]" if media else ""


def _listed(runs: Sequence[tuple[DialogId, int, int]]) -> str:
    """Return the first entries of runs, oldest first, as short as `recall` reads them: after the name of a dialog at most `_SPANS` numbers and spans, split where more lies between two than elsewhere."""
    return "; ".join(
        f"{Handle(dialog, 0)}"[:-1] + ",".join(_numbers(sorted(map(itemgetter(1), group))))
        for dialog, group in groupby(runs, key=itemgetter(0))
    )


def _numbers(seqs: Sequence[int]) -> Iterator[str]:
    gaps = [*map(sub, seqs[1:], seqs)]
    least = 1 if len(seqs) <= _SPANS else min(gaps)  # where all are as wide, splits say nothing
    widest = sorted(range(len(gaps)), key=gaps.__getitem__)[1 - _SPANS :]
    edges = [0, *sorted(at + 1 for at in widest if gaps[at] > least), len(seqs)]
    for start, stop in pairwise(edges):
        yield f"{seqs[start]}" if stop == start + 1 else f"{seqs[start]}-{seqs[stop - 1]}"


# --- what was done --------------------------------------------------------------------------------------------------------


_FILES, _COMMANDS, _PLAN = "Files, newest first:", "Commands, newest first:", "The newest plan:"


class _Act(NamedTuple):
    """What a call did, as a line of the record.

    Attributes:
        section: The title of its section.
        key: A path, a command's handle, or empty for a plan. Of two lines with one key the newer stays.
        line: The line.
    """

    section: str
    key: str
    line: _Line


@dataclass(slots=True)
class _LinesWithin:
    """Lines within a room, newest first; the first line that does not fit ends it."""

    room: int
    lines: list[str] = field(default_factory=list)
    full: bool = False

    def add(self, line: _Line) -> None:
        self.full = self.full or line.size > self.room
        if not self.full:
            self.room -= line.size
            self.lines.append(line.text)


def _worked(layout: Layout, gone: _LeftOut) -> list[str]:
    """List files with the last action on each, the last commands with their declared status, and the newest plan."""
    room = layout.target // _WORK_SHARE
    sections = {title: _LinesWithin(room) for title in (_FILES, _COMMANDS, _PLAN)}
    tools = {tool.name: tool for tool in layout.view.tools if tool.reads or tool.writes}
    seen: set[tuple[str, str]] = set()
    for _, index in zip(range(_CALLS), gone.newest_first(), strict=False):
        for act in reversed(_acts(layout, index, tools, room)):
            if (act.section, act.key) not in seen:
                seen.add((act.section, act.key))
                sections[act.section].add(act.line)
        if sections[_FILES].full and sections[_COMMANDS].full and (_PLAN, "") in seen:
            break
    return [line for title, section in sections.items() if section.lines for line in (title, *section.lines)]


def _within(meter: Measure, text: str, most: int, handle: Handle | None) -> str:
    size = meter.text(text)
    return text if size <= most else head_and_tail(handle, text, len(text) * most // size)


def _acts(layout: Layout, index: int, tools: Mapping[str, ToolSpec], room: int) -> Sequence[_Act]:
    """Return what the calls of an exchange did, by its whole index."""
    facts = layout.facts
    exchange = facts.whole[index]
    if exchange.role is not Role.ASSISTANT:
        return ()
    if index >= facts.past:
        facts.load(index - facts.past)
    made: Callable[[], Sequence[_Act]] = lambda: tuple(_read_acts(exchange, tools, facts.meter, room))  # noqa: E731
    return facts.meter.remember(exchange, ("acts", room), made)


def _read_acts(exchange: Exchange, tools: Mapping[str, ToolSpec], meter: Measure, room: int) -> Iterator[_Act]:
    results = {block.content.id: block for block in exchange.blocks() if isinstance(block.content, ToolResultContent)}

    def act(section: str, key: str, text: str) -> _Act:
        return _Act(section, key, _Line(text, meter.text(text + "\n")))

    for block in exchange.blocks():
        call = block.content
        if not isinstance(call, ToolCallContent):
            continue
        done, answer = effect(call.name, call.args, tools.get(call.name)), results.get(call.id)
        where = block.origin if answer is None else answer.origin
        for path in (*done.reads, *done.writes):
            yield act(_FILES, path, f"- {path}: {'written' if path in done.writes else 'read'} ({where})")
        if done.command:
            about = ", ".join(filter(None, ("" if answer is None else _status(answer.content), str(where))))
            yield act(_COMMANDS, str(where), f"- {_within(meter, done.command, room // 2, where)} ({about})")
        if done.plan:
            plan = json.dumps(thaw(call.args), ensure_ascii=False)
            yield act(_PLAN, "", f"{_within(meter, plan, room * 3 // 4, where)} ({where})")


_CODES = ("exit_code", "exitCode", "returncode")
"""Keys of a result's metadata for an exit code."""


def _status(result: object) -> str:
    """Return the status that was declared with a result: an exit code, or that it is an error; empty where neither was."""
    if not isinstance(result, ToolResultContent):
        return ""
    code = next((result.metadata[key] for key in _CODES if key in result.metadata), None)
    if isinstance(code, int):
        return f"exit {code}"
    return "failed" if result.is_error else ""


# --- what earlier summaries said ------------------------------------------------------------------------------------------


def _carried(layout: Layout, gone: _LeftOut) -> list[str]:
    """Quote the newest summary that leaves: an imported one, one that was passed to `fit`, or one that is too large to stay."""
    columns = layout.facts.columns
    summaries = gone.among(columns.summaries, columns.summaries)
    if not summaries:
        return []
    exchange = layout.facts.whole[summaries[-1]]
    text = "\n".join(filter(None, (_words(block.content) for block in exchange.blocks())))
    room = layout.target // _CARRIED_SHARE
    where = "" if exchange.first is None else f" ({exchange.first})"
    return [f"Summary of earlier messages{where}:", _within(layout.meter, text, room, exchange.first)]
