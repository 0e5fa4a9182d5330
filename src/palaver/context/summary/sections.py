"""Sections: which of those that were asked for an answer has, in the shapes in which models write headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from palaver.context.summary.cleaning import FENCE

__all__ = ["filled", "lacking"]

_MARKS = re.compile(r"\s*(#{0,6})\s*(?:\*\*|__)?\s*(?:\d+[.)]\s*)?(?:\*\*|__)?\s*")
_BOLD = re.compile(r"\s*(?:\d+[.)]\s*)?(\*\*|__)(?P<head>[^*_].*?)\1\s*[:\uff1a]?(?P<rest>.*)")
_COLON = re.compile(r"[:\uff1a]")
_RULED = re.compile(r"[\s|:=_*-]*")
"""Lines that say nothing: rules, the line below the head of a table, and what underlines a heading."""

_AROUND = " \t*_:\uff1a"
_WORD = re.compile(r"[^\W_]+")
_NOT_SAID = "(The summary says nothing of this; see the record beside it.)"

_BOLD_LEVEL, _ROW_LEVEL = 7, 8
"""How deep headings are that are bold lines, or first cells of a table; others are as deep as they have hashes."""

_LIKENESSES = 2
"""So many sections must be there before one counts whose heading says more than its name: "Next steps for you" ends many an answer in a chat."""

_ENGLISH = re.compile(
    r"\b(?:the|and|of|to|with|for|that|this|from|were|are|has|have|not|it|be|by|which|its|been|you)\b", re.IGNORECASE
)
_OTHERS = re.compile(
    r"\b(?:der|die|das|und|den|dem|ist|nicht|eine?|mit|für|auf|von|el|l[aeo]s?|que|una?|con|por|para|s[eu]|des|et|est|du|dans|pour|sur|une|uma?|não|da|il|di"
    r"|che|gli|della|sono|het|een|van|en|niet|dat|op|och|att|som|det|är|inte|og|ikke|til|på|er|jest|nie|się|na|ve|bir|bu|için|yang|dan|untuk)\b",
    re.IGNORECASE,
)
"""The commonest short words of English, and of other languages in its script (word lists of the kind that recognises languages by function words:
Grefenstette 1995, "Comparing two language identification schemes")."""

_FEW = 3

_Find: TypeAlias = Callable[[str, AbstractSet[str]], tuple[int, str, str]]


def lacking(text: str, headings: Iterable[str]) -> tuple[str, ...]:
    """Give the sections that a text does not have, or has with nothing in them.

    A heading is one by its name, however it is marked. One that begins or ends with a name counts where others are there, too; and where there are as
    many headings of one level as were asked for, those are they, in order, if they are in another language or most of them have their names.
    """
    wanted = {_name(heading): heading for heading in headings}
    said = _sections(text, frozenset(wanted), _exact)
    if missing := frozenset(wanted) - said:
        alike = said | _sections(text, missing, _alike)
        said = alike if len(alike) >= min(_LIKENESSES, len(wanted)) else said
    if len(said) < len(wanted) and _in_order(text, tuple(wanted), said):
        return ()
    return tuple(heading for name, heading in wanted.items() if name not in said)


def filled(text: str, headings: Iterable[str]) -> str:
    """Give a summary with every section; what it lacks is said to be lacking."""
    missing = lacking(text, headings)
    return "\n\n".join([text, *(f"## {heading}\n{_NOT_SAID}" for heading in missing)])


# --- by name ----------------------------------------------------------------------------------------------------------------------


def _sections(text: str, names: frozenset[str], find: _Find) -> frozenset[str]:
    """Give the names of the sections in which something is said.

    A section goes on to the next one that was asked for, or to a heading of its own level or above: what is bold in it, headings below its
    own and whatever stands in a block of code belong to it.
    """
    said: set[str] = set()
    section, depth = "", 0
    for line, code in _lines(text):
        hashes, name, rest = (0, "", line.strip()) if code else find(line, names)
        if name:
            section, depth = name, hashes
        elif 0 < hashes <= depth:
            section = ""
        if section and _RULED.fullmatch(rest) is None:
            said.add(section)
    return frozenset(said)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Give each line, and whether it stands in a block of code; one that is never closed is none."""
    fenced, code = len(FENCE.findall(text)) % 2 == 0, False
    for line in text.splitlines():
        code ^= fenced and FENCE.match(line) is not None
        yield line, code


def _exact(line: str, names: AbstractSet[str]) -> tuple[int, str, str]:
    """Give how many hashes a line begins with, which of the headings it is, if it is one, and what else it says."""
    if (row := _row(line)) is not None:
        name = _name(row[0].strip(_AROUND))
        return (0, name, row[1]) if name in names else (0, "", line.strip())
    hashes, body = _unmarked(line)
    whole = _name(body.strip(_AROUND))
    if whole in names:
        return hashes, whole, ""
    head, rest = _parted(body)
    name = _name(head.strip(_AROUND))
    return (hashes, name, rest) if rest is not None and name in names else (hashes, "", line.strip())


