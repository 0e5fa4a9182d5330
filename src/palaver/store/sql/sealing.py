"""Encryption at rest: what a row has of a session's words is sealed with the session's key before it is written, and opened when it is read.

Sealed are bodies, payloads and named values, the names of payloads (the SHA-256 of their bytes), and of a header its digest and its checksum: of a
short text both would say which one it was. Everything else of a header stays readable, so that views are cut without a key: kind, role, ids of calls,
times, lengths. A body is bound to its dialog and number, a payload to its name, values to their session: a row that was moved cannot be opened.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hmac import digest as hmac_digest
from threading import local
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from palaver.errors import StoreDamaged, StoreError
from palaver.ids import SessionId
from palaver.log import Header
from palaver.log.headers import DIGEST_BYTES
from palaver.messages import FrozenDict
from palaver.store.keys import Keys
from palaver.store.protocol import VALUES, SessionRecord
from palaver.store.records import frozen_metadata, metadata_text
from palaver.store.sql.database import Row, Rows
from palaver.store.sql.rows import missing

_MARK_BYTES, _NONCE_BYTES, _CHECK_BYTES = 4, 12, 4
_CHANGED_BITS = 4  # of a mark that was damaged; that of another key differs in about 16
_KEYS_KEPT = 1024
_DIGEST, _CHECK = Header._fields.index("digest"), len(Header._fields)

_HEADERS = dict.fromkeys(("newest", "header_get", "headers_up", "headers_down", "latest_of_kind", "tail"), 0) | {
    "tail_of_root": 1
}
"""Statements that return headers with their checksums: the column with which these begin."""

_DIGEST_AT = {name: begin + _DIGEST for name, begin in _HEADERS.items()} | {"body_get": 1, "bodies_up": 3}
_BODY_AT = {"body_get": 0, "bodies_up": 1, "tail": -1, "tail_of_root": -1}
"""Statements that return digests of headers, and bodies: their columns."""

_NAMES = {"blob_ids", "references_of"}
"""Statements that return names of payloads."""

_PAYLOADS = {"entry_reference_add", "reference_add"} | {
    f"blob_{what}" for what in ("touch", "add", "get", "has", "lock", "named", "remove", "bytes_remove")
}
"""Statements that ask for a payload by its digest."""

_SEALED = _PAYLOADS | {"entry_add", "body_set", "header_set", "is_newest"}
_OPENED = {*_DIGEST_AT, *_NAMES, "blob_get"}


class SessionSeal:
    """What one session's key opens."""

    def __init__(self, session_id: SessionId, key: bytes) -> None:
        def derived(what: bytes, kind: str = "sha256") -> bytes:
            return hmac_digest(key, b"palaver " + what, kind)

        self._session_id = session_id
        self._mark = derived(b"mark")[:_MARK_BYTES]
        self._bytes = AESGCM(derived(b"bytes"))
        self._names = AESSIV(derived(b"names", "sha512"))
        self._block = Cipher(algorithms.AES(derived(b"digests")), modes.ECB())  # noqa: S305 - of one block, which is a digest
        self._own = local()

    def seal(self, data: bytes, place: str) -> bytes:
        """Return bytes that only the key opens, and only at their place."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._mark + nonce + self._bytes.encrypt(nonce, bytes(data), place.encode())

    def opened(self, sealed: bytes, place: str) -> bytes:
        """Return what was sealed; where that was changed, the bytes as they are, which no digest matches.

        Raises:
            StoreError: They were sealed with another key.
        """
        mark, nonce, data = (
            sealed[:_MARK_BYTES],
            sealed[_MARK_BYTES:][:_NONCE_BYTES],
            sealed[_MARK_BYTES + _NONCE_BYTES :],
        )
        try:
            return self._bytes.decrypt(nonce, data, place.encode())
        except (InvalidTag, ValueError):
            if (int.from_bytes(mark) ^ int.from_bytes(self._mark)).bit_count() <= _CHANGED_BITS:
                return sealed
            raise StoreError(
                f"The key of session {self._session_id} is not the one that it was written with.",
                reason="no_key",
                hint="Open the store with the keys that it was made with.",
            ) from None

    def name(self, digest: bytes) -> bytes:
        """Return the name of a payload, the same for the same one; of what names none, as it is."""
        return self._names.encrypt(digest, None) if digest else digest

    def digest(self, name: bytes) -> bytes:
        """Return the SHA-256 of a payload by its name; of what is no name, as it is."""
        try:
            return self._names.decrypt(name, None)
        except (InvalidTag, ValueError):
            return name

    def masked(self, digest: bytes, place: str) -> bytes:
        """Return a digest of a header as it is stored."""
        return self._turn("encryptor", _tweaked(digest, place))

    def unmasked(self, stored: bytes, place: str) -> bytes:
        """Return a digest as it was; what is none, as it is."""
        return _tweaked(self._turn("decryptor", stored), place) if len(stored) == DIGEST_BYTES else stored

    def check(self, stored: object, check: int) -> int:
        """Return the checksum of a header as it is stored beside a masked digest, and back."""
        if not (isinstance(stored, bytes) and len(stored) == DIGEST_BYTES and isinstance(check, int)):
            return check
        pad = self._turn("encryptor", stored[::-1])
        return check ^ int.from_bytes(pad[:_CHECK_BYTES])

    def _turn(self, way: str, block: bytes) -> bytes:
        """Encrypt or decrypt one block; a cipher belongs to one thread, for making one takes longer than using it."""
        cipher = getattr(self._own, way, None)
        if cipher is None:
            cipher = getattr(self._block, way)()
            setattr(self._own, way, cipher)
        made: bytes = cipher.update(block)
        return made


def _tweaked(block: bytes, place: str) -> bytes:
    """Return a block changed by its place, and back: equal digests at different places become different ones."""
    dialog, _, seq = place.partition(":")
    return (int.from_bytes(block) ^ int(dialog, 16) ^ int(seq)).to_bytes(DIGEST_BYTES)


class Seals:
    """The seals of a store's sessions, those used last.

    Attributes:
        statements: The names of the store's statements, by their SQL.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._known: dict[str, SessionSeal] = {}
        self._sessions: dict[str, SessionId] = {}
        self.statements: Mapping[str, str] = {}

    def begin(self, session_id: SessionId) -> None:
        """Make the key of a new session."""
        self._keep(session_id, self._keys.new(session_id))

    def of_session(self, session_id: SessionId) -> SessionSeal:
        """Return the seal of a session.

        Raises:
            StoreError: Its key is not there (`no_key`).
        """
        return self._known.get(session_id) or self._keep(session_id, self._keys.key(session_id))

    def _keep(self, session_id: SessionId, key: bytes) -> SessionSeal:
        if len(self._known) >= _KEYS_KEPT:
            self._known.clear()
        self._known[session_id] = seal = SessionSeal(session_id, key)
        return seal

    def of_dialog(self, rows: Rows, dialog_id: str) -> SessionSeal | None:
        """Return the seal of a dialog's session; None where there is no such dialog."""
        session_id = self._sessions.get(dialog_id)
        if session_id is None:
            row = rows.one("session_of", dialog_id=dialog_id)
            if row is None:
                return None
            if len(self._sessions) >= _KEYS_KEPT:
                self._sessions.clear()
            self._sessions[dialog_id] = session_id = SessionId(row[0])
        return self.of_session(session_id)

    def sealed(self, record: SessionRecord) -> SessionRecord:
        """Return a session's record with its named values sealed."""
        room = record.metadata.get(VALUES)
        if not isinstance(room, Mapping):
            return record
        data = self.of_session(record.session_id).seal(metadata_text(room).encode(), record.session_id)
        return replace(record, metadata={**record.metadata, VALUES: base64.b64encode(data).decode()})

    def opened(self, record: SessionRecord) -> SessionRecord:
        """Return a session's record as it was written; where its key is not there its named values stay sealed: everything else is readable.

        Raises:
            StoreDamaged: The values were changed.
        """
        text = record.metadata.get(VALUES)
        if not isinstance(text, str):
            return record
        try:
            data = self.of_session(record.session_id).opened(base64.b64decode(text), record.session_id)
            room = frozen_metadata(data.decode())
        except ValueError as error:
            raise StoreDamaged(f"session {record.session_id}", f"its values cannot be read ({error})") from error
        except StoreError as error:
            if error.reason != "no_key":
                raise
            return record
        return replace(record, metadata=FrozenDict({**record.metadata, VALUES: room}))

    def destroy(self, session_id: SessionId) -> None:
        """Destroy the key of a session."""
        self._known.pop(session_id, None)
        self._keys.destroy(session_id)

    def rows(self, rows: Rows) -> Rows:
        """Return a connection through which rows are sealed and opened."""
        self.statements = self.statements or {text: name for name, text in rows.sql.items()}
        return _SealedRows(rows, self)


