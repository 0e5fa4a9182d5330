"""What holds beside the conversation: instructions, tools, the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from palaver.log import Entry, Handle, Instructions, MessageEntry, ModelChange, Toolset, ToolSpec
from palaver.messages import Speaker, TextContent, Trust
from palaver.view.blocks import Block
from palaver.view.source import blocks_of


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds beside the conversation.

    Attributes:
        places: The entries that say so.
        system: The instructions as they were recorded, in order, and a line for each entry that cannot be read.
        tools: The declared tools.
        model: The model.
    """

    places: tuple[Handle, ...]
    system: tuple[Block, ...]
    tools: tuple[ToolSpec, ...]
    model: str

    @classmethod
    def of(
        cls,
        places: tuple[Handle, ...],
        in_force: Mapping[str, Handle],
        leading: Sequence[Handle],
        entries: Mapping[Handle, Entry],
    ) -> InForce:
        """Return what entries say."""
        said = [entries[place] for place in in_force.values()]
        sections = [(place, entry) for place, entry in entries.items() if isinstance(entry, Instructions)]
        first = [block for each in sections for block in _sections(*each, behind=False)]
        last = [block for each in sections for block in _sections(*each, behind=True)]
        lines = [place for place in places if place not in leading and isinstance(entries[place], MessageEntry)]
        told = [[block for place in some for block in blocks_of(place, entries[place])] for some in (leading, lines)]
        return cls(
            places,
            (*first, *told[0], *last, *told[1]),
            next((entry.tools for entry in said if isinstance(entry, Toolset)), ()),
            next((entry.model for entry in said if isinstance(entry, ModelChange)), ""),
        )


def _sections(place: Handle, entry: Instructions, *, behind: bool) -> Iterator[Block]:
    """Return the sections that say something, those before the instructions that were said as messages or those after them."""
    for index, section in enumerate(entry.sections):
        if bool(section.behind) is behind and section.text.strip():
            origin = Handle(place.dialog, place.seq, index)
            text = TextContent(content=section.text)
            yield Block(content=text, origin=origin, speaker=Speaker.HARNESS, trust=Trust.HARNESS)
