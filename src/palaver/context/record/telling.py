"""Telling: facts as the text that the model reads, within a budget.

What matters most is taken first, and the newest of each kind before the older; the text itself is in a fixed order, one fact on a line,
each with the handle of where it comes from. The same facts and budget give the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from palaver.context.record.facts import EARLIER, Command, Facts, File, Said, Trouble
from palaver.log import Handle

__all__ = ["HEADINGS", "RUNNING", "counts_rules", "tells", "told", "untold"]

_ASK = 600
_LINE = 240
_GOAL = 1_200
_FEW = 6
"""Lines that are told before it is told where those were said that are not."""

RUNNING = "The summary so far, by a model, which has no room here:"
"""The heading above the beginning of a summary that had to leave although nothing took its place."""

HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        "goal": "Goal, in the user's words:",
        "rules": "The user said:",
        "asks": "Later asks, in the user's words:",
        "summaries": "Earlier summaries, by others:",
        "files": "Files:",
        "commands": "Commands and how they ended:",
        "troubles": "Errors, open:",
        "closed": "Errors, since closed:",
        "unanswered": "Calls without a result:",
        "last": "Last words of the model:",
        "running": RUNNING,
    }
)
"""The heading of each kind of facts."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and its lines.

    Attributes:
        heading: The heading.
        lines: The lines, the oldest first.
        rank: How early its lines are taken; a lower one first.
        first: How many of the newest are taken at that rank; the rest comes after everything.
        more: How many older facts are not carried.
        places: The handle of each line, where those that are not told are named by theirs, or empty.
    """

    heading: str
    lines: tuple[str, ...]
    rank: int
    first: int
    more: int = 0
    places: tuple[str, ...] = ()

    def head(self, untold: Sequence[int], *, placed: bool = False) -> str:
        """Give the heading, with how many of its lines are not told.

        Args:
            untold: Their indexes.
            placed: True to say where they were said, and where they are listed.
        """
        missing = len(untold) + self.more
        if not missing:
            return self.heading
        where = ""
        if placed and self.places:
            places = [self.places[index] for index in untold if self.places[index]]
            where = f", said from{_at(places[0])} to{_at(places[-1])}" if places else ""
            where += "; the list of constraints has all"
        return f"{self.heading} (+ {missing} more{where})"


def told(facts: Facts, head: str, room: int, count: Callable[[str], int]) -> str:
    """Tell facts.

    Args:
        facts: The facts.
        head: The first line: what this is, and what it stands for.
        room: The tokens that the text may have; it has them even if only the head has a place in it.
        count: Counts tokens.
    """
    sections = tuple(section for section in _sections(facts) if section.lines)
    free = room - count(head)
    taken: dict[tuple[int, int], str] = {}
    opened: set[int] = set()
    for number, index in _order(sections):
        line = sections[number].lines[index]
        cost = count(f"\n{line}") + (0 if number in opened else count(f"\n{sections[number].heading} (+ 000 more)"))
        if cost <= free:
            free -= cost
            opened.add(number)
            taken[number, index] = line
    text = "\n".join([head, *_written(sections, taken)])
    while taken and count(text) > room:  # pieces can count less than their whole
        taken.popitem()
        text = "\n".join([head, *_written(sections, taken)])
    while (longer := "\n".join([head, *_written(sections, taken, placed=True)])) != text:
        if count(longer) <= room:
            return longer
        if len(taken) <= _FEW:
            break
        taken.popitem()
    return text


def untold(text: str) -> str:
    """Give a text that was told without the summary that had no room: another one has taken its place."""
    lines = text.split("\n")
    if RUNNING not in lines:
        return text
    place = lines.index(RUNNING)
    return "\n".join([*lines[:place], *lines[place + 2 :]])


def tells(text: str, rule: Said) -> bool:
    """Tell whether a text has the line of a constraint, whatever entry it names."""
    return f'- "{" ".join(rule.text.split())[: _LINE * 2]}"' in text


def counts_rules(text: str) -> bool:
    """Tell whether a text says how many constraints it has no room for."""
    return f"{HEADINGS['rules']} (+ " in text


def _order(sections: Sequence[_Section]) -> Iterator[tuple[int, int]]:
    """Give section and line in the order in which they are taken."""
    ranked = sorted(range(len(sections)), key=lambda number: sections[number].rank)
    for number in ranked:
        lines = sections[number].lines
        yield from (
            (number, index) for index in range(len(lines) - 1, max(len(lines) - sections[number].first, 0) - 1, -1)
        )
    for number in ranked:
        lines = sections[number].lines
        yield from ((number, index) for index in range(max(len(lines) - sections[number].first, 0) - 1, -1, -1))


def _written(sections: Sequence[_Section], taken: dict[tuple[int, int], str], *, placed: bool = False) -> Iterator[str]:
    for number, section in enumerate(sections):
        lines = [taken[number, index] for index in range(len(section.lines)) if (number, index) in taken]
        if lines:
            untold = [index for index in range(len(section.lines)) if (number, index) not in taken]
            yield section.head(untold, placed=placed)
            yield from lines


def _sections(facts: Facts) -> Iterator[_Section]:
    """Give the sections in the order in which they are told."""
    more = facts.more
    goal = () if facts.goal is None else (_said(facts.goal, _GOAL),)
    yield _Section(HEADINGS["goal"], goal, 0, 1)
    rules = tuple(_said(said, _LINE * 2) for said in facts.rules)
    places = tuple(said.at for said in facts.rules)
    yield _Section(HEADINGS["rules"], rules, 1, len(rules), more.get("rules", 0), places)
    asks = tuple(_said(said, _ASK) for said in facts.asks)
    yield _Section(HEADINGS["asks"], asks, 2, 3, more.get("asks", 0))
    summaries = tuple(_said(said, _GOAL * 2) for said in facts.summaries)
    running = () if facts.running is None else (_said(facts.running, _GOAL * 2),)
    yield _Section(RUNNING, running, 4, 1)
    yield _Section(HEADINGS["summaries"], summaries, 4, 1, more.get("summaries", 0))
    yield _Section(HEADINGS["files"], tuple(map(_file, facts.files)), 6, 16, more.get("files", 0))
    yield _Section(HEADINGS["commands"], tuple(map(_command, facts.commands)), 8, 8, more.get("commands", 0))
    open_, closed = (tuple(each for each in facts.troubles if bool(each.closed) is done) for done in (False, True))
    yield _Section(HEADINGS["troubles"], tuple(map(_trouble, open_)), 3, 8, more.get("troubles", 0))
    yield _Section(HEADINGS["closed"], tuple(map(_trouble, closed)), 9, 4)
    unanswered = tuple(_said(said, _LINE) for said in facts.unanswered)
    yield _Section(HEADINGS["unanswered"], unanswered, 5, 4, more.get("unanswered", 0))
    yield _Section(HEADINGS["last"], () if facts.last is None else (_said(facts.last, _ASK),), 7, 1)


def _said(said: Said, longest: int) -> str:
    """Quote words on one line; of longer ones the beginning."""
    line = " ".join(said.text.split())
    rest = said.rest + max(len(line) - longest, 0)
    times = f" ({said.times:,} times)" if said.times > 1 else ""
    return f'- "{line[:longest]}"{f" [+ {rest:,} characters]" if rest else ""}{times}{_at(said.at)}'


def _file(file: File) -> str:
    did = [f"{verb}{_at(at)}" for verb, at in (("wrote", file.wrote), ("read", file.read)) if at]
    return f"- {file.path}: {', '.join(did)}"


def _command(command: Command) -> str:
    times = f" ({command.times} times)" if command.times > 1 else ""
    return f"- {command.run[:_LINE]}: {command.ended}{times}{_at(command.at)}"


def _trouble(trouble: Trouble) -> str:
    end = f", closed{_at(trouble.closed)}" if trouble.closed else ""
    return f"- {trouble.of[:_LINE]}: {trouble.what[:_LINE]}{_at(trouble.at)}{end}"


def _at(place: str) -> str:
    """Give a handle in its printed form."""
    return f" [{Handle.parse(place)}]" if place and place != EARLIER else ""
