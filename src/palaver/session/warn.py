"""Warnings: what went wrong beside the call, which itself was done."""

__all__ = ["ReplayLogWarning", "UnknownPromptWarning"]


class ReplayLogWarning(UserWarning):
    """The replay log could not be written; the store has the entry, and the log catches up at the next one."""


class UnknownPromptWarning(UserWarning):
    """A dialog names a prompt that its runtime does not know: it was loaded without one."""
