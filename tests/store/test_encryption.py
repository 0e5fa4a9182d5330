"""Encryption at rest: the laws of a store hold with a key a session, nothing lies there in clear, and a destroyed key opens no copy."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from palaver.erasure.erase import erase, finish_erasures
from palaver.erasure.receipts import verify_receipt
from palaver.errors import InvalidInput, StoreDamaged, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.memory import Values
from palaver.session import Session
from palaver.store import KeyFolder, Keys, MemoryStore, SqliteStore, Store, open_store, verify_store
from palaver.store.erasing import Erasing
from palaver.store.postgres import PostgresStore
from palaver.store.protocol import Copyable
from palaver.store.sql.sealing import SessionSeal
from palaver.store.titles import title
from palaver.testing.store_laws import Backend, StoreLaws, begin
from palaver.testing.store_laws.backend import Begun, words
from palaver.transcripts import export
from palaver.transfer.copies import copy_store
from palaver.transfer.sync import sync
from tests.postgres import Server
from tests.privacy.planted import found, plant
from tests.store.backends import SqliteBackend
from tests.store.postgres_backend import PostgresBackend

READABLE = {"name", "subject", "workdir", "metadata", "identity", "path"}
"""Where the words of a session stay readable in its rows."""


def opened_body(keys: Keys, store: Store, dialog: DialogId, seq: int, sealed: bytes) -> bytes:
    """Open the bytes of a body as they lie in a store."""
    session = store.node(dialog).session_id
    store.close()
    return SessionSeal(session, keys.key(session)).opened(sealed, f"{dialog}:{seq}")


class EncryptedFile(SqliteBackend):
    """A file whose sessions have keys in a folder."""

    def __init__(self, folder: Path, keys: Keys | None = None) -> None:
        super().__init__(folder / "store.db")
        self.keys = keys or KeyFolder(folder / "keys", passphrase="p")

    def open(self) -> Store:
        """Open the file with its keys."""
        return SqliteStore(self.path, self.durability, keys=self.keys)

    def open_url(self, url: str) -> Store:
        """Open it by its address."""
        return open_store(url, create=False, keys=self.keys)

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body."""
        return opened_body(self.keys, self.open(), dialog_id, seq, self.lying(dialog_id, seq))


class EncryptedSchema(PostgresBackend):
    """A schema whose sessions have keys in a folder."""

    def __init__(self, server: Server, keys: Keys) -> None:
        self.keys = keys
        super().__init__(server, keys=keys)

    def open(self) -> Store:
        """Open the schema with its keys."""
        return PostgresStore(self.url, self.durability, keys=self.keys)

    def open_url(self, url: str) -> Store:
        """Open it by its address."""
        return open_store(url, create=False, keys=self.keys)

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body."""
        return opened_body(self.keys, self.open(), dialog_id, seq, self.lying(dialog_id, seq))


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> KeyFolder:
    """Return a folder of keys for all laws: each has sessions of its own, and to open a folder takes as long as a guess of its passphrase."""
    return KeyFolder(tmp_path_factory.mktemp("keys"), passphrase="p")


class TestEncryptedFile(StoreLaws):
    """One file."""

    @pytest.fixture
    def backend(self, tmp_path: Path, lasting: KeyFolder) -> Backend:
        """Return a store in a new file."""
        return EncryptedFile(tmp_path, lasting)


class TestEncryptedSchema(StoreLaws):
    """One schema of a server."""

    @pytest.fixture
    def backend(self, postgres_server: Server, lasting: KeyFolder) -> Backend:
        """Return a store in an empty schema."""
        return EncryptedSchema(postgres_server, lasting)


# --- what lies there ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    """Return a folder of keys beside the store's."""
    return KeyFolder(tmp_path / "keys", passphrase="p")


