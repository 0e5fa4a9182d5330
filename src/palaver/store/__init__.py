"""Durable logs of dialogs: the protocol with its laws, and the stores that keep it."""

from palaver.store.connect import open_store
from palaver.store.erasing import sweep, sweepable
from palaver.store.keys import KeyFolder, Keys
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord, Store
from palaver.store.redacting import redacting
from palaver.store.sqlite import SqliteStore
from palaver.store.verify import verify_store

__all__ = [
    "Capability",
    "Durability",
    "Hit",
    "KeyFolder",
    "Keys",
    "MemoryStore",
    "SessionRecord",
    "SourceRecord",
    "SqliteStore",
    "Store",
    "open_store",
    "redacting",
    "sweep",
    "sweepable",
    "verify_store",
]
