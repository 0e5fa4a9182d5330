"""palaver watch: sessions of other agents are imported as they grow, and stay when their files are deleted."""

from __future__ import annotations

import os
import plistlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from typer import Argument, BadParameter, Option

from palaver.browsing.search import index
from palaver.cli.imports import USUAL, files_of, rows_of
from palaver.cli.interrupts import interruptible, is_interrupt
from palaver.cli.options import JsonOption, RedactOption, StoreOption, opened, store_url
from palaver.cli.terminal import complain, emit, progress, say, visible
from palaver.errors import Erased, InvalidInput, MissingFile, StoreBusy, StoreError
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.transcripts import Importer, in_order

_SHARE = 0.1
"""The most of one processor that it takes, on average, after the first look at all files."""

_QUIET = 600.0
"""Seconds without a change after which a file itself is kept: each version of a growing one would fill the disk."""

_PASSING = frozenset({"full", "unavailable"})
"""Reasons of store errors that end by themselves."""

_STATUS = 3_600.0
"""Seconds between two lines about its state where standard error is no terminal."""

_PATH = "Folders and transcripts. Default: where the agents that palaver knows keep their sessions in your home folder, also those that come later."
_UNITS = {
    "systemd": "~/.config/systemd/user/palaver-watch.service; then: systemctl --user enable --now palaver-watch",
    "launchd": "~/Library/LaunchAgents/palaver.watch.plist; then: launchctl load -w ~/Library/LaunchAgents/palaver.watch.plist",
}


