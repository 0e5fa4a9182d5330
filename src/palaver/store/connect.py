"""From an address to a store, and from a reference to a session."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from palaver.errors import Ambiguous, InvalidInput, MissingExtra, MissingFile, NotFound, StoreError
from palaver.folders import data_folder
from palaver.ids import SessionId
from palaver.store.keys import KeyFolder, Keys
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Durability, SessionRecord, Store
from palaver.store.records import MIN_PREFIX_DIGITS
from palaver.store.sqlite import SqliteStore

StoreLike: TypeAlias = Store | str | os.PathLike[str]
"""A store, or the address of one."""

_POSTGRES = {"postgres", "postgresql"}
_MEMORY = {"memory:", ":memory:"}  # SQLite spells it the second way; nobody means a file of that name


def open_store(
    url: str,
    *,
    create: bool = True,
    read_only: bool = False,
    durability: Durability = Durability.FULL,
    keys: Keys | None = None,
) -> Store:
    """Open the store at an address.

    Args:
        url: `memory:`, `sqlite:///absolute/path`, the path of a file, where `~` is the home folder, or
            `postgresql://user@host/database?schema=name`, which needs the extra `postgres`; `partitions=16` makes a new one in partitions.
            Several addresses with blanks between them are one store over several databases (`palaver.store.routed`).
        create: False to raise when nothing is there.
        read_only: True to refuse every write.
        durability: What an acknowledged write survives; a store in memory has its own.
        keys: The keys of its sessions, for a store that encrypts what is said, from its first moment on; needs the extra `encrypt`.

    Raises:
        InvalidInput: The address names no kind of store, or one in memory with keys.
        MissingExtra: The extra `postgres` or `encrypt` is needed and not installed.
        MissingFile: Nothing is there, and `create` is False.
        StoreError: The store cannot be opened: it is encrypted and there are no keys (`no_key`), or the other way round (`not_encrypted`).
    """
    if keys is not None and find_spec("cryptography") is None:
        raise MissingExtra("An encrypted store", "encrypt", package="cryptography")
    how: dict[str, Any] = {"create": create, "read_only": read_only, "durability": durability, "keys": keys}
    if url in _MEMORY:
        if keys is not None:
            raise InvalidInput("A store in memory is not written to disk, so it takes no keys.")
        if not create:
            raise MissingFile(url, what="store", hint="A store in memory is always a new one.")
        return MemoryStore()
    if len(urls := url.split()) > 1 and all("://" in part for part in urls):
        return _routed(urls, how)
    if url.partition(":")[0] in _POSTGRES:
        return _postgres(url, how)
    return SqliteStore(_file(url), **how)


def opened_store(store: StoreLike | None, *, create: bool) -> tuple[Store, bool]:
    """Return a store, and whether it was opened here, so that the caller closes it; None is a new one in memory.

    Raises:
        InvalidInput: It is neither a store nor the address of one.
        MissingFile: Nothing is at the address, and `create` is False.
        StoreError: What is there cannot be opened.
    """
    if store is None or isinstance(store, str | os.PathLike):
        return open_store("memory:" if store is None else os.fspath(store), create=create), True
    if not hasattr(store, "transaction"):
        raise InvalidInput(f"store is {store!r}.", hint="Give a store, or the path or address of one.")
    return store, False


def shown(store: Store) -> str:
    """Return the address of a store for people: three asterisks replace a password."""
    return " ".join(map(_without_password, store.url.split(" ") if "://" in store.url else [store.url]))


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in _POSTGRES:
        return url
    base, mark, query = rest.partition("?")
    user, at, host = base.rpartition("@")
    name, colon, _ = user.partition(":")
    asked = [word.partition("=") for word in query.split("&")]
    query = "&".join(f"{key}{is_}{'***' if 'password' in key else value}" for key, is_, value in asked)
    return f"{scheme}://{name}{colon}{'***' if colon else ''}{at}{host}{mark}{query}"


def _postgres(url: str, how: Mapping[str, Any]) -> Store:
    """Open a store in PostgreSQL. psycopg takes as long to import as everything else together, so it is imported here."""
    if find_spec("psycopg") is None:
        raise MissingExtra("A store in PostgreSQL", "postgres", package="psycopg")
    store: Store = import_module("palaver.store.postgres").PostgresStore(url, **how)
    return store


def _routed(urls: Sequence[str], how: Mapping[str, Any]) -> Store:
    """Open several databases as one store; few need it, so it is imported here."""
    routed = import_module("palaver.store.routed")
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(open_store(url, **how))) for url in urls]
        store: Store = routed.RoutedStore(stores)
        opened.pop_all()
        return store


def _file(url: str) -> Path:
    scheme, separator, rest = url.partition(":")
    if not separator or "/" in scheme or len(scheme) == 1:
        if not url.strip():
            raise InvalidInput("A store needs an address: a file's path, sqlite:///absolute/path or memory:.")
        return Path(url).expanduser()
    if scheme != "sqlite":
        raise InvalidInput(
            f"{url!r} is not the address of a store.",
            hint="Give a file's path, sqlite:///absolute/path, postgresql://host/database or memory:.",
        )
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or not path.startswith("/") or path == "/" or not rest.startswith("///"):
        raise InvalidInput(f"{url!r} does not name a file.", hint="An address looks like sqlite:///absolute/path.")
    return Path(path)


def environment_keys() -> Keys | None:
    """Return the keys that the user's environment names, or None: the folder `PALAVER_KEYS`, its passphrase in the file `PALAVER_PASSPHRASE_FILE`.

    Raises:
        InvalidInput: Only one of the two is set, or the file cannot be read.
    """
    folder, file = os.environ.get("PALAVER_KEYS"), os.environ.get("PALAVER_PASSPHRASE_FILE")
    if not folder and not file:
        return None
    if not (folder and file):
        raise InvalidInput(
            "Set both PALAVER_KEYS, a folder of keys, and PALAVER_PASSPHRASE_FILE, a file with its passphrase."
        )
    try:
        passphrase = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"The passphrase cannot be read from {file}: {error}.") from error
    return KeyFolder(folder, passphrase=passphrase)


def open_for_user(
    url: str, *, create: bool = True, read_only: bool = False, durability: Durability = Durability.FULL
) -> Store:
    """Open a store for a command: with the keys of the user's environment where it is new or encrypted (`environment_keys`)."""
    keys = environment_keys()
    try:
        return open_store(url, create=create, read_only=read_only, durability=durability, keys=keys)
    except StoreError as error:
        if error.reason != "not_encrypted":
            raise
    return open_store(url, create=create, read_only=read_only, durability=durability)


