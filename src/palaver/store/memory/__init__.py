"""The store in the memory of one process."""

from palaver.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
