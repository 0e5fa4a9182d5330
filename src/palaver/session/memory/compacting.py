"""The tool by which a model itself makes smaller what it sees, when it knows that something is done with.

(CAT, "Context as a Tool", arXiv 2512.22087: context management is an action among the others, taken at milestones. OpenCode's DCP plugin has `compress`,
deepagents `compact_conversation`.)
"""

from __future__ import annotations

from typing import Any

from palaver.context import policy as made
from palaver.context.summary import HEADINGS
from palaver.context.triggers import Fired
from palaver.errors import InvalidInput
from palaver.session.calls.composing import PolicyLike
from palaver.session.memory.offering import atold, dialog_of, tool
from palaver.tools import CallContext, Function

__all__ = ["BY_TOOL", "compact_tools"]

BY_TOOL = "tool"
"""The trigger under which a compaction is recorded that the model itself asked for."""

_SAYS = (
    "Make your own context smaller, when a part of the work is done with: the oldest of it is taken out of your view, with a record and your summary in "
    "its place. Nothing is lost: each thing that leaves can be recalled by its handle. What is newest stays."
)


def compact_tools(policy: PolicyLike = "palaver") -> tuple[Function, ...]:
    """Give the tool `compact`, by which a model makes its own view smaller: the same compaction as `Dialog.compact`, recorded as any other.

    What the model writes as a summary is held to what any summary is held to; one that is refused changes nothing, and the model reads why.

    Args:
        policy: Who decides what goes.

    Raises:
        UnknownPolicy: There is none of this name.
        InvalidInput: Its configuration is none.
    """
    manager = made(policy)
    headings = getattr(manager, "headings", ()) or HEADINGS

    async def compact(context: CallContext, summary: str | None = None, keep: str = "") -> Any:  # noqa: ANN401 - a text, or what went wrong
        return await atold(lambda: _compacted(context, policy, summary, keep))

    sections = ", ".join(f'"## {heading}"' for heading in headings)
    return (
        tool(
            compact,
            _SAYS,
            {
                "summary": f"What you need to know of the older part to go on, in sections: {sections}. Left out, there is the record alone.",
                "keep": "Words: older messages in which one of them stands are not taken out, as far as there is room.",
            },
            allow_repeat=True,
        ),
    )


async def _compacted(context: CallContext, policy: PolicyLike, summary: str | None, keep: str) -> str:
    """Compact, and say what became of it.

    Raises:
        Conflict: Somebody else compacted meanwhile.
        InfeasibleBudget: What every view must hold is too large.
        InvalidInput: The summary is refused.
    """
    dialog: Any = dialog_of(context, None)
    why = Fired(BY_TOOL, "the model asked for it")
    preview = await dialog.acompact(policy=policy, focus=keep, summary=summary or None, trigger=why)
    if summary and preview.refused:
        raise InvalidInput(f"Nothing was changed: the summary is not used, for {preview.refused}.")
    before, after = preview.tokens_before, preview.tokens_after
    if not preview.worthwhile:
        return f"Nothing was changed: {before:,} tokens would have become {after:,}."
    preview.approve()
    gone = sum(each.messages for each in preview.omitted)
    return f"{before:,} tokens became {after:,}; {gone:,} messages left your view, and can be recalled."
