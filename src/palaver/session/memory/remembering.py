"""Tools by which a model keeps what it should always know, and what it may have to look up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from palaver.session.memory.archive import ArchivalMemory, Passage
from palaver.session.memory.blocks import CoreMemory, MemoryBlock
from palaver.session.memory.offering import FEW, MOST, QUOTED, atold, dialog_of, further, told, tool, who
from palaver.session.memory.quoting import LONGEST_PAGE, enclosed
from palaver.session.memory.whose import SubjectMemory
from palaver.tools import CallContext, Function

__all__ = ["archival_tools", "core_memory_tools"]


def core_memory_tools(memory: CoreMemory | SubjectMemory) -> tuple[Function, ...]:
    """Give the tools of a core memory, by their names in Letta: `core_memory_append`, `core_memory_replace` and `core_memory_rethink`.

    Args:
        memory: The memory; with a `SubjectMemory` that of whoever is talked with.
    """

    def core(context: CallContext) -> CoreMemory:
        return memory.core(dialog_of(context, None)) if isinstance(memory, SubjectMemory) else memory

    def core_memory_append(label: str, content: str, context: CallContext) -> Any:  # noqa: ANN401 - a text, or what went wrong
        return told(lambda: _block(core(context).append(label, content, by=who(context), tool=True)))

    def core_memory_replace(label: str, old_content: str, new_content: str, context: CallContext) -> Any:  # noqa: ANN401 - the same
        return told(lambda: _block(core(context).replace(label, old_content, new_content, by=who(context), tool=True)))

    def core_memory_rethink(label: str, new_memory: str, context: CallContext, expected: str | None = None) -> Any:  # noqa: ANN401 - the same
        return told(
            lambda: _block(core(context).rethink(label, new_memory, expected=expected, by=who(context), tool=True))
        )

    label = {"label": "The block, as it is labelled in your instructions."}
    writes = {"allow_repeat": True}
    return (
        tool(core_memory_append, "Add to a block of your core memory.", {**label, "content": "The text."}, **writes),
        tool(
            core_memory_replace,
            "Replace a text in a block of your core memory.",
            {
                **label,
                "old_content": "The text to be replaced, exactly as it stands there; it must stand there once.",
                "new_content": "What is to stand there; empty to take it out.",
            },
            **writes,
        ),
        tool(
            core_memory_rethink,
            "Write a block of your core memory anew.",
            {
                **label,
                "new_memory": "All that it is to say.",
                "expected": "What it says now as you know it: nothing is written if somebody else changed it.",
            },
            **writes,
        ),
    )


def _block(block: MemoryBlock) -> str:
    return f"The block {block.label!r} has {block.size:,} of {block.limit:,} {block.unit} now."


def archival_tools(archive: ArchivalMemory | SubjectMemory) -> tuple[Function, ...]:
    """Give the tools of an archive, by their names in Letta: `archival_memory_insert` and `archival_memory_search`.

    Args:
        archive: The archive; with a `SubjectMemory` that of whoever is talked with.
    """

    def passages(context: CallContext) -> ArchivalMemory:
        return archive.archive(dialog_of(context, None)) if isinstance(archive, SubjectMemory) else archive

    async def archival_memory_insert(content: str, context: CallContext, tags: list[str] | None = None) -> Any:  # noqa: ANN401 - a text, or what went wrong
        async def put() -> str:
            return f"Kept as {(await passages(context).ainsert(content, tags or (), by=who(context))).handle}."

        return await atold(put)

    async def archival_memory_search(
        query: str, context: CallContext, tags: list[str] | None = None, offset: int = 0, limit: int = FEW
    ) -> Any:  # noqa: ANN401 - the same
        async def find() -> str:
            begin, count = max(offset, 0), min(max(limit, 1), MOST)
            found = await passages(context).asearch(query, count + 1, begin, tags=tags or ())
            shown = _page(map(_passage, found[:count]))
            more = further(len(found) > len(shown), begin + len(shown))
            return "\n".join([*shown, *more]) if found else "There is nothing more like it."

        return await atold(find)

    return (
        tool(
            archival_memory_insert,
            "Keep a passage for good, outside your context; archival_memory_search finds it.",
            {"content": "The passage; one thing at a time is found best.", "tags": "Words to find it by."},
            allow_repeat=True,
        ),
        tool(
            archival_memory_search,
            f"Find passages that you kept, those most like a text first. {QUOTED}",
            {"query": "What they are about.", "tags": "Only those with all of these tags."},
        ),
    )


def _page(lines: Iterable[str]) -> list[str]:
    """Give as many lines as a page holds, and one in any case."""
    shown: list[str] = []
    for line in lines:
        if shown and sum(map(len, shown)) + len(line) > LONGEST_PAGE:
            break
        shown.append(line)
    return shown


def _passage(passage: Passage) -> str:
    about: dict[str, object] = {"handle": passage.handle, "score": f"{passage.score:.2f}", "by": passage.by}
    about["tags"] = ", ".join(passage.tags)
    return enclosed("passage", {name: value for name, value in about.items() if value}, passage.text)
