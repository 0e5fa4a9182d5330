"""Foreign formats: sources are read as they lie, records become events, and nothing is dropped unreported."""

from palaver.formats.events import Branch, Conversation, Event, Loss, Put
from palaver.formats.registry import FORMATS, Format, Match, detect, matches
from palaver.formats.sources import Member, Opening, Source, open_source

__all__ = [
    "FORMATS",
    "Branch",
    "Conversation",
    "Event",
    "Format",
    "Loss",
    "Match",
    "Member",
    "Opening",
    "Put",
    "Source",
    "detect",
    "matches",
    "open_source",
]
