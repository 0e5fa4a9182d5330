"""Foreign formats: read sources unchanged, turn records into events, and report every loss."""

from palaver.formats.events import Branch, Conversation, Event, Loss, Put
from palaver.formats.registry import FORMATS, Match, TranscriptFormat, detect, matches
from palaver.formats.sources import Member, Opening, SourceFile, open_source
from palaver.formats.streams import ReadLimits

__all__ = [
    "FORMATS",
    "Branch",
    "Conversation",
    "Event",
    "Loss",
    "Match",
    "Member",
    "Opening",
    "Put",
    "ReadLimits",
    "SourceFile",
    "TranscriptFormat",
    "detect",
    "matches",
    "open_source",
]
