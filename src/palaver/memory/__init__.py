"""Memory for the model: always in view, or found on request, with tools for both. All memory is entries of the log."""

from palaver.memory.archive import ArchivalMemory, Embedder, HashingEmbedder, Passage
from palaver.memory.core import CoreMemory, MemoryBlock
from palaver.memory.files import Files, FoundLine, Grep, MemoryFile
from palaver.memory.subject import MemoryWarning, SubjectMemory, shared_memory
from palaver.memory.tools import archival_tools, core_memory_tools, file_tools
from palaver.memory.values import Values, shared_values

__all__ = [
    "ArchivalMemory",
    "CoreMemory",
    "Embedder",
    "Files",
    "FoundLine",
    "Grep",
    "HashingEmbedder",
    "MemoryBlock",
    "MemoryFile",
    "MemoryWarning",
    "Passage",
    "SubjectMemory",
    "Values",
    "archival_tools",
    "core_memory_tools",
    "file_tools",
    "shared_memory",
    "shared_values",
]
