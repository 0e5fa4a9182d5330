"""The sentences that views put where something is missing. One place, because a changed word breaks every cached prefix."""

from palaver.log import Handle

NO_RESULT = "No result is recorded for this tool call: it had not finished when the conversation went on."
"""What stands for the result of a call that has none. The same words while the call is open and after it was given up, so that
the request that was sent while it was open stays a prefix of the next."""


def unpaired(call_id: str, text: str) -> str:
    """Give the text that shows a result whose call is not in the view."""
    return f"[Result of tool call {call_id or '?'}, which is not in this context]\n{text}"


QUARANTINED_ARGUMENT = "quarantined"
"""The one argument that is shown of a call whose arguments a provider refused."""


def quarantined(handle: Handle) -> str:
    """Give the text that stands for a block that a provider refused."""
    return f"[A block the provider refused was set aside; recall {handle}]"