def user_store() -> str:
    """Return the address of the user's own store: that of the environment, else the one file in the user's data folder."""
    return os.environ.get("PALAVER_STORE") or str(data_folder() / "palaver.db")


# --- sessions -------------------------------------------------------------------------------------------------------------------------

_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(rf"[0-9a-f]{{{MIN_PREFIX_DIGITS},31}}")
_FEW = re.compile(rf"[0-9a-f]{{1,{MIN_PREFIX_DIGITS - 1}}}")
_MOST_NAMED = 10  # in an error
_COMPARED = 1000  # newest sessions whose names are compared with one that is unknown


class FoundSession(NamedTuple):
    """A session that was found.

    Attributes:
        record: The session.
        others: How many other sessions have the same name; this one is the latest.
    """

    record: SessionRecord
    others: int = 0


def find_session(store: Store, reference: str) -> FoundSession:
    """Find a session by its id, its name, or the first digits of its id (at least 6).

    Raises:
        NotFound: No session matches; `close` has similar names.
        Erased: The session with this id was erased.
        Ambiguous: Several ids begin with these digits.
    """
    if _ID.fullmatch(reference):
        try:
            return FoundSession(store.session(SessionId(reference)))
        except NotFound:
            pass  # a name may look like an id
    named = list(store.sessions(name=reference))
    if named:
        return FoundSession(named[0], len(named) - 1)
    begun = store.sessions_beginning(reference, _MOST_NAMED) if _PREFIX.fullmatch(reference) else ()
    if len(begun) > 1:
        raise Ambiguous(reference, list(begun))
    if begun:
        return FoundSession(store.session(begun[0]))
    trash = "One of this name is in the trash." if next(store.sessions(name=reference, trashed=True), None) else ""
    few = f"Of an id, give at least {MIN_PREFIX_DIGITS} digits." if _FEW.fullmatch(reference) else ""
    raise NotFound(
        reference,
        what="session",
        hint=trash or few,
        close=get_close_matches(reference, sorted({record.name for record in store.sessions(limit=_COMPARED)})),
    )


def only_session(store: Store, reference: str) -> SessionRecord:
    """Return the one session of an id, a name or the first digits of an id, for callers that destroy something.

    Raises:
        NotFound: There is none.
        Ambiguous: Several have this name; the error lists their ids.
    """
    record, others = find_session(store, reference)
    if others:
        named = [session.session_id for session in store.sessions(name=reference)]
        raise Ambiguous(reference, named, hint="Name the session by its id.")
    return record
