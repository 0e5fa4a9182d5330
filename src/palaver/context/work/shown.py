"""What a call shows of a file: all of it, a part of it, or something about it.

A call is known to show a file where each word of its tool's name and each of its arguments is known; of any other one nothing is told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from palaver.context.work.deeds import LOOKS, PATH_KEYS, Deed
from palaver.context.work.naming import arguments, folded, verb_of, words_in, words_of
from palaver.context.work.paths import normal, same_file
from palaver.messages import ToolCallContent, canonical_json

__all__ = [
    "PARTS",
    "PATHS",
    "SAYINGS",
    "is_file",
    "part_of",
    "reads_file",
    "says_refused",
    "says_unchanged",
    "says_written",
    "without_reminders",
    "written_by",
]

PATHS = frozenset(map(folded, PATH_KEYS))
"""Arguments that say which file, folded."""

SAYINGS = words_of("description explanation reason securityrisk shouldreadentirefile taskprogress thought toolsummary")
"""Arguments that say why, and change nothing about what is done."""

PARTS = re.compile(
    r"offset|limit|head|tail|(?:view|lines?|pages?)?ranges?|lines?|pages?"
    r"|(?:(?:start|end)(?:lines?(?:numbers?|no)?)?|(?:from|to|first|last)lines?(?:numbers?|no)?)(?:(?:one|zero)indexed)?(?:inclusive|exclusive)?"
    r"|lines?(?:start|end|from|to|numbers?|count|offset|limit)|(?:num|max)lines|cell(?:id|number|index)"
)
"""Arguments, folded, by which a tool reads a part of a file, or writes one: of a notebook, a cell."""

_ENDS = re.compile("end|to|last|limit|line_?end", re.IGNORECASE)
"""Such arguments that are told behind the others."""

_PART = 40
"""Characters of such an argument that are told."""

_READS = words_of("cat read readfile view viewfile")
_GETS = words_of("content contents text")
_WRITES = words_of("create overwrite save write writefile")
_OF_FILE = words_of("a by content contents file from fs local notebook path source text the to tool")
"""Words of tools that show a file, or write all of one, beside what they do."""

_EDITORS = words_of("based code edit editor file fs replace str text tool write")
"""Words of tools that do one of several things, which their `command` says."""

_WHOLE = words_of("content contents data filetext text")
"""Arguments in which a tool that writes a file takes all of it."""

_BESIDE = words_of("createdirectories createdirs linecount overwrite")
"""Arguments of such tools that change nothing about what the file says then."""

_VALUES = {
    "encoding": words_of("utf-8 utf8 UTF-8 utf_8"),
    "mode": words_of("create overwrite rewrite w write"),
}
"""Arguments that change nothing with one of these values."""

_FILE = re.compile(
    r"(?:.*[/\\])?(?:[^/\\]+\.[A-Za-z]\w{0,9}|\.[a-z]+rc|\.(?:env|gitignore|gitattributes)"
    r"|[A-Z][a-z]*file|AUTHORS|CHANGELOG|LICENSE|NOTICE|README)"
)
"""Paths that are of files by their names; of others nobody knows that they are not folders, whose listings get old."""


_WROTE = words_of("created done ok overwritten overwrote saved success successfully true updated written wrote")
"""Words one of which a result has that says that the file was written. Many a harness marks no failure: another result may be one."""

_BESIDE_WROTE = words_of(
    "a an at been bytes byte characters character chars content contents disk file has have in into is it line lines message name new of path "
    "result status text the to total was with"
)
"""Words that such a result has besides, which say nothing of what was written."""

_SNIPPET = re.compile(r"\s*(\d{1,9}) *[\t→|](.*)|\s*")
_SHOWN_BELOW = re.compile(
    r"\.? *here's the result of running .{1,10} on a snippet of the edited file:?$", re.IGNORECASE
)
"""What Claude Code's and SWE-agent's editors say in front of the lines that they show of what was written."""

_WORD = re.compile(r"[^\W\d_]+|\d+")


def says_written(result: str, path: str, written: str) -> bool:
    """Tell whether a result says that a file was written, and nothing more: a formatter or the user may have had it written otherwise.

    Args:
        result: The result.
        path: The file, as the call named it.
        written: What the call wrote. Lines that the result shows of the file must be lines of that.
    """
    first, *rest = result.strip().splitlines() or [""]
    if len(first) > _FEW:
        return False
    line, own = _SHOWN_BELOW.sub("", first).replace("\\", "/"), path.strip().replace("\\", "/")
    name = re.escape(posixpath.basename(own))
    spelled = re.compile(rf"(?<![\w/.~-])(?:{re.escape(own)}|(?:[^\s'\"`]*/)?{name})(?![\w/-]|\.\w)", re.IGNORECASE)
    bare = spelled.sub(lambda found: " " if same_file(normal(found[0]), normal(path)) else found[0], line)
    found = set(_WORD.findall(bare.casefold()))
    words = {word for word in found if not word.isdecimal()}
    lines = written.splitlines()
    sizes = {
        str(size) for size in (len(lines), written.count("\n"), len(written), len(written.encode(errors="replace")))
    }
    return (
        bool(words & _WROTE)
        and words <= _WROTE | _BESIDE_WROTE
        and found - words <= sizes
        and all(_SHOWN_BELOW.fullmatch(each) or _is_line(each, lines) for each in rest)
    )


def _is_line(shown: str, lines: Sequence[str]) -> bool:
    """Tell whether a line of a result shows one of some lines, with its number in front of it, or nothing."""
    found = _SNIPPET.fullmatch(shown)
    if found is None or found[1] is None:
        return found is not None
    number, text = int(found[1]), found[2].rstrip()
    line = lines[number - 1].rstrip() if 0 < number <= len(lines) else ""
    return text in {line, f" {line}"}


_UNCHANGED = re.compile(
    r"\W*(?:file unchanged since last read|note\W{1,3}this file read has been removed|the user (?:doesn't|does not|did not|didn't) want)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\W*(?:an? )?(?:error|failed|failure|can ?not|can't|could not|couldn't|unable|permission denied|enoent|no such|not found|invalid|unknown)\b"
    r"|\W*(?:the )?(?:file|path)\b.{0,300}\b(?:does not|doesn't|not) (?:exist|found)",
    re.IGNORECASE | re.DOTALL,
)
_FEW = 600
"""Characters of a result that may be a refusal to read, for a text that is longer is a file's; and of a line that says that something was written."""


