"""Options that several commands share, and the store, session and dialog that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

from typer import Argument, BadParameter, Option

from palaver.errors import InvalidInput, MissingFile, StoreError
from palaver.ids import now
from palaver.store import Store
from palaver.store.connect import open_for_user, user_store

_STORE = "The store: a file, sqlite:///path or postgresql://host/database. Default: $PALAVER_STORE, else one file in your data folder."
_SESSION = "A session (its id, the first 6 or more digits, or its name), or one of its dialogs (the same of its id)."


def tokens(text: str) -> int:
    """Read a number of tokens."""
    if text.isdecimal() and int(text):
        return int(text)
    raise BadParameter(f"{text!r} is not a number of tokens. Write digits alone, such as 50000.")


def day(text: str) -> str:
    """Read a day, as `2026-11-29` or as an age such as `7d`; return it in the first form."""
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        from palaver.session.retention import age_of  # noqa: PLC0415 - few commands read an age

        try:
            return datetime.fromtimestamp(now() - age_of(text), UTC).date().isoformat()
        except (InvalidInput, ValueError, OverflowError, OSError) as error:
            raise BadParameter(f"{text!r} is not a day. Write one such as 2026-11-29, or an age such as 7d.") from error


StoreOption: TypeAlias = Annotated[str | None, Option("--store", metavar="URL", help=_STORE)]
JsonOption: TypeAlias = Annotated[bool, Option("--json", help="Print JSON, one object per line.")]
YesOption: TypeAlias = Annotated[bool, Option("--yes", "-y", help="Do it; without this, only preview.")]
LimitOption: TypeAlias = Annotated[int, Option("--limit", "-n", min=1, help="List at most this many.")]
ModelOption: TypeAlias = Annotated[
    str, Option("--model", "-m", help="Count tokens for this model. Default: the session's.")
]
BudgetOption: TypeAlias = Annotated[
    int | None, Option("--budget", metavar="TOKENS", parser=tokens, help="The most tokens that a request may have.")
]
RedactOption: TypeAlias = Annotated[bool, Option("--redact", help="Remove keys and tokens.")]
OutputOption: TypeAlias = Annotated[Path | None, Option("--output", "-o", metavar="FILE", help="Write to this file.")]
SubjectOption: TypeAlias = Annotated[str | None, Option("--subject", metavar="WHO", help="Only data of this subject.")]
AgeOption: TypeAlias = Annotated[str, Option("--older-than", metavar="AGE", help="Such as 90d; s, m, h, d, w or y.")]
OneOption: TypeAlias = Annotated[str | None, Option("--session", "-s", metavar="SESSION", help="Only this session.")]
SinceOption: TypeAlias = Annotated[
    str, Option("--since", metavar="DAY", parser=day, help="From this day on: 2026-11-29, or 7d.")
]
UntilOption: TypeAlias = Annotated[
    str, Option("--until", metavar="DAY", parser=day, help="Up to and including this day.")
]
ToolOption: TypeAlias = Annotated[
    str, Option("--tool", metavar="NAME", help="Only sessions that this program recorded, such as codex.")
]
ModelFilterOption: TypeAlias = Annotated[
    str, Option("--model", "-m", metavar="NAME", help="Only models with this in their name.")
]
FolderOption: TypeAlias = Annotated[
    str, Option("--folder", metavar="NAME", help="Only sessions with this in their folder.")
]
SessionArgument: TypeAlias = Annotated[str, Argument(metavar="SESSION", help=_SESSION)]
EntryArgument: TypeAlias = Annotated[
    str, Argument(metavar="SESSION|HANDLE", help=f"{_SESSION} Or an entry (a handle).")
]


def store_url(named: str | None) -> str:
    """Return the store to use: the one named, else the user's own."""
    return user_store() if named is None else named


def filters_given(*filters: object) -> str:
    """Return the filters that were given, as they are written: `--since 2026-11-29 --tool codex`."""
    return " ".join(
        f"--{name} {text}" for each in filters for name, text in vars(each).items() if text and isinstance(text, str)
    )


@contextmanager
def opened(url: str | None, *, create: bool = False, writes: bool = False, read_only: bool = False) -> Iterator[Store]:
    """Open the store that was named, and close it after.

    Args:
        url: What was named, or None for the default.
        create: Whether to create it when it is missing.
        writes: Whether the command is of no use without writing; other commands also read a store that may not be written.
        read_only: Whether the command never writes.
    """
    name = store_url(url)
    if name in {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database with --store.")
    try:
        store = open_for_user(name, create=create, read_only=read_only)
    except MissingFile as error:
        hint = "Run `palaver import` to import what other agents left, or name a store with --store."
        raise MissingFile(error.path, what="store", hint=hint) from error
    except StoreError as error:
        if error.reason != "read_only" or create or writes:
            raise
        store = open_for_user(name, create=False, read_only=True)
    with closing(store):
        yield store
