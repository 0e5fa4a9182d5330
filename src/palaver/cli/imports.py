"""palaver import: sessions of other agents, and bundles, into the store."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from typer import Argument, BadParameter, Option, confirm

from palaver.browsing.search import index
from palaver.cli.options import JsonOption, RedactOption, StoreOption, opened, store_url
from palaver.cli.outcome import Exit, tell
from palaver.cli.terminal import complain, print_json, progress, say
from palaver.errors import Erased, InvalidInput, MissingFile, PalaverError, UnsupportedTranscript
from palaver.formats import ReadLimits
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.store import Capability
from palaver.transcripts import Importer, in_order, require_something

USUAL = {
    "Claude Code": ".claude/projects",
    "Codex": ".codex/sessions",
    "pi": ".pi/agent/sessions",
    "OpenClaw": ".openclaw/agents/*/sessions/*.jsonl",
    "Copilot CLI": ".copilot/session-state/*/events.jsonl",
    "Gemini CLI": ".gemini/tmp/*/chats",
    "OpenCode": ".local/share/opencode/opencode*.db",
}
"""Where agents keep their sessions, below the home folder: a pattern each."""

_SUFFIXES = frozenset({".jsonl", ".json", ".traj", ".eval", ".palaver", ".zst", ".gz", ".tar", ".zip", ".tgz"})
"""How the names of files end that are looked at in a folder."""


_PATH = "Transcripts and bundles (also .zst, .gz, .tar, .zip), or folders. Default: offer other agents' sessions in your home."


def run(
    paths: Annotated[list[Path] | None, Argument(metavar="PATH", help=_PATH)] = None,
    *,
    source: Annotated[bool, Option("--source/--no-source", help="Keep the file itself in the store.")] = True,
    subject: Annotated[str, Option("--subject", metavar="WHO", help="Whose data new sessions are.")] = "",
    redact: RedactOption = False,
    again: Annotated[bool, Option("--again", help="Import what was erased here again, as new sessions.")] = False,
    max_bytes: Annotated[
        int, Option(min=1, help="Bytes that a compressed file may unpack to.")
    ] = ReadLimits().unpacked,
    max_records: Annotated[int, Option(min=1, help="Lines or elements to read of a file.")] = ReadLimits().records,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="List every session and problem, and count the notes.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Import sessions that other agents recorded. Importing again adds only new entries; imported entries never change.

    A file that cannot be imported does not stop the others; with several files the exit code is then 1.
    """
    named = _offered(store) if not paths else [Path(path) for path in paths]
    files = list(files_of(named))
    if not files and named:
        raise InvalidInput(f"{', '.join(map(str, named))}: no transcript is in there.", hint="Name a file.")
    several = len(files) > 1
    limits = ReadLimits(unpacked=max_bytes, records=max_records)
    failures = [_refused(error, several=several, json=json) for error in _useless(store, files, limits)]
    if failures or not files:
        return _code(failures, files)
    told = _Total()
    with opened(store, create=True) as target:
        importer = Importer(target, keep_source=source, subject=subject, again=again, limits=limits)
        importer.redactor = PatternRedactor() if redact else None
        searched = Capability.SEARCH in target.capabilities
        with progress(hidden=json) as advance:
            for number, path in enumerate(files):
                advance(f"{number:,} of {counted(len(files), 'file')}: {path.name}", number, len(files))
                try:
                    for row in rows_of(importer, path):
                        told.add(row)
                        _report(row, verbose=verbose, json=json)
                        if searched and row["outcome"] != "unchanged":
                            index(target, row["session"])
                except (InvalidInput, Erased, MissingFile) as error:
                    failures.append(_refused(error, several=several, json=json))
        if not json and told.outcomes:
            say("\n".join(told.lines(len(failures), verbose=verbose)))
    return _code(failures, files)


def _code(failures: Sequence[Exit], files: Sequence[Path]) -> int:
    return Exit.OK if not failures else failures[0] if len(files) == 1 else Exit.FOUND


