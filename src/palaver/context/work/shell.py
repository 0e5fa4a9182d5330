"""Which files a shell command changes: none, those that it names, or any. A command that is not known to do less may change any.

It is read as POSIX says a shell reads it (Shell Command Language, 2.2 to 2.9), as far as words, quotes, joints and redirections go; what goes beyond
(substitutions, groups, loops, functions) is not followed, and so may change any file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from palaver.context.work.looks import LOOK, LOOKS_BY, cargo_builds, is_explicit, sed_shows
from palaver.context.work.naming import words_of

__all__ = ["Changed", "changed_by"]


_MODULES = words_of("pytest unittest mypy flake8 pylint")
_HARMLESS = re.compile(
    r"(?:PYTHONPATH|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|LANG|LC_\w+|TZ|CI|NO_COLOR|TERM|COLUMNS|RUST_BACKTRACE)=.*",
    re.DOTALL,
)
"""Variables that change nothing about what a command writes."""

_DEEP = 3
"""So many commands may stand in front of one: `time timeout 60 python -m pytest`."""

_PLACES = re.compile(r"(?:/usr(?:/local)?)?/bin|(?:.*/)?(?:\.?v?env/bin|node_modules/\.bin|vendor/bin)")
"""Folders for commands; a project's own `bin` holds its own scripts."""

_TO_NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})

_LEXEMES = re.compile(
    r"""(?P<blank>(?:[ \t]|(?<=[ \t])\\\n)+)
    |(?P<note>(?<![^ \t\n;&|])\#[^\n]*)
    |(?P<same>\d*[<>]&(?:\d+|-)(?=[\s;|&<>]|\Z))
    |(?P<here><<(?P<tabs>-?)[ \t]*(?P<quote>['"]?)(?P<word>\w+)(?P=quote)(?=[\s;|&>]|\Z))
    |(?P<into>(?:&>>?|\d*>(?:>|\|)?)(?![>(&]))
    |(?P<from>\d*(?:<<<|<)(?![<(&>]))
    |(?P<joint>&&|\|\||\|&|[;|&\n])
    |(?P<said>(?!\#)(?:[^\s'"\\`$;&|<>()]|\\[^\n]|'[^']*'
        |"(?:[^"\\`$]|\\.|\$(?![\w({@*\#!$'-]))*"|\$\?|\$(?![\w({@*\#!$'"-]))+)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.DOTALL)
_WITHIN = re.compile(r"\\([$`\"\\\n])")
_SPREADS = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)")
_RUNS_IN = re.compile(r"[`$]")


@dataclass(frozen=True, slots=True)
class Changed:
    """What a command changes.

    Attributes:
        files: Paths that it writes.
        folders: Paths that it takes away or puts in their places; they may be folders.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


_NOTHING = Changed()


class _UnknownError(Exception):
    """It may change any file."""


@dataclass
class _Reader:
    """Reads a text from beginning to end.

    Attributes:
        text: The text.
        at: How far it is read.
        words: The words of the command that is read.
        into: What its output goes into.
        waiting: Texts that stand behind the line: each begins with such a mark.
        changed: What the commands before it change.
    """

    text: str
    at: int = 0
    words: list[str] = field(default_factory=list)
    into: list[str] = field(default_factory=list)
    waiting: list[re.Match[str]] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)

    def read(self) -> Sequence[Changed]:
        """Give what each command changes."""
        while self.at < len(self.text):
            found = self._next()
            kind = found.lastgroup
            if kind == "said":
                self.words.append(found[0])
            elif kind in {"into", "from"}:
                self._redirected(writes=kind == "into")
            elif kind == "joint":
                self._ended(line=found[0] == "\n")
            elif found["here"]:
                self.waiting.append(found)
        self._ended(line=False)
        _must(not self.waiting)
        return self.changed

    def _next(self) -> re.Match[str]:
        found = _LEXEMES.match(self.text, self.at)
        if found is None:
            raise _UnknownError
        self.at = found.end()
        return found

    def _redirected(self, *, writes: bool) -> None:
        """Take the word behind a redirection."""
        while (word := self._next())["blank"]:
            pass
        _must(word.lastgroup == "said")
        if writes and _plain(word[0]) not in _TO_NOWHERE:
            self.into.append(_path(word[0]))

    def _ended(self, *, line: bool) -> None:
        """Take a command that is whole; where a line ends, pass over the texts that its commands read from here."""
        done = _done(self.words)
        self.changed.append(Changed((*self.into, *done.files), done.folders))
        self.words, self.into = [], []
        if not line:
            return
        for here in self.waiting:
            tabs = r"\t*" if here["tabs"] else ""
            end = re.compile(rf"^{tabs}{here['word']}$", re.MULTILINE).search(self.text, self.at)
            if end is None or (not here["quote"] and _RUNS_IN.search(self.text, self.at, end.start())):
                raise _UnknownError
            self.at = end.end()
        self.waiting = []


def changed_by(command: str) -> Changed | None:
    """Tell what a shell command changes; None where that may be any file."""
    try:
        done = _Reader(command).read()
    except _UnknownError:
        return None
    return Changed(
        tuple(path for each in done for path in each.files), tuple(path for each in done for path in each.folders)
    )


def _must(holds: object) -> None:
    if not holds:
        raise _UnknownError


