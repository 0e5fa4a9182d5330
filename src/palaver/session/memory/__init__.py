"""Memory for the model: what it always knows, what it can look up, and the tools for both; all of it entries of the log."""

from palaver.session.memory.archive import ArchivalMemory, Passage
from palaver.session.memory.blocks import CoreMemory, MemoryBlock
from palaver.session.memory.compacting import compact_tools
from palaver.session.memory.embedding import Embedder, HashingEmbedder
from palaver.session.memory.files import File, Files, Found, Grep
from palaver.session.memory.filing import file_tools
from palaver.session.memory.kits import tools_for
from palaver.session.memory.recalling import history_tools, recall_tools
from palaver.session.memory.remembering import archival_tools, core_memory_tools
from palaver.session.memory.whose import MemoryWarning, SubjectMemory, shared_memory

__all__ = [
    "ArchivalMemory",
    "CoreMemory",
    "Embedder",
    "File",
    "Files",
    "Found",
    "Grep",
    "HashingEmbedder",
    "MemoryBlock",
    "MemoryWarning",
    "Passage",
    "SubjectMemory",
    "archival_tools",
    "compact_tools",
    "core_memory_tools",
    "file_tools",
    "history_tools",
    "recall_tools",
    "shared_memory",
    "tools_for",
]