@pytest.fixture(params=["sqlite", "routed", "postgres", "partitioned"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an address at which nothing is yet."""
    if request.param == "sqlite":
        return str(tmp_path / "files" / "store.db")
    if request.param == "routed":
        return f"sqlite://{tmp_path}/one.db sqlite://{tmp_path}/two.db"
    server: Server = request.getfixturevalue("postgres_server")
    return server.url() + ("&partitions=3" if request.param == "partitioned" else "")


def test_only_what_is_listed_stays_readable(tmp_path: Path, keys: KeyFolder) -> None:
    """Of marks planted everywhere, file and log have those of the session's record and its sources; no digest of a body or payload is there."""
    files = tmp_path / "files"
    with SqliteStore(files / "store.db", keys=keys) as store:
        planted = plant(store, files, "one")
        assert found([files], planted.marks).keys() == READABLE
        digests = [header.digest for node in store.nodes(planted.session) for header in store.headers(node.dialog_id)]
        of_files = {blob for source in store.sources(planted.session) for blob in (source.raw, source.index)}
        named = [bytes.fromhex(blob) for blob in set(store.blob_ids(planted.session)) - of_files]
        lying = b"".join(path.read_bytes() for path in files.iterdir())
        assert len(named) >= 2
        assert [digest for digest in (*digests, *named) if digest in lying or digest.hex().encode() in lying] == []
        assert list(verify_store(store)) == []
    store = SqliteStore(files / "store.db", keys=KeyFolder(keys.folder, passphrase="p"))
    assert list(verify_store(store)) == []
    store.close()


def test_equal_payloads_of_two_sessions_are_two_rows(url: str, keys: KeyFolder) -> None:
    """Each session has its own, under a name that the other cannot make; a payload is not what says that two sessions share one."""
    with closing(open_store(url, keys=keys)) as store:
        one, two = begin(store), begin(store)
        blob, *_same = (store.put_blob(begun.session, b"both") for begun in (one, two, two))
        strays = list(cast("Erasing", store).strays())
        assert [stray.size for stray in strays] == [4, 4]
        assert blob not in {stray.blob_id for stray in strays}
        assert store.blob(one.session, blob) == store.blob(two.session, blob) == b"both"


def test_rows_in_another_place_are_damaged(tmp_path: Path) -> None:
    """A body that was put in the place of another, or a payload under the name of another, is not what was written; digests betray no equals."""
    backend = EncryptedFile(tmp_path)
    store = cast("SqliteStore", backend.open())
    begun = begin(store)
    begun.say(b"same", b"same", b"other")
    assert backend.run("SELECT count(DISTINCT digest) + count(DISTINCT check_sum) FROM headers") == 6
    backend.run("UPDATE bodies SET body = (SELECT body FROM bodies ORDER BY body_no LIMIT 1)")
    assert begun.said() == [b"same"]
    with pytest.raises(StoreDamaged):
        store.body(begun.dialog, 1)
    names = [store.put_blob(begun.session, data) for data in (b"x", b"y")]
    begun.say(*(b'{"digest":"%s"}' % name.encode() for name in names))
    backend.run("UPDATE blob_bytes SET data = (SELECT data FROM blob_bytes ORDER BY digest LIMIT 1)")
    assert [fault.code for fault in verify_store(store)].count("damaged_blob") == 1
    store.close()


# --- shredding ------------------------------------------------------------------------------------------------------------------


def test_shredded_session_is_in_no_copy(tmp_path: Path, keys: KeyFolder) -> None:
    """After an erasure no word of it is in file, log or folder of keys, and a copy made before opens nothing of it; the rest is there."""
    files, copy = tmp_path / "files", tmp_path / "copy"
    with SqliteStore(files / "store.db", keys=keys) as store:
        going, staying = plant(store, files, "going"), plant(store, files, "staying")
        shutil.copytree(files, copy)
        lost = KeyFolder(tmp_path / "keys", passphrase="p")
        receipt = erase(store, session=going.session)
        assert (receipt.shredded, receipt.complete) == ((going.session,), True)
        assert verify_receipt(store, receipt).holds
        assert found([files, keys.folder], going.marks) == {}
        assert sorted(path.name for path in keys.folder.iterdir()) == sorted([f"{staying.session}.key", "keys.json"])
        said = Session.open(store, staying.session).root.messages[0].text_content()
    assert found([copy], going.marks).keys() == READABLE
    with SqliteStore(copy / "store.db", keys=lost) as store:
        assert staying.marks["text"] in (Session.open(store, staying.session).root.messages[0].text_content()) == said
        for ask in (
            lambda: store.body(going.dialog, 0),
            lambda: list(store.bodies(going.dialog)),
            lambda: store.blob(going.session, BlobId("0" * 64)),
            lambda: export(store, going.session, "markdown"),
            lambda: store.last(going.dialog),
        ):
            with pytest.raises(StoreError, match="There is no key of session") as told:
                ask()
            assert (told.value.reason, told.value.hint != "") == ("no_key", True)
        with pytest.raises(StoreError, match="values are encrypted"):
            Values(Session(store, going.session)).list()
        store.update_session(going.session, name="")
        assert f"words {going.marks['workdir']} words" in {title(store, record) for record in store.sessions()}
        header = Begun(store, staying.session, staying.dialog).say(b"more")[0]
        with pytest.raises(StoreError, match="no key"):
            store.append(going.dialog, [words(b"more")], header.turn_head, header)
        again = erase(store, session=going.session)
        assert (again.complete, again.entries, list(store.sessions(subject="x"))) == (True, 0, [])
        assert found([copy], going.marks) == {}
        assert Session.open(store, staying.session).root.messages[0].text_content() == said


def test_stores_with_the_same_keys_are_shredded_together(tmp_path: Path, keys: KeyFolder) -> None:
    """To erase a synced session in one makes it unreadable in the other until it is erased there, too; with a folder of its own a store keeps it."""
    other = KeyFolder(tmp_path / "other", passphrase="q")
    names = {"one": keys, "same": keys, "apart": other}
    with ExitStack() as opened:
        one, same, apart = (
            opened.enter_context(SqliteStore(tmp_path / name, keys=each)) for name, each in names.items()
        )
        dialog = Session.create(one, "talk").root
        dialog.put_text("hello")
        Values(dialog).set("k", [1])
        for side in (same, apart):
            assert sync(one, side).added == (0, 1)
        erase(one, session=dialog.session_id)
    with ExitStack() as opened:
        one, same, apart = (
            opened.enter_context(SqliteStore(tmp_path / name, keys=each)) for name, each in names.items()
        )
        assert Session.open(apart, "talk").root.messages[0].text_content() == "hello"
        assert Values(Session.open(apart, "talk")).get("k") == [1]
        with pytest.raises(StoreError, match="no key"):
            _ = Session.open(same, "talk").root.messages
        (refused,) = sync(one, same).refused
        assert f"palaver erase {dialog.session_id}" in refused
        assert erase(same, session=dialog.session_id).complete
        assert (list(same.sessions()), sync(one, same).refused) == ([], ())


def test_erasure_waits_for_no_other_writer(postgres_server: Server, keys: KeyFolder) -> None:
    """While another transaction has written and not ended, a session is erased and its key destroyed; the other goes on."""
    url = postgres_server.url()
    with PostgresStore(url, wait=0.5, keys=keys) as store, PostgresStore(url, wait=0.5, keys=keys) as second:
        going, staying = begin(store), begin(second)
        going.say(b"secret")
        with second.transaction():
            staying.say(b"before")
            receipt = erase(store, session=going.session, thorough=False)
            assert receipt.shredded == (going.session,)
            assert not (keys.folder / f"{going.session}.key").exists()
            staying.say(b"after")
        assert staying.said() == [b"before", b"after"]


def test_key_that_cannot_be_destroyed_is_pending(tmp_path: Path, keys: KeyFolder) -> None:
    """While the service of the keys is down, the erasure is done and says what is due; finishing it later destroys the key."""

    class Down(Calling):
        def destroy(self, session_id: SessionId, /) -> None:
            raise ConnectionError(f"the service is down: {session_id}")

    with SqliteStore(tmp_path / "store.db", keys=Down(keys)) as store:
        session = Session.create(store, "s")
        session.root.put_text("secret")
        receipt = session.erase()
        assert [session.session_id in due and "the service is down" in due for due in receipt.pending] == [True]
    with SqliteStore(tmp_path / "store.db", keys=Calling(keys)) as store:
        assert [done.pending for done in finish_erasures(store)] == [()]
    assert [path.name for path in keys.folder.iterdir()] == ["keys.json"]


# --- keys -----------------------------------------------------------------------------------------------------------------------


class Calling:
    """A key service that an application calls."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def new(self, session_id: SessionId, /) -> bytes:
        """Ask for a key."""
        return self.keys.new(session_id)

    def key(self, session_id: SessionId, /) -> bytes:
        """Ask for a key."""
        return self.keys.key(session_id)

    def destroy(self, session_id: SessionId, /) -> None:
        """Destroy one."""
        self.keys.destroy(session_id)


def test_keys_that_do_not_fit_are_refused(url: str, tmp_path: Path, keys: KeyFolder) -> None:
    """An encrypted store without keys, or with others, says so and what to do; a plain one takes none, and nothing is written in clear."""

    class Wrong(Calling):
        def key(self, session_id: SessionId, /) -> bytes:
            return sha256(session_id.encode()).digest()

    with closing(open_store(url, keys=keys)) as store:
        begun = begin(store)
        begun.say(b"secret")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="is encrypted") as told:
            open_store(url, read_only=read_only)
        assert (told.value.reason, "keys=" in told.value.hint) == ("no_key", True)
    others: list[Keys] = [Wrong(keys), KeyFolder(tmp_path / "others", passphrase="p")]
    for other in others:
        with closing(open_store(url, keys=other)) as store:
            for ask in (lambda: store.body(begun.dialog, 0), lambda: list(store.bodies(begun.dialog))):
                with pytest.raises(StoreError, match="key") as told:
                    ask()
                assert told.value.reason == "no_key"
    with pytest.raises(StoreError, match="not the passphrase") as told:
        KeyFolder(keys.folder, passphrase="other")
    assert told.value.reason == "no_key"
    with pytest.raises(InvalidInput):
        KeyFolder(tmp_path / "third", passphrase="")


def test_plain_store_takes_no_keys(url: str, keys: KeyFolder) -> None:
    """Whether a store is encrypted is decided when it is made; one in memory never is."""
    open_store(url).close()
    with pytest.raises(StoreError, match="not encrypted") as told:
        open_store(url, keys=keys)
    assert told.value.reason == "not_encrypted"
    with pytest.raises(InvalidInput):
        open_store("memory:", keys=keys)


def test_key_is_made_once_and_destroyed_for_good(keys: KeyFolder) -> None:
    """Whoever asks for a session's key gets the same one; a destroyed one is nowhere, and its file in the place of another opens nothing."""
    one, two = SessionId("a" * 32), SessionId("b" * 32)
    key = keys.new(one)
    again = KeyFolder(keys.folder, passphrase="p")
    assert key == again.new(one) == again.key(one) != again.new(two)
    assert {path.stat().st_mode & 0o777 for path in keys.folder.iterdir()} == {0o600}
    assert keys.folder.stat().st_mode & 0o777 == 0o700
    assert key not in b"".join(path.read_bytes() for path in keys.folder.iterdir())
    shutil.copy(keys.folder / f"{two}.key", keys.folder / f"{one}.key")
    with pytest.raises(StoreError, match="was changed"):
        keys.key(one)
    for _ in range(2):
        keys.destroy(one)
    with pytest.raises(StoreError, match="no key"):
        again.key(one)
    assert keys.new(one) != key


# --- in and out -----------------------------------------------------------------------------------------------------------------


def test_copies_are_readable_for_who_has_the_key(url: str, tmp_path: Path, keys: KeyFolder) -> None:
    """A plain store is copied into an encrypted one and back, and both are equal; a bundle is plain text."""
    plain, back = MemoryStore(), MemoryStore()
    planted = plant(plain, tmp_path, "one")
    with closing(open_store(url, keys=keys)) as store:
        for source, target in ((plain, store), (store, back), (plain, back)):
            copied = copy_store(cast("Copyable", source), cast("Copyable", target))
            assert (copied.differences, copied.sessions) == ((), 1)
        bundles = [b"".join(export(each, planted.session, "bundle").pieces) for each in (plain, store)]
    assert planted.marks["text"].encode() in bundles[0] == bundles[1]


def test_encrypted_store_is_not_searched(tmp_path: Path, keys: KeyFolder) -> None:
    """No word goes into an index: indexing and searching say that there is none."""
    with SqliteStore(tmp_path / "store.db", keys=keys) as store:
        session = Session.create(store, "s")
        asked: tuple[Callable[[], Any], ...] = (lambda: session.search("word"), lambda: store.search("word"))
        for ask in asked:
            with pytest.raises(StoreError) as told:
                ask()
            assert told.value.reason == "unsupported"
