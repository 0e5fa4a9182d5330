"""What a model is told when a call cannot be answered as it asked: what happened, what was expected, what it may do."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools.function import Function
from palaver.tools.judging import Fault
from palaver.tools.replies import cut_text
from palaver.tools.toolbox import Toolbox

__all__ = [
    "ARGUMENTS_SHOWN",
    "raised",
    "repeated",
    "timed_out",
    "unavailable",
    "unfit",
    "unknown",
    "unlinked",
    "unreadable",
]

_MOST_NAMED = 30
_MOST_FAULTS = 10
_MESSAGE_BYTES = 4_000
_QUOTED_BYTES = 4_000
ARGUMENTS_SHOWN = 500


def unknown(toolbox: Toolbox, name: str) -> str:
    """No function has the name."""
    close = toolbox.close(name)
    names = toolbox.names
    near = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    listed = ", ".join(names[:_MOST_NAMED]) + (
        f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    )
    return f"There is no tool {name!r}.{near} " + (f"The tools are: {listed}." if names else "There are no tools.")


def unreadable(call: ToolCallContent) -> str:
    """The arguments are no JSON object."""
    written = cut_text(call.raw_args or "", ARGUMENTS_SHOWN)
    return (
        f"{call.name!r} was not run: its arguments could not be read. {call.error}\n"
        f"Call it again with one JSON object. What was written:\n{written}"
    )


def unfit(function: Function, faults: Iterable[Fault]) -> str:
    """The arguments do not fit the schema or the types."""
    found = list(faults)
    lines = [f"- {fault}" for fault in found[:_MOST_FAULTS]]
    if len(found) > _MOST_FAULTS:
        lines.append(f"- and {len(found) - _MOST_FAULTS} more")
    return "\n".join(
        [f"{function.name!r} was not run: its arguments do not fit.", *lines, "Correct them and call it again."]
    )


def unavailable(name: str, reason: str) -> str:
    """The tool is declared, and may not be used now."""
    return f"{name!r} was not run: {reason.strip().rstrip('.')}. It is not available now; go on without it."


def unlinked(name: str) -> str:
    """The tool is declared, and nothing stands behind it."""
    return f"{name!r} was not run: it has no implementation here. Go on without it."


def repeated(earlier: FunctionCall) -> str:
    """The same call was answered before."""
    quoted = cut_text(earlier.result_str or "(nothing that is text: see there)", _QUOTED_BYTES)
    return (
        f"{earlier.name!r} was not run again: the same call, {earlier.id!r}, has been answered in this turn. "
        f"Use that result, or call with other arguments. It was:\n{quoted}"
    )


def timed_out(name: str, seconds: float, *, killed: bool) -> str:
    """The call was given up."""
    left = "Its process was ended." if killed else "It may still be running."
    return f"{name!r} did not answer within {seconds:g} s and was given up. {left} What it did until then is not known."


def raised(error: BaseException) -> str:
    """The function raised: the class, what it said, and what it came from."""
    try:
        said = "".join(traceback.format_exception_only(error)).strip()
    except Exception:  # noqa: BLE001 - somebody's __str__ may raise anything; the class is what is left
        said = type(error).__name__
    cause = error.__cause__
    if cause is not None:
        said += f"\ncaused by {type(cause).__name__}" + (f": {cause}" if _is_sayable(cause) else "")
    return cut_text(said, _MESSAGE_BYTES)


def _is_sayable(error: BaseException) -> bool:
    try:
        return bool(str(error))
    except Exception:  # noqa: BLE001 - as above
        return False
