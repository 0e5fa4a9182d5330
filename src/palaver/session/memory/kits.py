"""Kits: the tools for memory that the systems have whose ways of compacting are presets, by the names of the presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType

from palaver.context.registry import POLICIES
from palaver.errors import InvalidInput, UnknownPolicy
from palaver.session.memory.archive import ArchivalMemory
from palaver.session.memory.blocks import CoreMemory
from palaver.session.memory.compacting import compact_tools
from palaver.session.memory.filing import file_tools
from palaver.session.memory.recalling import history_tools, recall_tools
from palaver.session.memory.remembering import archival_tools, core_memory_tools
from palaver.session.memory.whose import SubjectMemory
from palaver.tools import Function

__all__ = ["tools_for"]


def tools_for(
    policy: str,
    *,
    memory: CoreMemory | SubjectMemory | None = None,
    archive: ArchivalMemory | SubjectMemory | None = None,
) -> tuple[Function, ...]:
    """Give the tools for memory that belong to a policy.

    `letta`: core memory, `conversation_search` and archival memory. `manus`, `swe-agent` and `claude-code`: files, for what is too large to be
    said. `cat` and `opencode-dcp`: `compact`, by which the model makes its own view smaller. All of them: `recall` and its like, for every
    policy leaves handles behind.

    Args:
        policy: The policy's name.
        memory: The core memory, or that of whoever is talked with, for those that have one; None where an agent has it as its own (`Agent(memory=...)` has the tools).
        archive: The archive, or that of whoever is talked with, for those that have one.

    Raises:
        UnknownPolicy: There is none of this name.
        InvalidInput: It has no core memory, or no archive, and one was given.
    """
    if policy not in POLICIES:
        raise UnknownPolicy(policy, close=get_close_matches(policy, POLICIES), hint=f"Policies: {', '.join(POLICIES)}.")
    own = _KITS.get(policy, tuple)()
    if policy != "letta" and (memory is not None or archive is not None):
        raise InvalidInput(
            f"The policy {policy!r} has no memory of blocks and passages.",
            hint="Give core_memory_tools(memory) and archival_tools(archive) to the agent yourself.",
        )
    core = () if memory is None else core_memory_tools(memory)
    kept = () if archive is None else archival_tools(archive)
    return (*recall_tools(), *own, *core, *kept)


_KITS: Mapping[str, Callable[[], tuple[Function, ...]]] = MappingProxyType(
    {
        "letta": history_tools,
        "manus": file_tools,
        "swe-agent": file_tools,
        "claude-code": file_tools,
        "cat": partial(compact_tools, "cat"),
        "opencode-dcp": partial(compact_tools, "opencode-dcp"),
    }
)
