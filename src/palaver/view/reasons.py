"""Why a view leaves something out or shows it in another form: one word for each reason."""

from enum import StrEnum


class Reason(StrEnum):
    """The reasons, a closed list: the word is stored, printed and counted."""

    OVER_BUDGET = "over_budget"
    """A policy dropped it because the view had to become smaller."""
    OFFLOADED = "offloaded"
    """A policy put a short reference in its place; the handle brings it back whole."""
    SHORTENED = "shortened"
    """A policy kept a part; the handle brings it back whole."""
    FOLDED = "folded"
    """A policy replaced it by a record or summary of it."""
    COMPACTED = "compacted"
    """The recorded compaction of another agent left it out."""
    DUPLICATE_RESULT = "duplicate_result"
    """Its call has a result already; the first one counts."""
    UNPAIRED = "unpaired"
    """A tool result whose call is not in the view, or was closed before it came: shown as text where it stands."""
    EMPTY = "empty"
    """It says nothing, and providers refuse empty messages."""
    FAILED_RESPONSE = "failed_response"
    """The response was cut off by an error and holds nothing that can be replied to."""
    QUARANTINED = "quarantined"
    """A provider refused the block."""
    SUPERSEDED = "superseded"
    """A newer entry of the same kind replaced it."""
    NOT_SHOWN = "not_shown"
    """Its kind is never shown to a model."""
    MANAGER = "manager"
    """A plain context manager's result does not hold it."""
