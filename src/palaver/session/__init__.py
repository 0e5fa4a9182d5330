"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild.

Specialised features are in separate modules: `calls`, `compaction`, `differences`, `erasure`, `retention`, …
"""

from palaver.session.dialog import Dialog
from palaver.session.messages import Messages
from palaver.session.opened import UnknownPromptWarning
from palaver.session.recall import searchable
from palaver.session.session import Session, rebuild
from palaver.session.tree import DialogTreeNode, tree_from_dicts
from palaver.transfer.landing import ReplayLogWarning
from palaver.transfer.replay import Follower, LogBase, ReplayLog

__all__ = [
    "Dialog",
    "DialogTreeNode",
    "Follower",
    "LogBase",
    "Messages",
    "ReplayLog",
    "ReplayLogWarning",
    "Session",
    "UnknownPromptWarning",
    "rebuild",
    "searchable",
    "tree_from_dicts",
]
