"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild."""

from palaver.session.branches.differing import BranchDifference, Side
from palaver.session.branches.rewinding import Rewind, Touched
from palaver.session.branches.tree import DialogTreeNode, tree_from_dicts
from palaver.session.calls.comparing import CallDifference, Difference, compare
from palaver.session.calls.invocations import Invocations, ModelCall
from palaver.session.carried.follower import Follower, ReplayLogWarning
from palaver.session.carried.replay import LogBase, ReplayLog
from palaver.session.compaction.preview import CompactionPreview
from palaver.session.dialog.constraining import DialogConstraints
from palaver.session.dialog.dialog import Dialog
from palaver.session.dialog.governing import UnknownPromptWarning
from palaver.session.erasure import (
    ErasurePreview,
    Receipt,
    Verdict,
    erase,
    finish_erasures,
    preview_erasure,
    verify_receipt,
)
from palaver.session.erasure.retention import Retained, RetentionPlan, age_of, retain, retention
from palaver.session.managed import SessionContext, SessionEntry, SessionHeader, SessionManager, SessionTreeNode
from palaver.session.reading.extent import Extent, Opened
from palaver.session.reading.searching import searchable
from palaver.session.reading.transcript import Messages
from palaver.session.session import Session, rebuild

__all__ = [
    "BranchDifference",
    "CallDifference",
    "CompactionPreview",
    "Dialog",
    "DialogConstraints",
    "DialogTreeNode",
    "Difference",
    "ErasurePreview",
    "Extent",
    "Follower",
    "Invocations",
    "LogBase",
    "Messages",
    "ModelCall",
    "Opened",
    "Receipt",
    "ReplayLog",
    "ReplayLogWarning",
    "Retained",
    "RetentionPlan",
    "Rewind",
    "Session",
    "SessionContext",
    "SessionEntry",
    "SessionHeader",
    "SessionManager",
    "SessionTreeNode",
    "Side",
    "Touched",
    "UnknownPromptWarning",
    "Verdict",
    "age_of",
    "compare",
    "erase",
    "finish_erasures",
    "preview_erasure",
    "rebuild",
    "retain",
    "retention",
    "searchable",
    "tree_from_dicts",
    "verify_receipt",
]
