"""A session as a tree of entries with one leaf: the face that programs know which keep sessions in files with parents."""

from palaver.session.managed.context import SessionContext
from palaver.session.managed.entries import SessionEntry, SessionHeader, SessionTreeNode
from palaver.session.managed.manager import SessionManager

__all__ = ["SessionContext", "SessionEntry", "SessionHeader", "SessionManager", "SessionTreeNode"]
