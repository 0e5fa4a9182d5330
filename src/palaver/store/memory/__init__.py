"""The store in the memory of one process: what it holds, and what may be done with that."""

from palaver.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
