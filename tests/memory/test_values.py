"""Named values: what files, archives and syncs bring along of them. Their laws are among those of a store."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path

from palaver.memory import Values
from palaver.session import Session
from palaver.store import MemoryStore
from palaver.testing.store_laws.values import VALUES
from palaver.transfer.archives import archive, restore
from palaver.transfer.bundle import export_bundle, import_bundle
from palaver.transfer.sync import sync


def test_values_travel_with_their_session(tmp_path: Path) -> None:
    """A bundle, an archive that is brought back, and a sync have every value."""
    store, other = MemoryStore(), MemoryStore()
    session = Session.create(store, "mine")
    expected = {f"k{number:02}": value for number, value in enumerate(VALUES)}
    for key, value in expected.items():
        Values(session).set(key, value)
    moved = import_bundle(other, BytesIO(b"".join(export_bundle(store, session.session_id))).read)
    assert Values(Session(other, moved.session_id)).list() == expected
    archive(store, session.session_id, f"file://{tmp_path}/archive")
    Values(session).set("later", 1)
    restore(store, session.session_id)
    assert Values(session).list() == {**expected, "later": 1}
    sync(store, other)
    assert Values(Session(other, moved.session_id)).list() == {**expected, "later": 1}


def test_sync_keeps_the_newest_value_of_each_key() -> None:
    """Both sides have every key afterwards, and of a key that both wrote the value that was written last, whichever side was active later."""
    store, other = MemoryStore(), MemoryStore()
    session = Session.create(store, "mine")
    Values(session).set("both", 0)
    sync(store, other)
    here, there = Values(session), Values(Session(other, session.session_id))
    here.set("both", 1)
    here.set("here", 1)
    there.set("both", 2)
    there.set("there", 2)
    session.root.put_text("active later")
    sync(store, other)
    assert here.list() == there.list() == {"both": 2, "here": 1, "there": 2}
    done = sync(store, other)
    assert (done.added, done.changed, done.refused) == ((0, 0), (), ())


def test_async_forms_do_the_same() -> None:
    """`aget`, `alist`, `aset` and `adelete` do what the others do."""

    async def use() -> tuple[object, ...]:
        values = Values(Session.create(MemoryStore(), "mine"))
        await values.aset("k", 1, expect=None)
        seen = await values.aget("k"), await values.alist()
        await values.adelete("k")
        return (*seen, await values.aget("k", 7))

    assert asyncio.run(use()) == (1, {"k": 1}, 7)