def _alike(line: str, names: AbstractSet[str]) -> tuple[int, str, str]:
    """Give the same of a heading that says more than its name, before it or behind it: a sign, a number, "(updated)", "of the work"."""
    hashes, body = _unmarked(line)
    bold = _BOLD.fullmatch(line)
    if not hashes and bold is None:
        return 0, "", line.strip()
    head, rest = (bold["head"], bold["rest"]) if bold is not None and not hashes else (body, "")
    head, more = _parted(head)
    found = [name for name in names if _begins_or_ends(_words(head), _words(name))]
    return hashes, max(found, key=len, default=""), f"{more or ''}{rest}" if found else line.strip()


def _begins_or_ends(head: Sequence[str], name: Sequence[str]) -> bool:
    return bool(name) and (head[: len(name)] == name or head[len(head) - len(name) :] == name)


def _unmarked(line: str) -> tuple[int, str]:
    """Give how many hashes a line begins with, and what stands behind all that marks it as a heading."""
    marks = _MARKS.match(line)
    return (len(marks[1]), line[marks.end() :]) if marks else (0, line)


def _parted(body: str) -> tuple[str, str | None]:
    """Give what stands before the first colon, and behind it; None where there is none."""
    colon = _COLON.search(body)
    return (body, None) if colon is None else (body[: colon.start()], body[colon.end() :].strip(_AROUND))


def _row(line: str) -> tuple[str, str] | None:
    """Give the first cell of a row of a table, and the others; None of any other line."""
    cells = [cell.strip() for cell in line.strip().split("|")]
    return (cells[1], " ".join(cells[2:])) if len(cells) > _FEW and not cells[0] else None


def _name(heading: str) -> str:
    """Give a heading as it is compared: in any case, with "and" written out."""
    return " ".join(heading.replace("&", " and ").casefold().split())


def _words(heading: str) -> list[str]:
    return _WORD.findall(_name(heading))


# --- by place ---------------------------------------------------------------------------------------------------------------------


class _Headed(NamedTuple):
    """A heading with something under it."""

    level: int
    head: str


def _in_order(text: str, names: Sequence[str], said: AbstractSet[str]) -> bool:
    """Tell whether some level has just as many headings with something under them as were asked for, and they may be those.

    Those that have their names are in their places, and the others are in another language, or fewer than half.
    """
    headed = list(_headed(text))
    for level in sorted({each.level for each in headed}):
        heads = [each.head for each in headed if each.level == level]
        if len(heads) != len(names) or len(names) < _LIKENESSES:
            continue
        known = {index: name for index, head in enumerate(heads) if (name := _known(head, said))}
        unknown = [head for index, head in enumerate(heads) if index not in known]
        placed = all(names[index] == name for index, name in known.items())
        most = len(known) >= max(_LIKENESSES, len(names) / 2)
        if placed and (most or _translated(unknown, text)):
            return True
    return False


def _known(head: str, said: AbstractSet[str]) -> str:
    found = [name for name in said if _begins_or_ends(_words(head), _words(name))]
    return max(found, key=len, default="")


def _headed(text: str) -> Iterator[_Headed]:
    """Give the headings that have something under them, or behind them in their line."""
    open_: dict[int, str] = {}
    lines = list(_lines(text))
    for (line, code), (behind, _) in zip_longest(lines, lines[1:], fillvalue=("", False)):
        level, head, rest = (0, "", line) if code else _any(line)
        if level == _ROW_LEVEL:
            columns = behind.strip().startswith("|") and _RULED.fullmatch(behind)  # it names the columns
            if head and not columns and _RULED.fullmatch(rest) is None:
                yield _Headed(level, head)
            continue
        if level:
            open_ = {depth: each for depth, each in open_.items() if depth < level} | {level: head}
        if _RULED.fullmatch(rest) is None:
            yield from (_Headed(depth, each) for depth, each in open_.items() if each)
            open_ = dict.fromkeys(open_, "")


def _any(line: str) -> tuple[int, str, str]:
    """Give the level of a line's heading, 0 for none, the heading, and what else the line says."""
    if (row := _row(line)) is not None:
        return _ROW_LEVEL, row[0].strip(_AROUND + "-"), row[1]
    hashes, body = _unmarked(line)
    if hashes:
        head, rest = _parted(body)
        return hashes, head.strip(_AROUND), rest or ""
    bold = _BOLD.fullmatch(line)
    return (_BOLD_LEVEL, bold["head"].strip(_AROUND), bold["rest"]) if bold else (0, "", line)


def _translated(heads: Sequence[str], text: str) -> bool:
    """Tell whether headings are in another script than that of English; or the text they stand in is in another language, by its short words."""
    letters = [letter for letter in "".join(heads) if letter.isalpha()]
    if letters and sum(letter > "\u024f" for letter in letters) * 2 > len(letters):
        return True
    others = len(_OTHERS.findall(text))
    return others >= _FEW and others > 2 * len(_ENGLISH.findall(text))