def run(
    paths: Annotated[list[Path] | None, Argument(metavar="PATH", help=_PATH)] = None,
    *,
    subject: Annotated[str, Option("--subject", metavar="WHO", help="Whose data new sessions are.")] = "",
    redact: RedactOption = False,
    every: Annotated[float, Option("--every", min=0.1, metavar="SECONDS", help="Time between two looks.")] = 2.0,
    keep_free: Annotated[
        int, Option("--keep-free", min=0, metavar="BYTES", help="Import nothing while the disk of the store has less.")
    ] = 1_000_000_000,
    unit: Annotated[
        str | None, Option("--unit", metavar="KIND", help=f"Print a service instead: {' or '.join(_UNITS)}.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import sessions as they grow, until Ctrl-C. Imported sessions stay when the agent deletes its file.

    A folder that vanishes and a full disk are reported, and waited for. It can be ended and started at any time; nothing is imported twice.
    """
    if unit is not None:
        _print_unit(unit, _arguments(paths or [], subject, every, keep_free, redact=redact, store=store))
        return
    with opened(store, create=True) as target, interruptible():
        importer = Importer(target, subject=subject)
        importer.redactor = PatternRedactor() if redact else None
        watch = Watch(
            importer,
            (lambda: paths) if paths else usual,
            room=lambda: _free(target.url) >= keep_free,
            report=lambda row: _report(row, json=json),
        )
        complain("Watching for changes. Ctrl-C ends it.", "dim")
        try:
            with _status_line(hidden=json) as show:
                while True:
                    begun = time.process_time()
                    if watch.look():
                        index(target)
                    show(watch.status())
                    time.sleep(pause(time.process_time() - begun if watch.looks > 1 else 0, every))
        except BaseException as error:
            if not is_interrupt(error):
                raise
        if not json:
            say(watch.status())


@contextmanager
def _status_line(*, hidden: bool) -> Iterator[Callable[[str], None]]:
    """Yield what shows a line: at the foot of a terminal, drawn when it changes, or else in a log now and then."""
    if hidden or not sys.stderr.isatty():
        with progress(hidden=hidden, every=_STATUS) as advance:
            yield lambda line: advance(line, 0, None)
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()) as live:
        yield lambda line: live.update(Text(visible(line), "dim", no_wrap=True, overflow="ellipsis"), refresh=True)


def usual() -> list[Path]:
    """Return the folders in which agents keep sessions now."""
    return [folder for pattern in USUAL.values() for folder in sorted(Path.home().glob(pattern))]


def pause(spent: float, every: float) -> float:
    """Return how long to wait after a look that took some seconds of the processor: so long that the looks take a tenth of it."""
    return max(every, spent * (1 / _SHARE - 1))


def _free(url: str) -> float:
    """Return the free bytes of the disk of a store; infinitely many where it is on another machine."""
    address = urlsplit(url)
    if address.scheme != "sqlite":
        return float("inf")
    return disk_usage(Path(unquote(address.path)).parent).free


def _report(row: dict[str, Any], *, json: bool) -> None:
    line = f"{row['outcome']:<9} {row['session'][:12]}  {row['name']}: {counted(row['entries'], 'new entry')}"
    emit(json, row, line)
    sys.stdout.flush()


class Watch:
    """Files that are looked at again and again, and imported when they changed.

    Attributes:
        looks: How many times they were looked at.
        changes: How many imports brought something.
        entries: How many entries that were.
        files: How many files there were at the last look.
    """

    def __init__(
        self,
        importer: Importer,
        places: Callable[[], Iterable[Path]],
        *,
        room: Callable[[], bool] = lambda: True,
        report: Callable[[dict[str, Any]], None] = lambda _row: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch some places.

        Args:
            importer: The importer.
            places: Returns the files and folders to watch now. One that was returned is watched for, also when it is no longer.
            room: Returns whether the disk has room.
            report: Called with a row for each conversation of which something was imported.
            clock: Returns seconds.
        """
        self.looks = self.changes = self.entries = self.files = 0
        self._importer, self._places, self._room, self._report, self._clock = importer, places, room, report, clock
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._growing: dict[Path, float] = {}
        self._watched: dict[Path, bool] = {}
        self._refused: set[Path] = set()
        self._trouble = ""

    def status(self) -> str:
        """Return what it watches and what it did, in a line."""
        done = f"{counted(self.files, 'file')} watched; {counted(self.changes, 'change')}, {counted(self.entries, 'new entry')} imported"
        return f"{done}; waiting: {self._trouble}" if self._trouble else done

    def look(self) -> bool:
        """Import what is new since the last look, and return whether anything was.

        Raises:
            StoreError: The store is of no use any more. A full or busy one is: it is reported, and tried again at the next look.
        """
        try:
            stamps = {path: stamp for path in self._there() if (stamp := _stamp(path)) is not None}
        except OSError as error:  # a folder went away while it was read
            self._say(f"{error.filename}: {error.strerror}.")
            return False
        now, first = self._clock(), not self.looks
        self.looks, self.files = self.looks + 1, len(stamps)
        self._growing = {path: since for path, since in self._growing.items() if path in stamps}
        quiet = [path for path, since in self._growing.items() if now - since >= _QUIET]
        changed = {path for path, stamp in stamps.items() if self._stamps.get(path) != stamp}
        trouble, before = "", self.changes
        for path in in_order(sorted({*changed, *quiet})):
            if not self._room():
                trouble = "the disk of the store is almost full, and nothing is imported until it has more room."
                break
            self._importer.keep_source = first or path not in changed
            try:
                self._import(path)
            except StoreError as error:
                if not isinstance(error, StoreBusy) and error.reason not in _PASSING:
                    raise
                trouble = str(error)
                break
            self._stamps[path] = stamps[path]
            if self._importer.keep_source:
                self._growing.pop(path, None)
            else:
                self._growing[path] = now
        self._say(trouble)
        return self.changes > before

    def _import(self, path: Path) -> None:
        try:
            for row in rows_of(self._importer, path):
                if row["outcome"] != "unchanged":
                    self.changes, self.entries = self.changes + 1, self.entries + row["entries"]
                    self._report(row)
        except MissingFile:
            pass  # it was deleted in this moment
        except (InvalidInput, Erased) as error:
            if path not in self._refused:  # it may not be a transcript yet; a line at each change would say nothing new
                self._refused.add(path)
                said = error.message if "\n" in error.hint else str(error)  # one line: not the list of formats
                complain(f"palaver: {said.partition(chr(10))[0]}")

    def _there(self) -> Iterable[Path]:
        """Return the files in the watched places that are there; report places that come and go."""
        for place in self._places():
            self._watched.setdefault(place, True)
        for place, before in self._watched.items():
            self._watched[place] = there = os.path.lexists(place)
            if there != before:
                complain(f"palaver: {place}: {'is there again' if there else 'not there; waiting for it'}.", "yellow")
        return files_of([place for place, there in self._watched.items() if there])

    def _say(self, trouble: str) -> None:
        """Report that something keeps it from importing, or no longer does, once."""
        if trouble != self._trouble:
            self._trouble = trouble
            complain(f"palaver: {trouble or 'importing continues.'}", "yellow")


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file does, or the write-ahead log of a database; None when it is not there."""
    try:
        statuses = [path.stat(), *(log.stat() for log in (path.with_name(f"{path.name}-wal"),) if log.exists())]
    except OSError:
        return None
    return tuple(figure for status in statuses for figure in (status.st_mtime_ns, status.st_size))


# --- services -------------------------------------------------------------------------------------------------------------------------


def _arguments(
    paths: Sequence[Path], subject: str, every: float, keep_free: int, *, redact: bool, store: str | None
) -> list[str]:
    """Return the command that does the same from any folder."""
    url = store_url(store)
    words = [sys.executable, "-m", "palaver", "watch", *(str(path.expanduser().absolute()) for path in paths)]
    words += ["--store", url if "://" in url else str(Path(url).expanduser().absolute())]
    words += ["--subject", subject] * bool(subject) + ["--redact"] * redact
    return [*words, "--every", f"{every:g}", "--keep-free", str(keep_free)]


def _print_unit(kind: str, words: Sequence[str]) -> None:
    if kind not in _UNITS:
        raise BadParameter(f"choose one of {', '.join(_UNITS)}.", param_hint="--unit")
    keys = {name: os.environ[name] for name in ("PALAVER_KEYS", "PALAVER_PASSPHRASE_FILE") if name in os.environ}
    say((_systemd if kind == "systemd" else _launchd)(words, keys).rstrip())
    complain(f"Save it as {_UNITS[kind]}", "dim")


def _systemd(words: Sequence[str], variables: dict[str, str]) -> str:
    """Return a unit of the user's service manager.

    Source: systemd.service(5), "Command lines"; systemd.syntax(7), "Quoting".
    """

    def quoted(word: str) -> str:
        escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
        return f'"{escaped}"'

    lines = [f"Environment={quoted(f'{name}={value}')}" for name, value in variables.items()]
    return "\n".join(
        [
            "[Unit]",
            "Description=Import sessions of agents as they grow (palaver)",
            "",
            "[Service]",
            f"ExecStart={' '.join(quoted(word.replace('$', '$$')) for word in words)}",
            *lines,
            "Restart=on-failure",
            "RestartSec=30",
            "Nice=10",
            "IOSchedulingClass=idle",
            "",
            "[Install]",
            "WantedBy=default.target",
        ]
    )


def _launchd(words: Sequence[str], variables: dict[str, str]) -> str:
    """Return the property list of a user's agent.

    Source: launchd.plist(5).
    """
    job: dict[str, Any] = {
        "Label": "palaver.watch",
        "ProgramArguments": list(words),
        "EnvironmentVariables": variables,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
        "LowPriorityIO": True,
    }
    return plistlib.dumps(job).decode()
