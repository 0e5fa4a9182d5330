"""Reading back: the facts of a record from its text, where the text is all that is left of it.

Whoever keeps only the list that `fit` gave back keeps what records say, and not the facts beside them. So their lines are read again. Handles are not:
they counted the messages of another list. What was told in part comes back in part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from palaver.context.record.facts import EARLIER, Command, Facts, File, Said, Trouble
from palaver.context.record.telling import HEADINGS

__all__ = ["facts_of"]

_HANDLE = r"(?: \[[0-9a-f]{4,32}:\d+(?::\d+)?\])?"
_MORE = re.compile(r" \(\+ (\d[\d,]*) more")
_SAID = re.compile(rf'- "(.*)"(?: \[\+ ([\d,]+) characters\])?(?: \(([\d,]+) times\))?{_HANDLE}')
_FILE = re.compile(rf"- (.+): ((?:wrote|read){_HANDLE}(?:, read{_HANDLE})?)")
_COMMAND = re.compile(rf"- (.+): (ok|failed|no result|exit -?\d+)(?: \((\d+) times\))?{_HANDLE}")
_TROUBLE = re.compile(rf"(.*?){_HANDLE}(, closed{_HANDLE})?")


def facts_of(text: str) -> Facts:
    """Give the facts that a record or a notice tells."""
    lines: dict[str, list[str]] = {}
    more: dict[str, int] = {}
    kind = ""
    for line in text.splitlines():
        if (found := _heading(line)) is not None:
            kind, count = found
            if count:
                more[kind] = more.get(kind, 0) + count
        elif kind and line.startswith("- ") and len(line) <= _LONGEST:
            lines.setdefault(kind, []).append(line)
        else:
            kind = ""
    said = {kind: tuple(_said(each)) for kind, each in lines.items()}
    return Facts(
        goal=next(iter(said.get("goal", ())), None),
        asks=said.get("asks", ()),
        rules=said.get("rules", ()),
        files=tuple(_files(lines.get("files", []))),
        commands=tuple(_commands(lines.get("commands", []))),
        troubles=tuple(each for kind in ("closed", "troubles") for each in _troubles(lines.get(kind, []))),
        unanswered=said.get("unanswered", ()),
        summaries=said.get("summaries", ()) + said.get("running", ()),
        last=next(iter(said.get("last", ())), None),
        more=MappingProxyType({name: count for name, count in more.items() if name in _COUNTED}),
    )


_LONGEST = 8_000
"""Characters of a line that a record may have told."""

_COUNTED = frozenset({"asks", "rules", "files", "commands", "troubles", "unanswered", "summaries"})
_KINDS: Mapping[str, str] = MappingProxyType({heading: kind for kind, heading in HEADINGS.items()})


def _heading(line: str) -> tuple[str, int] | None:
    """Give the kind of facts that a line is the heading of, and how many it says are not told."""
    heading, colon, rest = line.partition(":")
    kind = _KINDS.get(f"{heading}:")
    if kind is None or not colon:
        return None
    found = _MORE.match(rest)
    return (kind, int(found[1].replace(",", ""))) if found else (kind, 0)


def _said(lines: list[str]) -> Iterator[Said]:
    for found in filter(None, map(_SAID.fullmatch, lines)):
        rest, times = (int((found[group] or default).replace(",", "")) for group, default in ((2, "0"), (3, "1")))
        yield Said("", found[1], rest, times)


def _files(lines: list[str]) -> Iterator[File]:
    for found in filter(None, map(_FILE.fullmatch, lines)):
        did = found[2]
        yield File(found[1], read=EARLIER if "read" in did else "", wrote=EARLIER if "wrote" in did else "")


def _commands(lines: list[str]) -> Iterator[Command]:
    for found in filter(None, map(_COMMAND.fullmatch, lines)):
        yield Command("", found[1], found[2], int(found[3] or 1))


def _troubles(lines: list[str]) -> Iterator[Trouble]:
    for line in lines:
        of, told, rest = line.removeprefix("- ").partition(": ")
        found = _TROUBLE.fullmatch(rest)
        if of and told and found:
            yield Trouble("", of, found[1], EARLIER if found[2] else "")
