"""The terminal and the environment: what the command line reads of its surroundings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from types import MappingProxyType
from typing import Any, TextIO
from unicodedata import east_asian_width

from palaver.plurals import counted

# --- what may be shown ----------------------------------------------------------------------------------------------------------------

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that reorder what is shown around them (Unicode Standard Annex 9, table 4)."""

_ESCAPED = (
    {code: chr(0x2400 + code) for code in range(32) if code not in {9, 10}}
    | {127: "\u2421"}
    | {code: f"\\u{code:04x}" for code in (*range(0x80, 0xA0), *_BIDI)}
)

_ESCAPED_IN_JSON = {code: f"\\u{code:04x}" for code in _ESCAPED}


def visible(text: str) -> str:
    """Return a text that cannot command a terminal: control characters as pictures, C1 and bidirectional controls as escapes."""
    return text.translate(_ESCAPED)


def write(text: str) -> None:
    """Write what was recorded to standard output: to a pipe byte for byte, to a terminal without its control characters."""
    out = sys.stdout
    if out.isatty():
        out.write(visible(text).encode(out.encoding, "replace").decode(out.encoding))
    else:
        out.flush()
        out.buffer.write(text.encode(errors="replace"))


def say(text: str, style: str = "") -> None:
    """Print a line of a report to standard output."""
    sys.stdout.write(f"{styled(sys.stdout, text, style)}\n")


def complain(text: str, style: str = "") -> None:
    """Print a line to standard error: an error, or what is not part of the result."""
    sys.stderr.write(f"{styled(sys.stderr, text, style)}\n")


_STYLES = {"red": "31", "yellow": "33", "cyan": "36", "dim": "2"}


def styled(stream: TextIO, text: str, style: str = "") -> str:
    """Return a text as a stream shows it, without control characters; with colours only where it has some."""
    colours = style and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{_STYLES[style]}m{visible(text)}\x1b[0m" if colours else visible(text)


def emit(json: bool, row: Mapping[str, object], *lines: str) -> None:
    """Print a result: as JSON, or in lines."""
    if json:
        print_json(row)
    for line in () if json else lines:
        say(line)


def note_archived(json: bool, count: int, what: str) -> None:
    """Say what was not done with archived sessions; beside a result for programs, on standard error."""
    if count:
        many = counted(count, "archived session was", "archived sessions were")
        back = "`palaver sessions --archived` lists them, `palaver archive SESSION --restore` brings one back."
        (complain if json else say)(f"{many} not {what}: {back}")


def listed(lines: Sequence[str], most: int, rest: str = "--json lists all") -> Iterator[str]:
    """Yield the first lines, and how many more there are."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"… {len(lines) - most:,} more: {rest}"


def print_json(value: object, stream: TextIO | None = None) -> None:
    """Print a value as one line of canonical JSON, by default to standard output; on a terminal with escapes for all control characters."""
    from palaver.messages import canonical_json  # noqa: PLC0415 - the help needs no messages

    out = stream or sys.stdout
    line = canonical_json(value)
    if out.isatty():
        line = line.decode(errors="replace").translate(_ESCAPED_IN_JSON).encode()
    out.flush()
    out.buffer.write(line + b"\n")
    out.flush()


# --- tables ---------------------------------------------------------------------------------------------------------------------------

_GAP = 2
_FIGURE = re.compile(
    r"(?![0-9]{12}\Z)[-+~$.,%0-9]*[kM]?"
)  # ids are shown with 12 digits, and some have no letter among them


def print_rows(
    json: bool,
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, Callable[[Any], str]],
    *,
    cut: Mapping[str, int] = MappingProxyType({}),
    drop: Sequence[str] = (),
    wide: bool | None = None,
) -> None:
    """Print rows: as JSON, one object a line, or as a table whose columns show parts of each row.

    Args:
        json: Whether for a program.
        rows: The rows.
        columns: By title, what a cell shows of a row.
        cut: As for `table`.
        drop: As for `table`.
        wide: As for `table`.
    """
    if json:
        for row in rows:
            print_json(row)
    else:
        table(tuple(columns), ([show(row) for show in columns.values()] for row in rows), cut=cut, drop=drop, wide=wide)


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    cut: Mapping[str, int] = MappingProxyType({}),
    drop: Sequence[str] = (),
    wide: bool | None = None,
) -> None:
    """Print a table; columns of figures are aligned to the right.

    Args:
        titles: The titles of the columns.
        rows: The cells.
        cut: Titles of columns whose cells are cut where a line is longer than the terminal's, the first one first, and the width that
            each keeps.
        drop: Titles of columns that are left out where cutting is not enough: the first one first.
        wide: Whether lines may be longer than the terminal's; None for those that a pipe or a file gets.
    """
    lines = [list(titles), *([" ".join(cell.split()) for cell in row] for row in rows)]
    columns = list(zip(*lines, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    wide = not _on_a_screen() if wide is None else wide
    room = (sys.maxsize if wide else _terminal_width()) + _GAP
    least = [min(width, cut.get(title, width)) for title, width in zip(titles, widths, strict=True)]
    shown = list(range(len(titles)))
    for title in drop:
        if sum(least[at] + _GAP for at in shown) > room:
            shown.remove(titles.index(title))
    for at in (at for at in map(titles.index, cut) if at in shown):
        over = sum(widths[column] + _GAP for column in shown) - room
        widths[at] = max(least[at], widths[at] - max(over, 0))
    figures = [all(_FIGURE.fullmatch(cell) for cell in column[1:]) for column in columns]
    for line in lines:
        cells = (_cell(line[at], widths[at], right=figures[at]) for at in shown)
        say((" " * _GAP).join(cells).rstrip())


def _on_a_screen() -> bool:
    """Return whether lines have a width: that of the terminal, or of COLUMNS. A file or a pipe has none."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def _terminal_width() -> int:
    """Return the width of the terminal, also where only the output is a pipe; 80 without one."""
    if not _on_a_screen():
        for descriptor in (2, 0):
            with suppress(OSError):
                return os.get_terminal_size(descriptor).columns
    return shutil.get_terminal_size().columns


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _cell(text: str, width: int, *, right: bool) -> str:
    text = _cut(text, width)
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) >= width:
        text = text[:-1]
    return f"{text}…"