def says_unchanged(result: str) -> bool:
    """Tell whether what should show a file says that nothing was read, and that it is as it was shown before."""
    return len(result) <= _FEW and _UNCHANGED.match(result) is not None


def says_refused(result: str) -> bool:
    """Tell whether what should show a file reads as a refusal: many a harness marks no failure."""
    return len(result) <= _FEW and _REFUSED.match(result) is not None


_REMINDERS = ("system-reminder", "environment_details")
"""Elements that a harness puts behind the lines of a file."""

_MOST = 8
"""How many of them are looked for."""


def without_reminders(said: str) -> str:
    """Give a result without what a harness put behind it, in lines of its own."""
    for _ in range(_MOST):
        bare = said.rstrip()
        mark = next((each for each in _REMINDERS if bare.endswith(f"</{each}>")), None)
        at = -1 if mark is None else bare.rfind(f"<{mark}>")
        before = bare[: max(at, 0)].rstrip(" \t")
        if at < 0 or (before and not before.endswith("\n")):
            break
        said = before.rstrip()
    return said


def part_of(call: ToolCallContent) -> str:
    """Tell which part of a file a call asked for, in the words of its arguments; empty where it did not ask for one."""
    asked = [(name, value) for name, value in call.args.items() if value is not None and PARTS.fullmatch(folded(name))]
    asked.sort(key=lambda each: _ENDS.match(each[0]) is not None)
    return ", ".join(f"{name} {canonical_json(value).decode()}"[:_PART] for name, value in asked)


def is_file(path: str) -> bool:
    """Tell whether a path is of a file by its name."""
    return _FILE.fullmatch(path) is not None


def reads_file(call: ToolCallContent, done: Deed) -> bool:
    """Tell whether a call is known to show what one file says here and now, or a part of it."""
    if len(done.read) != 1 or done.wrote or done.run or not is_file(done.read[0]):
        return False
    words, verb = words_in(call.name), verb_of(call)
    if verb is not None:
        named = verb in LOOKS and words <= _EDITORS | _READS
    else:
        named = words <= _READS | _OF_FILE | {"get"} and bool(words & _READS or ("get" in words and words & _GETS))
    return named and all(_plain(name, value) or PARTS.fullmatch(name) for name, value in arguments(call))


def written_by(call: ToolCallContent, done: Deed) -> str | None:
    """Give what a call wrote to a file from beginning to end; None where it is not known to have written all of it."""
    words, verb = words_in(call.name), verb_of(call)
    if len(done.wrote) != 1 or done.run:
        return None
    if verb is not None:
        named = verb in _WRITES and words <= _EDITORS | _WRITES
    else:
        named = bool(words & _WRITES) and words <= _WRITES | _OF_FILE
    texts = [value for name, value in call.args.items() if folded(name) in _WHOLE]
    known = all(_plain(name, value) or name in _WHOLE or name in _BESIDE for name, value in arguments(call))
    return texts[0] if named and known and len(texts) == 1 and isinstance(texts[0], str) else None


def _plain(name: str, value: object) -> bool:
    """Tell whether an argument says which file, or nothing about it."""
    return (
        name in PATHS
        or name in SAYINGS
        or name == "command"
        or (isinstance(value, str) and value in _VALUES.get(name, ()))
    )
