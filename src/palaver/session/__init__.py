"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild.

Specialised features are in separate modules, which are loaded on use: `calls`, `compaction`, `differences`, `erasure`, `manager`, `memory`, …
"""

from palaver.session.dialog import Dialog, UnknownPromptWarning
from palaver.session.messages import Messages
from palaver.session.recall import searchable
from palaver.session.session import Extent, Session, only_session, rebuild
from palaver.session.tree import DialogTreeNode, tree_from_dicts
from palaver.transfer.landing import ReplayLogWarning
from palaver.transfer.replay import Follower, LogBase, ReplayLog

__all__ = [
    "Dialog",
    "DialogTreeNode",
    "Extent",
    "Follower",
    "LogBase",
    "Messages",
    "ReplayLog",
    "ReplayLogWarning",
    "Session",
    "UnknownPromptWarning",
    "only_session",
    "rebuild",
    "searchable",
    "tree_from_dicts",
]
