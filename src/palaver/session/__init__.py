"""Sessions and dialogs: append durably, fork, resume, recall."""

from palaver.session.dialog import Dialog
from palaver.session.transcript import Messages
from palaver.session.tree import DialogTreeNode, tree_from_dicts

__all__ = ["Dialog", "DialogTreeNode", "Messages", "tree_from_dicts"]
