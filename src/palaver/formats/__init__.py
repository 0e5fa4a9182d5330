"""Foreign formats: sources are read as they are, records become events, and every loss is reported."""

from palaver.formats.events import Branch, Conversation, Event, Loss, Put
from palaver.formats.registry import FORMATS, Format, Match, detect, matches
from palaver.formats.sources import Member, Opening, Source, open_source
from palaver.formats.streams import Limits

__all__ = [
    "FORMATS",
    "Branch",
    "Conversation",
    "Event",
    "Format",
    "Limits",
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
