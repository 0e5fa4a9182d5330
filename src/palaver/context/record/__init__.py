"""The record: the conversation's own facts, gathered by code from what was said and done, and told in few words."""

from palaver.context.record.carried import carried
from palaver.context.record.constraints import Constraints, constraints
from palaver.context.record.facts import Command, Facts, File, Said, Trouble
from palaver.context.record.notice_of import NoticeOf
from palaver.context.record.recorder import Recorder
from palaver.context.record.stand_in import RecordOf
from palaver.context.record.telling import told

__all__ = [
    "Command",
    "Constraints",
    "Facts",
    "File",
    "NoticeOf",
    "RecordOf",
    "Recorder",
    "Said",
    "Trouble",
    "carried",
    "constraints",
    "told",
]
