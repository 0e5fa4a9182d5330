"""From what a plain context manager gave back to a plan: by comparing it with what went in.

A plan cannot break what every view must keep, so a manager that parts a call from its result, or drops the newest user message, does no
harm: the exchange stays whole, and the plan's notes say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from palaver.context import Ledger
from palaver.log import Handle
from palaver.messages import Message, TextContent, ToolResultContent
from palaver.session.shown import INSTRUCTIONS, Shown
from palaver.tokens import Budget, Rates
from palaver.view import Block, Drop, Insert, Plan, Reason, Remove, Rewrite, View

__all__ = ["Given", "plan_from"]


class Given:
    """A plan that stands already, in the place of a policy."""

    name: ClassVar[str] = "manager"
    complete: ClassVar[bool] = False

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None, /) -> Plan:  # noqa: ARG002 - the protocol's
        """Give the plan."""
        return self._plan


def plan_from(name: str, view: View, before: Sequence[Shown], after: Iterable[Message]) -> Plan:
    """Compare messages with those that a view shows, by their ids.

    Messages that are gone drop their exchange, unless another message of it is still there; changed texts and results are shown as
    changed; new messages become derived texts where they stand. The order stays that of the log.

    Args:
        name: The manager's name.
        view: The view that went in.
        before: Its messages.
        after: The messages that came out.
    """
    known = {one.message.id: one for one in before}
    kept: set[int] = set()
    changes: list[Rewrite | Remove] = []
    inserts: list[Insert] = []
    at = 0
    for message in after:
        one = known.get(message.id)
        if one is None:
            if message.text_content():
                inserts.append(Insert(before=at, text=message.text_content(), label="summary"))
            continue
        kept.add(one.exchange)
        at = max(at, one.exchange + 1)
        changes.extend(_changes(one, message))
    gone = [index for index in range(len(view.exchanges)) if index not in kept]
    must = view.protected()
    return Plan(
        policy=name,
        drops=tuple(Drop(index=index, reason=Reason.MANAGER) for index in gone if index not in must),
        rewrites=tuple(change for change in changes if isinstance(change, Rewrite)),
        removes=tuple(change for change in changes if isinstance(change, Remove)),
        inserts=tuple(inserts),
        notes=tuple(f"exchange {index} stays: every view must hold it" for index in gone if index in must),
    )


def _changes(one: Shown, message: Message) -> Iterator[Rewrite | Remove]:
    """Give what a message says otherwise than the view: block by block, or, where their number differs, in its first text."""
    if one.exchange == INSTRUCTIONS or message.contents == one.message.contents:
        return
    if len(message.contents) == len(one.blocks):
        for block, content in zip(one.blocks, message.contents, strict=True):
            said = _text(content)
            if said and said != _text(block.content):
                yield from _rewrite(block, said)
        return
    texts = [block for block in one.blocks if isinstance(block.content, TextContent)]
    if texts and message.text_content():
        yield from _rewrite(texts[0], message.text_content())
        yield from (
            Remove(target=block.origin, reason=Reason.MANAGER) for block in texts[1:] if block.origin is not None
        )


def _text(content: object) -> str:
    if isinstance(content, TextContent):
        return content.content
    return content.text() if isinstance(content, ToolResultContent) else ""


def _rewrite(block: Block, text: str) -> Iterator[Rewrite]:
    if block.origin is not None:
        yield Rewrite(target=block.origin, text=text, reason=Reason.MANAGER, reversible=_names(text, block.origin))


def _names(text: str, handle: Handle) -> bool:
    return str(handle) in text
