"""Payloads and the entries that name them: whoever else removes what nothing names, at whichever moment, takes nothing that is named in the end."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, cast

import pytest

from palaver import Dialog, Session, erase, rebuild
from palaver.agent.inbox import beside
from palaver.errors import Erased, StoreBusy, StoreError
from palaver.ids import BlobId
from palaver.log import Inbox
from palaver.messages import ImageContent, TextContent, UserMessage
from palaver.store import MemoryStore, SqliteStore, Store, verify_store
from palaver.store.copying import copy_store
from palaver.store.erasing import Erasing, Stray, named_in
from palaver.store.keeping import keeping
from palaver.store.postgres import PostgresStore
from palaver.store.sweeping import LEAST_AGE, SweepPlan, sweep
from palaver.testing.store_laws import Begun, begin
from palaver.transcripts import Importer, export_bundle, import_bundle
from palaver.transcripts.repair import repair
from tests import postgres
from tests.store.backends import SqliteBackend
from tests.store.postgres_backend import PostgresBackend, emptied

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
LOOK = UserMessage(contents=(TextContent("Look."), ImageContent(images=(PNG,))))
OTHER = UserMessage(contents=(TextContent("And here."), ImageContent(images=(PNG + b"other",))))


class Rivalled:
    """A store in which somebody removes all that nothing names, before each write that no block of its writer holds off."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        self._depth = 0
        self.taken = 0
        for name in dir(self._store):  # what a store can do is looked for on the object itself since Python 3.12
            if not name.startswith("_") and not hasattr(type(self), name):
                found = getattr(self._store, name)
                setattr(self, name, self._rivalled(found) if name in self._WRITES else found)

    _WRITES = ("append", "annotate", "take_entries", "put_source", "create_dialog", "update_session", "put_blob")

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold others off."""
        self._rival()
        self._depth += 1
        try:
            with self._store.together():
                yield
        finally:
            self._depth -= 1

    def _rivalled(self, write: Callable[..., object]) -> Callable[..., object]:
        def written(*words: Any, **named: Any) -> object:  # noqa: ANN401 - as the store's
            self._rival()
            return write(*words, **named)

        return written

    def _rival(self) -> None:
        if not self._depth:
            with self._store.erasing() as eraser:
                loose = eraser.unnamed(list(self._store.blob_ids()))
                eraser.remove_blobs(loose)
            self.taken += len(loose)


def missing(store: Store) -> set[BlobId]:
    """Give what is named and not there."""
    named: set[BlobId] = set()
    for record in (*store.sessions(), *store.sessions(trashed=True)):
        for node in store.nodes(record.session_id):
            named.update(*(named_in(body) for _, body in store.bodies(node.dialog_id)))
        for source in store.sources(record.session_id):
            assert source.raw is not None
            assert source.index is not None
            named |= {source.raw, source.index, *json.loads(store.blob(source.raw))["pieces"]}
    assert named
    return {one for one in named if not store.has_blob(one)}


@pytest.fixture
def rivalled() -> Rivalled:
    """Give a store with somebody else in it."""
    return Rivalled()


def _pictured(store: object) -> Dialog:
    dialog = Session.create(cast("Store", store), "pictured").root
    dialog.append(LOOK)
    return dialog


def _imported(store: object, folder: Path, picture: bytes = PNG, name: str = "talk") -> None:
    url = f"data:image/png;base64,{b64encode(picture).decode()}"
    said = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    path = folder / f"{name}.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    list(Importer(cast("Store", store)).import_path(path))


def _rebuilt(store: Rivalled, folder: Path) -> None:
    Dialog(owner="coder", session_name="run", log_base=folder / "log").append(LOOK)
    rebuild(folder / "log", cast("Store", store))


WRITERS: dict[str, Callable[[Rivalled, Path], object]] = {
    "a dialog": lambda store, _: _pictured(store),
    "a note beside a turn": lambda store, _: _pictured(store).annotate(Inbox(message=OTHER)),
    "a message that arrives beside a turn": lambda store, _: beside(
        cast("Store", store), _pictured(store).dialog_id, Inbox(message=OTHER)
    ),
    "an import": _imported,
    "a replay log": _rebuilt,
    "a copy": lambda store, _: copy_store(_pictured(MemoryStore()).store, cast("Store", store)),
    "a repair": lambda store, _: repair(cast("Store", store), _pictured(store).dialog_id),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_named_is_there(rivalled: Rivalled, tmp_path: Path, writer: str) -> None:
    """Whatever writes: behind it, everything that is named is there, and what it repeats of others is, too."""
    WRITERS[writer](rivalled, tmp_path)
    assert missing(cast("Store", rivalled)) == set()


def test_a_bundle_of_which_something_was_taken_says_so(rivalled: Rivalled) -> None:
    """A bundle passes by once: what is gone when all of it was taken is told, and taking it again makes it whole."""
    dialog = _pictured(MemoryStore())
    bundle = b"".join(export_bundle(dialog.store, dialog.session_id))
    with pytest.raises(StoreError, match="swept") as told:
        import_bundle(cast("Store", rivalled), BytesIO(bundle).read)
    assert "again" in told.value.hint
    assert rivalled.taken
    assert import_bundle(cast("Store", rivalled), BytesIO(bundle).read).entries == 0
    assert missing(cast("Store", rivalled)) == set()


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Erasing, Erasing]]:
    """Give two handles of one store, of which the second waits for no more than a moment."""
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        first: SqliteStore | PostgresStore = SqliteStore(path)
        second: SqliteStore | PostgresStore = SqliteStore(path, wait=0.05)
    else:
        server: postgres.Server = request.getfixturevalue("postgres_server")
        url = emptied(server)
        first, second = PostgresStore(url), PostgresStore(url, wait=0.2)
    with first, second:
        yield first, second


def test_a_block_and_an_erasure_keep_each_other_out(two: tuple[Erasing, Erasing]) -> None:
    """What a block finds is there at its end: also a payload that lay there already, for which nothing is written."""
    store, other = two
    begun = begin(store)
    blob = store.put_blob(PNG)
    with keeping(store, [PNG]):
        with pytest.raises(StoreBusy), other.erasing():
            pass
        begun.say(b'{"digest":"%s"}' % blob.encode())
    with other.erasing() as eraser:
        assert eraser.unnamed([blob]) == frozenset()


def test_a_block_that_fails_leaves_neither(two: tuple[Erasing, Erasing]) -> None:
    """The entry is refused: the payload is not there either. Without payloads there is no block, and a failure undoes nothing of others."""
    store, _ = two
    begun = begin(store)
    for payloads, said in (([PNG], -1), ([], 0)):
        with pytest.raises(ZeroDivisionError):
            _fails(store, begun, payloads)
        assert (list(store.strays()), store.last(begun.dialog).seq) == ([], said)


def _fails(store: Store, begun: Begun, payloads: list[bytes]) -> None:
    with keeping(store, payloads):
        begun.say(b"said")
        raise ZeroDivisionError


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_writers_erasures_and_sweeps_at_once(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Threads with a handle each write the same few pictures, import them, erase sessions and sweep: what is named is there, and none waits for another in a circle."""
    server = None if kind == "sqlite" else request.getfixturevalue("postgres_server")
    backend = SqliteBackend(tmp_path / "store.db") if server is None else PostgresBackend(server)
    backend.open().close()
    told: list[str] = []

    def again(number: int, act: Callable[[Erasing, Random], object]) -> None:
        draw = Random(number)  # noqa: S311 - no secret
        with closing(cast("Erasing", backend.open())) as store:
            for _ in range(40):
                try:
                    act(store, draw)
                except Erased:
                    continue
                except StoreBusy as busy:
                    told.append(busy.message)

    acts = [_writes, _writes, _imports(tmp_path), _imports(tmp_path), _erases, _sweeps(backend), _sweeps(backend)]
    threads = [Thread(target=again, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [words for words in told if "deadlock" in words]
    with closing(backend.open()) as store:
        assert list(verify_store(store)) == []
        assert missing(store) == set()


def _picture(draw: Random) -> bytes:
    return PNG + bytes([draw.randrange(6)]) * 50


def _writes(store: Erasing, draw: Random) -> None:
    dialog = Session.create(store, "written").root
    for _ in range(3):
        dialog.put_image(_picture(draw))


def _imports(folder: Path) -> Callable[[Erasing, Random], None]:
    return lambda store, draw: _imported(store, folder, _picture(draw), str(draw.random()))


def _erases(store: Erasing, draw: Random) -> None:
    for record in list(store.sessions(limit=3)):
        if draw.random() < 0.5:
            erase(store, session=record.session_id, thorough=False)


def _sweeps(backend: SqliteBackend | PostgresBackend) -> Callable[[Erasing, Random], None]:
    def swept(store: Erasing, _draw: Random) -> None:
        backend.age_payloads(2 * LEAST_AGE)
        strays = tuple(Stray(one, 1, 2 * LEAST_AGE) for one in store.blob_ids())  # type: ignore[attr-defined]
        sweep(store, SweepPlan(older_than=LEAST_AGE, strays=strays), thorough=False)

    return swept