class _SealedRows(Rows):
    """A connection that seals the values of statements, and opens the rows that they return.

    A statement says whose key it needs by the values `dialog_id` or `of`, a session's id.
    """

    def __init__(self, rows: Rows, seals: Seals) -> None:
        self.connection, self.sql = rows.connection, rows.sql
        self._rows = rows
        self._seals = seals

    def ask(self, sql: str, values: Mapping[str, object]) -> Iterator[Row]:
        """Execute SQL with sealed values, and return what opens its rows."""
        statement = self._seals.statements.get(sql, "")
        rows = self._rows.ask(sql, self._sealed(statement, values))
        return self._opened(statement, values, rows) if statement in _OPENED else rows

    def asked(self, statement: str, /, **values: object) -> Callable[[], Row | None]:
        """Execute a statement that returns nothing sealed, and return what returns its first row."""
        return self._rows.asked(statement, **self._sealed(statement, values))

    def require(self, statement: str, /, **values: object) -> None:
        """Let the transaction fail unless a statement returns a row."""
        self._rows.require(statement, **self._sealed(statement, values))

    def _seal(self, values: Mapping[str, Any]) -> SessionSeal | None:
        """Return the seal that a statement needs; None where it names no session, or a dialog that is not there."""
        of = values.get("of", values.get("session_id"))
        if of is not None:
            return self._seals.of_session(of)
        return self._seals.of_dialog(self._rows, values["dialog_id"]) if "dialog_id" in values else None

    def _sealed(self, statement: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values of a statement as they are written."""
        if statement not in _SEALED:
            return values
        seal = self._seal(values)
        if seal is None:
            if "body" in values or "data" in values:  # nothing is ever written in clear
                raise missing(self._rows, "dialog", values.get("dialog_id", ""))
            return values
        if statement in _PAYLOADS:
            name = seal.name(values["digest"])
            data = {"data": seal.seal(values["data"], name.hex())} if "data" in values else {}
            return {**values, "digest": name, **data}
        return _sealed_entry(seal, values)

    def _opened(self, statement: str, values: Mapping[str, Any], rows: Iterator[Row]) -> Iterator[Row]:
        """Yield rows as they were written."""
        seal: SessionSeal | None = None
        for row in rows:
            seal = seal or self._seal(values)
            yield row if seal is None else tuple(_opened_row(seal, statement, values, list(row)))


def _sealed_entry(seal: SessionSeal, values: Mapping[str, Any]) -> Mapping[str, Any]:
    place = f"{values['dialog_id']}:{values['seq']}"
    made = dict(values)
    if "check_sum" in values:
        made["digest"] = seal.masked(values["digest"], place)
        made["check_sum"] = seal.check(made["digest"], values["check_sum"])
    if "body" in values:
        made["body"] = seal.seal(values["body"], place)
    return made


def _opened_row(seal: SessionSeal, statement: str, values: Mapping[str, Any], row: list[Any]) -> list[Any]:
    """Open the columns of a row. A value that is damaged stays as it is, for whoever reads the row to judge."""
    if statement == "blob_get":
        return [seal.opened(row[0], seal.name(values["digest"]).hex())]
    if statement in _NAMES:
        return [seal.digest(row[0])]
    begin = _HEADERS.get(statement, 0)
    seq = values.get("seq", row[begin])
    if not isinstance(seq, int):
        return row
    place = f"{values.get('dialog_id', row[0])}:{seq}"
    if statement in _HEADERS:
        row[begin + _CHECK] = seal.check(row[begin + _DIGEST], row[begin + _CHECK])
    for columns, change in ((_DIGEST_AT, seal.unmasked), (_BODY_AT, seal.opened)):
        column = columns.get(statement)
        if column is not None and isinstance(row[column], bytes):
            row[column] = change(row[column], place)
    return row
