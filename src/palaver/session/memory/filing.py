"""Tools by which a model keeps texts in files of a conversation, and finds them again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.session.memory.files import File, Files
from palaver.session.memory.notes import Held
from palaver.session.memory.offering import FEW, MOST, dialog_of, further, told, tool, who
from palaver.session.memory.quoting import LONGEST_PAGE
from palaver.session.memory.readings import looked_for, named_like
from palaver.session.memory.whose import SubjectMemory
from palaver.tools import CallContext, Function

__all__ = ["file_tools"]

_BREAK = re.compile(r"\n|\\n")

_NAME = 255
"""Characters of a name: what is longer fits none."""

_SAID = 100
"""Characters of a pattern that are said again."""


def file_tools(dialog: Held | SubjectMemory | None = None) -> tuple[Function, ...]:  # noqa: C901 - seven functions, and nothing but them
    """Give the tools of a file store: `file_write`, `file_read`, `file_edit`, `file_list`, `file_glob`, `file_grep` and `file_delete`.

    Args:
        dialog: Where the files lie: the dialog in which a tool is called when not given; with a `SubjectMemory` those of whoever is talked with.
    """

    def files(context: CallContext) -> Files:
        return Files(dialog_of(context, dialog))

    def file_write(path: str, text: str, context: CallContext) -> Any:  # noqa: ANN401 - a text, or what went wrong
        return told(lambda: f"Written: {_about(files(context).write(path, text, by=who(context)))}.")

    def file_edit(path: str, old: str, new: str, context: CallContext) -> Any:  # noqa: ANN401 - the same
        return told(lambda: f"Changed: {_about(files(context).edit(path, old, new, by=who(context)))}.")

    def file_delete(path: str, context: CallContext) -> Any:  # noqa: ANN401 - the same
        return told(lambda: f"Deleted: {path} (its last text is {_wrote(files(context), path)}).")

    def file_read(
        path: str, context: CallContext, first_line: int = 1, lines: int = 200, from_character: int = 0
    ) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _lines(files(context).read(path), first_line, lines, from_character))

    def file_list(context: CallContext, folder: str = "", offset: int = 0) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _listed(files(context), folder, offset))

    def file_glob(pattern: str, context: CallContext, offset: int = 0) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _globbed(files(context), pattern, offset))

    def file_grep(
        pattern: str,
        context: CallContext,
        files_like: str = "**",
        ignore_case: bool = False,  # noqa: FBT001, FBT002 - a model gives all arguments by name
        offset: int = 0,
    ) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _grepped(files(context), pattern, files_like, offset, ignore_case=ignore_case))

    path = "Its name, such as notes/plan.md. Names are of this store alone: no file of the machine can be reached."
    once = {"old": "The text to be replaced; it must stand there exactly once.", "new": "What is to stand there."}
    writes = {"exclusive": True, "allow_repeat": True}
    return (
        tool(
            file_write,
            "Keep a text in a file of this conversation; the file is made, or written anew.",
            {"path": path, "text": "All of its text."},
            **writes,
        ),
        tool(
            file_read,
            "Read a file of this conversation.",
            {
                "path": path,
                "first_line": "From 1.",
                "lines": "How many.",
                "from_character": "How much of the first line to pass over, where it is longer than a page.",
            },
        ),
        tool(file_edit, "Replace a text in a file of this conversation.", {"path": path, **once}, **writes),
        tool(file_list, "List the files of this conversation.", {"folder": "Only below this folder."}),
        tool(
            file_glob,
            "Find files of this conversation by name.",
            {"pattern": "A glob, such as *.md, *.{md,txt} or notes/**/2026-*.txt; file_grep looks into them."},
        ),
        tool(
            file_grep,
            "Find lines in the files of this conversation.",
            {
                "pattern": "A regular expression as in Rust or Python, such as foo|bar or call\\(x\\), without references and looking around; each line is looked at by itself.",
                "files_like": "Only in files whose name fits, a glob such as *.md or notes/**.",
            },
        ),
        tool(file_delete, "Delete a file of this conversation.", {"path": path}, **writes),
    )


def _about(file: File) -> str:
    return f"{file.path}, {len(file.text):,} characters, {len(file.text.splitlines()):,} lines"


def _wrote(files: Files, path: str) -> Handle:
    last = files.read(path).handle
    files.delete(path)
    return last


def _lines(file: File, first: int, count: int, skip: int) -> str:
    """Give lines with their numbers, as many as a page holds; of a line that is longer than a page a part, and where it goes on."""
    every = file.text.splitlines()
    begin = max(first, 1) - 1
    shown: list[str] = []
    room, more = LONGEST_PAGE, ""
    for number, line in enumerate(every[begin : begin + max(count, 1)], begin + 1):
        at = max(skip, 0) if number == begin + 1 else 0
        rest = line[at:]
        if len(rest) > room:
            if not shown:
                shown.append(f"{number}\t{rest[:room]}")
                more = f"(The line goes on: first_line={number}, from_character={at + room}.)"
            break
        room -= len(rest) + 1
        shown.append(f"{number}\t{rest}")
    left = len(every) - begin - len(shown)
    if left > 0 and not more:
        more = f"({left:,} more lines: first_line={begin + len(shown) + 1}.)"
    head = f"{_about(file)}{f', written by {file.by}' if file.by else ''}:"
    return "\n".join([head, *shown, *([more] if more else [])])


def _names(found: tuple[File, ...], offset: int) -> str:
    begin = max(offset, 0)
    shown = [f"{file.path} ({len(file.text):,} characters)" for file in found[begin : begin + MOST * 2]]
    more = further(len(found) > begin + len(shown), begin + len(shown))
    return "\n".join([*shown, *more]) if shown else f"There are no more: {len(found):,} in all."


def _listed(files: Files, folder: str, offset: int) -> str:
    found = files.list(folder)
    none = f"There is no folder {_short(folder)}. " if folder.strip() else ""
    return _names(found, offset) if found else f"{none}{_there_are(files)}"


def _globbed(files: Files, pattern: str, offset: int) -> str:
    found = named_like(files, pattern)
    if not found.files:
        return f"No name fits {_short(pattern)}. {_there_are(files)}"
    names = _names(found.files, offset)
    return f"No name fits {_short(pattern)} as it stands: {found.how}:\n{names}" if found.how else names


def _grepped(files: Files, pattern: str, glob: str, offset: int, *, ignore_case: bool) -> str:
    searched, begin = named_like(files, glob), max(offset, 0)
    if not searched.files:
        where = "" if glob == "**" else f"No name fits files_like={_short(glob)}, so nothing was searched. "
        return f"{where}{_there_are(files)}"
    try:
        looked = looked_for(searched.files, pattern, ignore_case=ignore_case, limit=MOST, skip=begin)
    except InvalidInput as error:
        error.hint = " ".join([error.hint, *_also_named(files, pattern)]).strip()
        raise
    found = looked.grep
    head = [f"No name fits files_like={_short(glob)} as it stands: {searched.how}."] if searched.how else []
    if looked.none:
        head.append(f"No line of {found.files:,} files fits {_short(pattern)}, whatever its capitals.")
        return "\n".join([*head, *_why_not(pattern), *_also_named(files, pattern)])
    if looked.how:
        head.append(f"No line fits {_short(pattern)} as it stands: {looked.how}:")
    elif "\\|" in pattern:
        head.append("(`\\|` is looked for as a bar here; either of two is `a|b`.)")
    lines = [f"{one.path}:{one.line}: {one.text}" for one in found.found]
    return "\n".join([*head, *(lines or ["No more lines fit."]), *further(found.more, begin + len(lines))])


def _why_not(pattern: str) -> Iterator[str]:
    """Say what a pattern has that no line can fit."""
    if _BREAK.search(pattern):
        yield "Each line is looked at by itself, so that nothing with a line break in it fits."


def _also_named(files: Files, pattern: str) -> Iterator[str]:
    """Say that a pattern that finds no line finds names."""
    if 0 < len(pattern.strip()) <= _NAME and (found := named_like(files, pattern).files):
        more = " and others" if len(found) > 1 else ""
        yield f"It fits a name, {found[0].path}{more}: file_glob finds names, file_grep looks into files."


def _there_are(files: Files) -> str:
    every = files.list()
    names = ", ".join(file.path for file in every[:FEW])
    more = f" and {len(every) - FEW:,} more (file_list)" if len(every) > FEW else ""
    return f"There are: {names}{more}." if every else "There are no files."


def _short(pattern: str) -> str:
    """Quote a pattern, or its beginning; between backticks, so that no backslash in it is doubled."""
    shown = pattern if len(pattern) <= _SAID else f"{pattern[:_SAID]}…"
    return f"`{shown}`" if shown.isprintable() and shown else repr(shown)
