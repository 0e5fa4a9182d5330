"""An empty store of each kind, for tests that every store passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import cast

import pytest

from palaver.log import Node
from palaver.store import Durability, MemoryStore, SessionRecord, SqliteStore, Store, open_store
from palaver.store.protocol import Copyable
from tests import postgres

KINDS = ("memory", "sqlite", "postgres")


def empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store of the kind that a fixture requests, and close it afterwards."""
    kind: Store
    if request.param == "memory":
        kind = MemoryStore()
    elif request.param == "sqlite":
        kind = SqliteStore(tmp_path / "s.db", Durability.NORMAL)
    else:
        server: postgres.Server = request.getfixturevalue("postgres_server")
        kind = open_store(server.url(), create=True)
    yield kind
    kind.close()


def fingerprint(store: Store) -> str:
    """Return SHA-256 over everything that a store gives back; equal for stores of any kind that hold the same."""
    whole = sha256()
    records = sorted(chain(store.sessions(), store.sessions(trashed=True)), key=lambda one: one.session_id)
    for record in records:
        whole.update(f"{_fields(record)} {store.sources(record.session_id)!r}".encode())
        for node in store.nodes(record.session_id):
            headers, bodies = (tuple(read(node.dialog_id)) for read in (store.headers, store.bodies))
            whole.update(f"{_fields(node)} {headers!r} {bodies!r}".encode("utf-8", "surrogatepass"))
        for blob in cast("Copyable", store).blob_ids(record.session_id):
            whole.update(f"{blob} {sha256(store.blob(record.session_id, blob)).hexdigest()}".encode())
    return whole.hexdigest()


def _fields(value: SessionRecord | Node) -> str:
    metadata = json.loads(json.dumps(value.metadata, default=dict))
    return f"{astuple(replace(value, metadata={}))!r} {json.dumps(metadata, sort_keys=True)}"
