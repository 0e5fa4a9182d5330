"""Memory for the model: always in view, or found on request, with tools for both. All memory is entries of the log."""

from palaver.session.memory.archive import ArchivalMemory, Embedder, HashingEmbedder, Passage
from palaver.session.memory.core import CoreMemory, MemoryBlock
from palaver.session.memory.files import Files, FoundLine, Grep, MemoryFile
from palaver.session.memory.subject import MEMORY, MemoryWarning, SubjectMemory, shared_memory
from palaver.session.memory.tools import archival_tools, core_memory_tools, file_tools

__all__ = [
    "MEMORY",
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
    "archival_tools",
    "core_memory_tools",
    "file_tools",
    "shared_memory",
]
