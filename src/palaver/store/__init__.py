"""Durable logs of dialogs: the protocol with its laws, and the stores that keep them.

The face for asyncio is `palaver.store.asynchronous.AsyncStore`; who does not use it does not load it.
"""

from palaver.store.connect import open_store
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord, Store
from palaver.store.redacting import redacting
from palaver.store.sqlite import SqliteStore
from palaver.store.sweeping import sweep, sweepable
from palaver.store.verifying import verify_store

__all__ = [
    "Capability",
    "Durability",
    "Hit",
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
