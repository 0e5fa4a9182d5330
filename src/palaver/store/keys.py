"""Keys of sessions, for a store that encrypts what is said (`open_store(url, keys=...)`).

A key never lies in the store: else a backup of the store would open itself, and destroying a key would not reach it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import scrypt, sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from palaver.errors import InvalidInput, MissingExtra, StoreError
from palaver.files import flush_names, write_once
from palaver.ids import SessionId

KEY_BYTES = 32
"""The length of a session's key: AES-256."""

_PRIVATE_FOLDER = 0o700
_SALT_BYTES, _NONCE_BYTES = 16, 12
_COST = {"n": 1 << 15, "r": 8, "p": 1}  # 32 MiB and about a tenth of a second for each guess
_MEMORY = 1 << 26
_ABOUT = "keys.json"
_ID = re.compile("[0-9a-f]{32}")
_CHECK = "keys of palaver"


class Keys(Protocol):
    """Where the keys of sessions lie: a folder (`KeyFolder`), or a key service that an application calls.

    Several threads and processes may ask at once. What a method raises leaves the store's method as it is.
    """

    def new(self, session_id: SessionId, /) -> bytes:
        """Return the key of a session, 32 bytes, and make one where it has none. It is durable when this returns."""
        ...

    def key(self, session_id: SessionId, /) -> bytes:
        """Return the key of a session.

        Raises:
            StoreError: There is none (`no_key`).
        """
        ...

    def destroy(self, session_id: SessionId, /) -> None:
        """Destroy the key of a session, with every copy of it. One that is not there is destroyed."""
        ...


class KeyFolder:
    """Keys in a folder, a file for each session, encrypted under a passphrase (scrypt, AES-GCM).

    It is for one machine. Back it up apart from the store, and let no backup of it live longer than data may that was erased: whoever has an old
    copy of a key's file, the passphrase and a copy of the store can read the session.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: str | os.PathLike[str], *, passphrase: str) -> None:
        """Open a folder of keys; one that is not there is made, with mode 0700.

        Args:
            folder: The folder; `~` is the home folder.
            passphrase: Its passphrase. It cannot be changed or recovered.

        Raises:
            InvalidInput: The passphrase is empty.
            MissingExtra: The extra `encrypt` is not installed.
            StoreError: It is another passphrase than the folder was made with (`no_key`), or the folder holds something else.
        """
        if not passphrase:
            raise InvalidInput("A folder of keys needs a passphrase.")
        self.folder = Path(folder).expanduser()
        self.folder.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
        about = self.folder / _ABOUT
        if not about.exists():
            salt = os.urandom(_SALT_BYTES)
            sealed = _seal(_master(passphrase, salt, _COST), _CHECK.encode(), _CHECK)
            write_once(about, json.dumps({"scrypt": _COST, "salt": salt.hex(), "check": sealed.hex()}).encode())
        try:
            said = json.loads(about.read_text("utf-8"))
            self._master = _master(passphrase, bytes.fromhex(said["salt"]), said["scrypt"])
            sealed = bytes.fromhex(said["check"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise StoreError(f"{about} is not the description of a folder of keys: {error}.") from error
        if _opened(self._master, sealed, _CHECK) is None:
            hint = "Give the passphrase that the folder was made with. It cannot be recovered."
            raise StoreError(f"This is not the passphrase of the keys in {self.folder}.", reason="no_key", hint=hint)

    def new(self, session_id: SessionId, /) -> bytes:
        """Return the key of a session, and make one where it has none."""
        write_once(self._file(session_id), _seal(self._master, os.urandom(KEY_BYTES), session_id))
        return self.key(session_id)

    def key(self, session_id: SessionId, /) -> bytes:
        """Return the key of a session."""
        try:
            key = _opened(self._master, self._file(session_id).read_bytes(), session_id)
        except FileNotFoundError:
            raise StoreError(
                f"There is no key of session {session_id} in {self.folder}.",
                reason="no_key",
                hint="Open the store with the keys that it was made with. Where the session was erased, its key is destroyed.",
            ) from None
        if key is None:
            raise StoreError(f"The key of session {session_id} in {self.folder} was changed.", reason="no_key")
        return key

    def destroy(self, session_id: SessionId, /) -> None:
        """Overwrite the key of a session and delete its file."""
        with suppress(FileNotFoundError), self._file(session_id).open("r+b") as file:
            file.write(os.urandom(os.fstat(file.fileno()).st_size))
            file.flush()
            os.fsync(file.fileno())
        self._file(session_id).unlink(missing_ok=True)
        flush_names(self.folder)

    def _file(self, session_id: SessionId) -> Path:
        plain = _ID.fullmatch(session_id)  # a store may come from someone else, with ids that lead out of the folder
        return self.folder / f"{session_id if plain else sha256(session_id.encode()).hexdigest()}.key"


def _master(passphrase: str, salt: bytes, cost: dict[str, int]) -> Any:  # noqa: ANN401 - cryptography's AESGCM
    if find_spec("cryptography") is None:
        raise MissingExtra("An encrypted store", "encrypt", package="cryptography")
    kind: Callable[[bytes], Any] = import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM
    return kind(scrypt(passphrase.encode(), salt=salt, **cost, maxmem=_MEMORY, dklen=KEY_BYTES))


def _seal(master: Any, data: bytes, name: str) -> bytes:  # noqa: ANN401
    nonce = os.urandom(_NONCE_BYTES)
    sealed: bytes = nonce + master.encrypt(nonce, data, name.encode())
    return sealed


def _opened(master: Any, sealed: bytes, name: str) -> bytes | None:  # noqa: ANN401
    invalid: type[Exception] = import_module("cryptography.exceptions").InvalidTag
    try:
        opened: bytes = master.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
    except (invalid, ValueError):
        return None
    return opened
