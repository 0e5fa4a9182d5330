"""Foreign formats: read sources unchanged, turn records into events, and report every loss."""

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
