"""Marks: keys of a session's metadata that say what the session is, for whoever must know it without knowing how it is made."""

__all__ = ["MEMORY"]

MEMORY = "palaver_memory"
"""Memory lies in it, and nothing that was said: that of its subject, and of everybody where it has none."""
