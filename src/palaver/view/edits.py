"""What compactions, context edits and quarantines say about single blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from palaver.log import BlockEdit, Handle, Omitted, Place, Run, Span
from palaver.messages import TextContent, ToolCallContent, ToolResultContent, Trust
from palaver.view.reasons import Reason
from palaver.view.texts import QUARANTINED_ARGUMENT, quarantined
from palaver.view.view import Block, Omission


def rewrite(
    block: Block,
    text: str,
    reason: Reason,
    *,
    reversible: bool,
    sources: tuple[Run, ...] = (),
    trust: Trust | None = None,
) -> Block:
    """Give a block that shows `text` instead, with its place in the conversation unchanged.

    A tool result keeps its id; a tool call is given back as it is, because its result hangs on it; everything else becomes text. What the form
    before was made from counts on: the new one may be a part of it.
    """
    content = block.content
    if isinstance(content, ToolCallContent):
        return block
    shown = (
        content.model_copy(update={"content": text})
        if isinstance(content, ToolResultContent)
        else TextContent(content=text)
    )
    return replace(
        block,
        content=shown,
        reason=reason,
        reversible=reversible,
        sources=tuple(dict.fromkeys((*block.sources, *sources))),
        trust=block.trust if trust is None else min(block.trust, trust),
    )


def edited(block: Block, edit: BlockEdit) -> Block:
    """Give a block in the form that is written down for it."""
    return rewrite(
        block,
        edit.text,
        Reason(edit.reason),
        reversible=edit.reversible,
        sources=edit.sources or (),
        trust=None if edit.trust is None else Trust.__members__.get(edit.trust.upper(), Trust.OUTSIDE),
    )


def set_aside(block: Block, origin: Handle) -> Block:
    """Give the block that stands for one that a provider refused.

    A call keeps its name and its id, for its result hangs on it; its arguments, and what its provider signed, are replaced.
    """
    told = quarantined(origin)
    content = block.content
    if not isinstance(content, ToolCallContent):
        # a result without its call stays marked as one: a checkpoint must not join them again
        reason = Reason.UNPAIRED if block.reason is Reason.UNPAIRED else Reason.QUARANTINED
        return rewrite(block, told, reason, reversible=True)
    spared = {"args": {QUARANTINED_ARGUMENT: told}, "raw_args": None, "error": None, "artefact": {}, "changes": ()}
    return replace(block, content=content.model_copy(update=spared), reason=Reason.QUARANTINED)


def omission(gone: Omitted) -> Omission:
    """Give what an entry recorded as left out in the form that a view holds."""
    return Omission(
        reason=Reason(gone.reason),
        span=None if gone.run is None else Span(gone.run.dialog, gone.run.start, gone.run.stop),
        handle=None if gone.target is None else handle_of(gone.target),
        by=gone.by,
        messages=gone.messages,
        size=gone.size,
    )


def handle_of(place: Place) -> Handle:
    """Give a stored place as a handle."""
    return Handle(place.dialog, place.seq, place.block)


@dataclass(slots=True)
class Edits:
    """The edits in force while a view is folded; for one block the newest wins.

    Attributes:
        shown_as: The form in which a block is shown.
        removed: The blocks that are left out.
        quarantined: The blocks that a provider refused, and the entries that say so.
        apart: The results that a checkpoint found without their call; what closed the call may have left the view since.
        omissions: The entries that are left out.
        policies: The policies that decided, in order.
    """

    shown_as: dict[Handle, BlockEdit] = field(default_factory=dict)
    removed: dict[Handle, Omission] = field(default_factory=dict)
    quarantined: dict[Handle, Handle] = field(default_factory=dict)
    apart: set[Handle] = field(default_factory=set)
    omissions: list[Omission] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)

    def take(self, edits: Iterable[BlockEdit], omitted: Iterable[Omitted], policy: str) -> None:
        """Put what an entry decided in force."""
        for edit in edits:
            target = handle_of(edit.target)
            if edit.reason == Reason.UNPAIRED:
                self.apart.add(target)
                continue
            self.shown_as[target] = edit
            self.removed.pop(target, None)
        for gone in map(omission, omitted):
            if gone.handle is None or gone.handle.block is None:
                self.omissions.append(gone)
            else:
                self.removed[gone.handle] = gone
        if policy and policy not in self.policies:
            self.policies.append(policy)

    def all_shown(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Give the blocks as they are to be shown, without those that are left out; the same tuple when nothing is edited."""
        if not (self.removed or self.shown_as or self.quarantined):
            return blocks
        shown = tuple([one for block in blocks if (one := self.shown(block)) is not None])
        return blocks if shown == blocks else shown

    def shown(self, block: Block) -> Block | None:
        """Give the block as it is to be shown, or None when it is left out."""
        origin = block.origin
        if origin is None:
            return block
        if origin in self.removed:
            return None
        if origin in self.quarantined or Handle(origin.dialog, origin.seq) in self.quarantined:
            return set_aside(block, origin)  # before any edit: a shortened form may hold just what was refused
        if origin in self.shown_as:
            return edited(block, self.shown_as[origin])
        return block
