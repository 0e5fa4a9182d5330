"""Foreign formats: read sources unchanged, turn records into events, and report every loss."""

from palaver.formats.dialogs import DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import Branch, Conversation, Event, Loss, Put
from palaver.formats.registry import FORMATS, Match, TranscriptFormat, detect, matches
from palaver.formats.sources import Member, Opening, SourceFile, open_source
from palaver.formats.streams import ReadLimits
from palaver.formats.unread import Unread

__all__ = [
    "FORMATS",
    "Branch",
    "Conversation",
    "DialogWriter",
    "Event",
    "Loss",
    "Match",
    "Member",
    "Opening",
    "Origin",
    "Put",
    "ReadLimits",
    "SourceFile",
    "TranscriptFormat",
    "Unread",
    "bad_record",
    "detect",
    "guarded",
    "matches",
    "no_instructions",
    "open_source",
]
