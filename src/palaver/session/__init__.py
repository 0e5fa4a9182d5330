"""Sessions and dialogs: append durably, fork, resume, recall, follow, rebuild.

What few programs need is in modules of its own, loaded when it is used: `calls`, `compaction`, `differences`, `erasure`, `manager`, `memory`, …
"""

from palaver.session.dialog import Dialog, UnknownPromptWarning
from palaver.session.messages import Messages
from palaver.session.recall import searchable
from palaver.session.replay_log import Follower, LogBase, ReplayLog, ReplayLogWarning
from palaver.session.session import Extent, Session, only_session, rebuild
from palaver.session.tree import DialogTreeNode, tree_from_dicts

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