# --- files ----------------------------------------------------------------------------------------------------------------------------


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files to read; those of sub-agents come after the sessions that they belong to."""
    files: dict[Path, None] = {}
    for path in paths:
        below = sorted(path.rglob("*")) if path.is_dir() else (path,)
        files.update((file, None) for file in below if file == path or (file.suffix in _SUFFIXES and file.is_file()))
    yield from in_order(files)


def _offered(store: str | None) -> list[Path]:
    """Return the folders of other agents, if the user at the terminal wants them."""
    places = {name: sorted(Path.home().glob(pattern)) for name, pattern in USUAL.items()}
    there = {name: folders for name, folders in places.items() if folders}
    if not there:
        raise BadParameter("name a transcript or a folder; no other agent's sessions are in your home folder.")
    complain("Sessions of other agents:")
    for name, folders in there.items():
        files = counted(sum(1 for _ in files_of(folders)), "file")
        complain(f"  {name:<12} {files:>12}  ~/{USUAL[name]}")
    if not sys.stdin.isatty():
        named = " ".join(f"~/{USUAL[name]}" for name in there)
        into = "" if store is None else f" --store {quote(store)}"
        raise BadParameter(f"name what to import. All of it: `palaver import {named}{into}`")
    return (
        [folder for folders in there.values() for folder in folders]
        if confirm(f"Import all into {store_url(store)}?", err=True)
        else []
    )


def _useless(store: str | None, files: Sequence[Path], limits: ReadLimits) -> list[PalaverError]:
    """Return why nothing can be imported, where no store is there yet: then none is created in vain."""
    with suppress(MissingFile), opened(store):
        return []
    refused: list[PalaverError] = []
    for path in files:
        try:
            require_something(path, limits)
        except (InvalidInput, MissingFile) as error:
            refused.append(error)
        except OSError as error:
            refused.append(_unreadable(path, error))
        else:
            return []
    return refused


def _unreadable(path: Path, error: OSError) -> UnsupportedTranscript:
    return UnsupportedTranscript(path, f"it cannot be read ({error.strerror or error})")


def rows_of(importer: Importer, path: Path) -> Iterator[dict[str, Any]]:
    """Import a file, and yield a row for each session in it."""
    try:
        for imported in importer.import_path(path):
            names = ("format", "name", "outcome", "part", "dialogs", "entries", "records", "messages")
            row = {name: getattr(imported, name) for name in names} | {
                "file": str(imported.path),
                "session": imported.session_id,
            }
            lost = ("place", "reason", "code", "severity")
            yield row | {"lost": [{name: getattr(loss, name) for name in lost} for loss in imported.losses]}
    except MissingFile:
        raise
    except OSError as error:
        raise _unreadable(path, error) from error


# --- the report -----------------------------------------------------------------------------------------------------------------------


class _Total:
    """What an import came to.

    Attributes:
        outcomes: By session, what became of it.
        names: What the sessions are called.
        files: By session, its files; not those of its sub-agents.
        parts: How many files of sub-agents joined the sessions that they belong to.
        problems: How many losses there are.
        notes: How many remarks there are of each kind; nothing was lost there.
    """

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.names: list[str] = []
        self.files: dict[str, list[str]] = {}
        self.parts = 0
        self.problems = 0
        self.notes: Counter[str] = Counter()

    def add(self, row: dict[str, Any]) -> None:
        """Count a conversation. Those of sub-agents come after the session that they belong to."""
        session, outcome = row["session"], row["outcome"]
        self.parts += row["part"]
        if not row["part"] and row["file"] not in (files := self.files.setdefault(session, [])):
            files.append(row["file"])
        if session not in self.outcomes:
            self.outcomes[session] = outcome
            self.names.append(f"{session[:12]} {row['name']}")
        elif outcome != "unchanged" and self.outcomes[session] == "unchanged":
            self.outcomes[session] = "grown"
        self.problems += len(_lost(row))
        self.notes.update(loss["code"] for loss in row["lost"] if loss["severity"] != "loss")

    def lines(self, failed: int, *, verbose: bool) -> Iterator[str]:
        """Yield it in words: which files are not a session each, the notes where they are asked for, then the total."""
        told, sessions = Counter(self.outcomes.values()), counted(len(self.outcomes), "session")
        nothing = set(told) == {"unchanged"}
        if not nothing:
            yield from self._shared()
        if verbose and self.notes:
            kinds = ", ".join(f"{code.replace('_', ' ')} ({count:,})" for code, count in self.notes.most_common())
            yield f"Notes on what was read, nothing of it lost (--json lists them): {kinds}"
        kinds = ", ".join(f"{told[kind]:,} {kind}" for kind in ("new", "grown", "rewritten", "unchanged") if told[kind])
        said = f"Nothing new in {sessions}" if nothing else f"{sessions} imported ({kinds})"
        hint = "" if verbose or not self.problems else " (-v lists them)"
        problems = "" if nothing and not self.problems else f", {counted(self.problems, 'problem')}{hint}"
        files = f", {counted(failed, 'file')} not imported" if failed else ""
        yield f"{said}{problems}{files}{f': {self.names[0]}' if len(self.names) == 1 else ''}"

    def _shared(self) -> Iterator[str]:
        """Yield why there are fewer or more sessions than files, and which files these are."""
        for session, (first, *others) in ((session, files) for session, files in self.files.items() if files):
            if others:
                yield f"{first}, {', '.join(others)}: the same session, {session[:12]}, by the id that the files give it"
        several = {file: count for file, count in Counter(chain(*self.files.values())).items() if count > 1}
        for file, count in several.items():
            yield f"{file}: {counted(count, 'session')} in one file"
        if self.parts:
            yield f"{counted(self.parts, 'file')} of sub-agents: each joined the session that it belongs to"


def _lost(row: dict[str, Any]) -> list[dict[str, str]]:
    return [each for each in row["lost"] if each["severity"] == "loss"]


def _report(row: dict[str, Any], *, verbose: bool, json: bool) -> None:
    if json:
        print_json(row)
    elif verbose:
        size = f"{counted(row['messages'], 'message')}, {counted(row['dialogs'], 'dialog')}"
        say(f"{row['outcome']:<9} {row['session'][:12]}  {row['name']}  ({row['format']}: {size})")
        for loss in _lost(row):
            say(f"    {loss['place']}: {loss['reason']}")


def _refused(error: PalaverError, *, several: bool, json: bool) -> Exit:
    """Report a file that is not imported, in one line where it is one of several."""
    if json or not (several and isinstance(error, UnsupportedTranscript)):
        return tell(error, json=json)
    complain(f"palaver: {error.path}: {error.why.partition(chr(10))[0]}.", "red")
    return Exit.INPUT
