"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild."""

from palaver.session.comparing import CallDifference, Difference, compare
from palaver.session.constraining import DialogConstraints
from palaver.session.dialog import Dialog
from palaver.session.differing import BranchDifference, Side
from palaver.session.erasure import (
    ErasurePreview,
    Receipt,
    Verdict,
    erase,
    finish_erasures,
    preview_erasure,
    verify_receipt,
)
from palaver.session.extent import Extent, Opened
from palaver.session.follower import Follower
from palaver.session.invocations import Invocations, ModelCall
from palaver.session.managed import SessionContext, SessionEntry, SessionHeader, SessionManager, SessionTreeNode
from palaver.session.preview import CompactionPreview
from palaver.session.replay import LogBase, ReplayLog
from palaver.session.retention import Retained, RetentionPlan, age_of, retain, retention
from palaver.session.rewinding import Rewind, Touched
from palaver.session.searching import searchable
from palaver.session.session import Session, rebuild
from palaver.session.transcript import Messages
from palaver.session.tree import DialogTreeNode, tree_from_dicts
from palaver.session.warn import ReplayLogWarning, UnknownPromptWarning

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
