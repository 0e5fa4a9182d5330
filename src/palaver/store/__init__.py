"""Durable logs of dialogs: the protocol with its laws, and the stores that keep them."""

from palaver.store.asynchronous import AsyncStore
from palaver.store.connect import open_store
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Capability, Durability, Hit, SessionRecord, SourceRecord, Store
from palaver.store.sqlite import SqliteStore

__all__ = [
    "AsyncStore",
    "Capability",
    "Durability",
    "Hit",
    "MemoryStore",
    "SessionRecord",
    "SourceRecord",
    "SqliteStore",
    "Store",
    "open_store",
]
