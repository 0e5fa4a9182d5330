"""The sentences that views put where something is missing. One place, because a changed word breaks every cached prefix."""

from collections.abc import Sequence

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


MOST_BY_HAND = 16_000
"""Characters that constraints put on the list by hand have in the instructions at most (some 4,000 tokens, as much as a record may have): each has up
to 2,000, and every request pays for them."""


def told_by_hand(stated: Sequence[tuple[str, Handle]]) -> int:
    """Give how many of the newest constraints put on by hand have a place where no budget is known."""
    room, told = MOST_BY_HAND, 0
    while told < len(stated) and (room := room - len(stated[-1 - told][0])) >= 0:
        told += 1
    return told


def by_hand(stated: Sequence[tuple[str, Handle]], told: int | None = None) -> str:
    """Give the section of the instructions that tells the constraints that were put on the user's list by hand, each with its entry.

    The newest have their place first; of those beyond it their number and where they are. The order is that in which they were put on.

    Args:
        stated: The constraints that hold, and their entries.
        told: How many of the newest are told; as many as have a place where no budget is known when not given.
    """
    first = len(stated) - (told_by_hand(stated) if told is None else told)
    begin, end = (stated[0][1], stated[first - 1][1]) if first else (None, None)
    span = f"{begin}" if begin == end else f"{begin} to {end}"
    older = f"(+ {first:,} older ones, not told here; recall {span})" if first else ""
    if first == len(stated):
        noun = "constraint" if first == 1 else "constraints"
        return f"The user put {first:,} {noun} on his list by hand, for which there is no room here. Look before you act: recall {span}"
    lines = "\n".join([*([older] if older else []), *(f"- {text}" for text, _ in stated[first:])])
    return f"The user put these constraints on his list by hand. They hold throughout this conversation:\n{lines}"