def _plain(word: str) -> str:
    """Give a word without its quotes."""

    def bare(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        return _WITHIN.sub(r"\1", found[2]) if found[2] is not None else found[3]

    return _QUOTED.sub(bare, word)


def _path(word: str) -> str:
    """Give the path that a word is; one that stands for several, or has no name at its end, may be any."""
    plain = _plain(word)
    name = posixpath.basename(posixpath.normpath(plain))
    _must(name not in {"", ".", "..", "~"} and not _SPREADS.search(_QUOTED.sub("", word)))
    return plain


def _done(words: Sequence[str]) -> Changed:
    """Tell what one command changes.

    Raises:
        _UnknownError: It is not known to change nothing, or what it names.
    """
    said = [_plain(word) for word in words]
    first = _first(said, 0)
    for _ in range(_DEEP):
        if first < len(said) and (wrapper := _WRAPPERS.get(_name(said[first]))):
            first = _first(said, first + wrapper(said[first:]))
    if first >= len(said):
        return _NOTHING
    name = _name(said[first])
    if name in LOOK:
        return _NOTHING
    _must(
        not any(_BRACES.search(_QUOTED.sub("", word)) or word[0] in "*?[" for word in words)
    )  # they may stand for options
    rest = said[first + 1 :]
    if name in _WRITERS:
        return _WRITERS[name](rest, words[first + 1 :])
    _must(name in LOOKS_BY and LOOKS_BY[name](rest))
    return _NOTHING


def _name(word: str) -> str:
    """Give the name of a command; one in a folder that is not for commands is a script, whatever it is called."""
    folder, name = posixpath.split(word)
    return name if not folder or ("=" not in folder and _PLACES.fullmatch(folder)) else ""


def _first(words: Sequence[str], start: int) -> int:
    """Give the place of the first word behind variables that change nothing about what a command writes."""
    return next((n for n in range(start, len(words)) if not _HARMLESS.fullmatch(words[n])), len(words))


# --- commands in front of commands --------------------------------------------------------------------------------------------


def _timed(words: Sequence[str]) -> int:
    """Pass over `timeout 60`; options of it are not followed."""
    _must(len(words) > 1 and words[1][:1].isdigit())
    return 2


def _timing(words: Sequence[str]) -> int:
    return 2 if words[1:2] == ["-p"] else 1


def _given(words: Sequence[str]) -> int:
    """Pass over xargs: what it is given goes on to a command that looks, whatever it is given."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        _must(re.fullmatch(r"-[0rt]+|-[nPLId].*", words[place]))
        place += 2 if len(words[place]) == 2 and words[place][1] in "nPLId" else 1  # noqa: PLR2004 - a dash and a letter
    _must(place < len(words) and words[place] in LOOK)
    return place


def _module(words: Sequence[str]) -> int:
    """Pass over `python -m` before a runner of tests or a checker."""
    _must(words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES)
    return 2


_WRAPPERS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "timeout": _timed,
    "time": _timing,
    "xargs": _given,
    "python": _module,
    "python3": _module,
}


# --- commands that write what they name ---------------------------------------------------------------------------------------


def _named(words: Sequence[str], raw: Sequence[str]) -> tuple[str, ...]:
    """Give the paths among the words of a command."""
    return tuple(_path(word) for plain, word in zip(words, raw, strict=True) if not plain.startswith("-"))


def _removed(words: Sequence[str], raw: Sequence[str]) -> Changed:
    """Give what is taken away: files, where no option is known to take folders too."""
    named = _named(words, raw)
    flat = all(re.fullmatch(r"-[fiIv]*|--(?:force|verbose)?", word) for word in words if word.startswith("-"))
    return Changed(files=named) if flat else Changed(folders=named)


def _moved(words: Sequence[str], raw: Sequence[str]) -> Changed:
    _must(all(re.fullmatch(r"-[finvT]+", word) for word in words if word.startswith("-")))
    return Changed(folders=_named(words, raw))


def _copied(words: Sequence[str], raw: Sequence[str]) -> Changed:
    """Give what a copy writes: a file under the name of the one or of the other; a copied folder may be any."""
    _must(all(re.fullmatch(r"-[fivpn]+", word) for word in words if word.startswith("-")))
    return Changed(files=_named(words, raw))


def _edited(words: Sequence[str], raw: Sequence[str]) -> Changed:
    """Give what sed changes: nothing, or in place what it names; a step of it may write more."""
    if sed_shows(words):
        return _NOTHING
    options = {word for word in words if word.startswith("-")}
    rest = [(plain, word) for plain, word in zip(words, raw, strict=True) if plain not in options]
    _must("-i" in options and options <= {"-i", "-E", "-r", "-n"} and len(rest) > 1 and is_explicit(rest[0][0]))
    return Changed(files=tuple(_path(word) for _, word in rest[1:]))


def _built(words: Sequence[str], raw: Sequence[str]) -> Changed:  # noqa: ARG001 - asked as the others are
    """Give what cargo writes beside products: the versions it settled."""
    _must(cargo_builds(words))
    return Changed(files=("Cargo.lock",))


def _put(words: Sequence[str], raw: Sequence[str]) -> Changed:
    _must(all(word in {"-a", "-i", "--append"} for word in words if word.startswith("-")))
    return Changed(files=_named(words, raw))


_WRITERS: Mapping[str, Callable[[Sequence[str], Sequence[str]], Changed]] = {
    "cargo": _built,
    "rm": _removed,
    "mv": _moved,
    "cp": _copied,
    "sed": _edited,
    "tee": _put,
    "touch": _put,
}