_MINUTE, _HOUR, _DAY, _WEEK = 60, 3_600, 86_400, 604_800
_CHEAPEST, _DIME = 0.0001, 0.1
_TEN_THOUSAND, _MILLION = 10_000, 1_000_000


def short(number: int) -> str:
    """Return a number for a narrow column, cut off: `9,999`, `14.4k`, `999k`, `14.4M`; nothing for none."""
    if number < _TEN_THOUSAND:
        return f"{number:,}" if number else ""
    if number < _TEN_THOUSAND * 10:
        return f"{number // 100 / 10:.1f}k"
    return f"{number // 1_000}k" if number < _MILLION else f"{number * 10 // _MILLION / 10:,.1f}M"


def money(dollars: float | None, *, estimated: bool = False) -> str:
    """Return dollars for people, with `~` where they are estimated; nothing for none."""
    if not dollars:
        return ""
    if dollars < _CHEAPEST:
        return f"<${_CHEAPEST}"
    return f"{'~' if estimated else ''}${dollars:.{2 if dollars >= _DIME else 4}f}"


def when(seconds: float) -> str:
    """Return how long ago a time is, for lists: `5 min ago`, `yesterday`, `12 Mar 2026`."""
    if not seconds:
        return ""
    ago = time.time() - seconds
    if ago < _MINUTE:
        return "now"
    if ago < _HOUR:
        return f"{ago / _MINUTE:.0f} min ago"
    if ago < _DAY:
        return f"{ago / _HOUR:.0f} h ago"
    if ago < _WEEK:
        return f"{ago / _DAY:.0f} d ago"
    return datetime.fromtimestamp(seconds, UTC).strftime("%d %b %Y").lstrip("0")


# --- a person who waits ---------------------------------------------------------------------------------------------------------------

_ELAPSED = 10
"""Characters of the time next to a bar, with the spaces around it."""


_EVERY = 10.0
"""Seconds between two lines about progress."""


@contextmanager
def progress(*, hidden: bool, every: float = _EVERY) -> Iterator[Callable[[str, float, float | None], None]]:
    """Show how far some work has come; yield what is called with what is at hand, how much is done, and of how much.

    Args:
        hidden: Whether to show nothing.
        every: The seconds between two lines if standard error is no terminal. A terminal shows a bar.
    """
    if hidden:
        yield lambda _what, _done, _of: None
        return
    if not sys.stderr.isatty():
        yield _lines(every)
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - as above

    console = Console(stderr=True)
    width = min(40, console.width // 3)
    room = max(console.width - width - _ELAPSED, 1)
    columns = (BarColumn(width), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, of: bar.update(task, total=of, completed=done, description=_cut(visible(what), room))


def _lines(every: float) -> Callable[[str, float, float | None], None]:
    """Return a function that prints a line about progress, but none within some seconds of the start or of the line before."""
    printed = time.monotonic()

    def show(what: str, done: float, of: float | None) -> None:
        nonlocal printed
        if time.monotonic() - printed >= every:
            complain(f"{done / of:4.0%}  {what}" if of else what)
            sys.stderr.flush()
            printed = time.monotonic()

    return show


# --- the pager ------------------------------------------------------------------------------------------------------------------------


class _ToPager(TextIOWrapper):
    """Standard output while a pager shows it on the terminal."""

    def isatty(self) -> bool:
        """Return True: what is written ends on the terminal."""
        return True


@contextmanager
def paged(*, data: bool = False) -> Iterator[None]:
    """Show what is printed inside in the user's pager, where both ends are a terminal. `less` shows a short text without stopping.

    Args:
        data: Whether a program reads the output; then there is no pager.
    """
    words = shlex.split(os.environ.get("PAGER", "less"))
    if data or not (sys.stdin.isatty() and sys.stdout.isatty()) or not words or not shutil.which(words[0]):
        yield
        return
    environment = {"LESS": "FRX", **os.environ}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) as pager:  # noqa: S603 - the user's own pager
        assert pager.stdin is not None  # noqa: S101 - it is a pipe
        out = _ToPager(pager.stdin, encoding=sys.stdout.encoding, errors="replace", write_through=True)
        try:
            with redirect_stdout(out):
                yield
        except BrokenPipeError:
            pass  # the reader has seen enough
        finally:
            with suppress(BrokenPipeError):
                out.close()
