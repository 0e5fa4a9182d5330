"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild."""

from palaver.session.dialog import Dialog
from palaver.session.extent import Extent, Opened
from palaver.session.follower import Follower
from palaver.session.replay import LogBase, ReplayLog
from palaver.session.searching import searchable
from palaver.session.session import Session, rebuild
from palaver.session.transcript import Messages
from palaver.session.tree import DialogTreeNode, tree_from_dicts
from palaver.session.warn import ReplayLogWarning, UnknownPromptWarning

__all__ = [
    "Dialog",
    "DialogTreeNode",
    "Extent",
    "Follower",
    "LogBase",
    "Messages",
    "Opened",
    "ReplayLog",
    "ReplayLogWarning",
    "Session",
    "UnknownPromptWarning",
    "rebuild",
    "searchable",
    "tree_from_dicts",
]
