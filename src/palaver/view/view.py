"""The view: what a model is to see, in order, with where each block came from and why the rest was left out.

A view is made of exchanges, and an exchange is whole: an assistant response stands with all its results. No policy can part them,
because no policy can name half of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from palaver.ids import DialogId
from palaver.log import Handle, Run, Span, ToolSpec
from palaver.messages import Content, Role, Speaker, Trust
from palaver.view.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block as the model is to see it.

    Attributes:
        content: The content.
        origin: The block of the log that it shows or stands for; None for what no entry holds (a derived text, a derived result).
        reason: Why it is not shown as it was recorded; None when it is.
        reversible: True when the handle brings back all that was taken out; always True when `reason` is None.
        derived: What it is when no one said it: `record`, `summary`, `notice`, `pending`, `interrupted`; empty otherwise.
        sources: The entries a derived text was made from; of a block in another form those that this form was made from besides the block.
        facts: What a record says, as canonical JSON, from which the next record goes on; empty where the text is all there is.
        speaker: Provenance: who really said it, whatever role carries it.
        trust: How far it may be followed; a derived text has the lowest trust of its sources.
    """

    content: Content
    origin: Handle | None = None
    reason: Reason | None = None
    reversible: bool = True
    derived: str = ""
    sources: tuple[Run, ...] = ()
    facts: str = ""
    speaker: Speaker = Speaker.HARNESS
    trust: Trust = Trust.OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One role's words in an exchange: the fragments of a response are merged, the results of a batch stand together in call order.

    Attributes:
        role: `user`, `assistant`, `tool` or `system`.
        blocks: What it says, at least one.
        name: The sender's name where it is not the role's default, or empty.
        model: The model that said it, or empty; native artefacts are sent back only to the same one.
        provider: The provider that said it, or empty.
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str = ""
    model: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The unit of cutting.

    Attributes:
        turns: A user or system turn alone; or an assistant turn, and after it the tool turn with a result for each of its calls.
        runs: The entries it was made of, in order; empty when it is derived.
        pinned: True when every view must hold it.
        open: True when it holds a call that still waits for its result.
        derived: True when no one said it: a record, summary or notice that a policy put in.
        messages: How many recorded messages it was made of.
        size: The size of their recorded form, in bytes.
        stale: True when what stands before it has been edited since it was said: what a provider signed in it was signed for other
            words. Two exchanges are equal whatever it is.
    """

    turns: tuple[Turn, ...]
    runs: tuple[Span, ...] = ()
    pinned: bool = False
    open: bool = False
    derived: bool = False
    messages: int = 0
    size: int = 0
    stale: bool = field(default=False, compare=False)

    @property
    def role(self) -> Role:
        """The role of its first turn."""
        return self.turns[0].role

    @property
    def observes(self) -> bool:
        """Whether it is what a tool gave back in a text protocol: a user's turn that says what no user said."""
        first = self.turns[0].blocks[0]
        said = first.speaker is Speaker.TOOL and first.reason is not Reason.UNPAIRED
        return said and self.role is Role.USER and not self.derived

    @property
    def first(self) -> Handle | None:
        """The handle of its first entry; None when it is derived."""
        return Handle(self.runs[0].dialog, self.runs[0].start) if self.runs else None

    def blocks(self) -> Iterator[Block]:
        """Give its blocks in order."""
        for turn in self.turns:
            yield from turn.blocks


CARRIED = "carried"
"""The label of a derived text that is not shown: it has no words, and carries what is known of what left."""


def carrying(block: Block) -> tuple[Exchange, ...]:
    """Give what a view carries without showing it; nothing where the facts were erased."""
    turn = Turn(role=Role.USER, blocks=(block,))
    return (Exchange(turns=(turn,), derived=True),) if block.facts else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something the view leaves out.

    Attributes:
        reason: Why.
        span: The entries left out, when whole entries are; else None.
        handle: The block left out, when a single block is; else None.
        by: The policy that decided it, or `palaver`.
        messages: How many messages it held.
        size: The size of what was left out, in bytes of its recorded form.
    """

    reason: Reason
    span: Span | None = None
    handle: Handle | None = None
    by: str = "palaver"
    messages: int = 0
    size: int = 0

    def handles(self) -> Iterator[Handle]:
        """Give a handle for everything it left out: one for each entry, or the block's."""
        if self.handle is not None:
            yield self.handle
        if self.span is not None:
            for seq in range(self.span.start, self.span.stop):
                yield Handle(self.span.dialog, seq)


class Stated(NamedTuple):
    """A constraint that was put on the user's list by hand, or taken off it.

    Attributes:
        text: The sentence.
        stands: Whether it is on the list.
        at: The entry that says so.
    """

    text: str
    stands: bool
    at: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the model is to see.

    Attributes:
        dialog_id: The dialog.
        at: The number of the dialog's last own entry that was taken into account, or -1.
        system: The instructions, in order.
        tools: The declared tools.
        exchanges: The conversation, in order.
        omissions: Everything the log holds up to `at` that could be shown and is not, with the reason.
        model: The model in force, or empty.
        state: The entries, other than messages, that this view depends on: instructions, toolset, model change, pins, quarantines,
            constraints.
        leading: How many system messages are part of the instructions, because they stood before the conversation.
        response: The first entry of the newest response, whose calls can still be answered, whether it is shown or not; None before the first.
        policies: The policies that shaped it, in order.
        constraints: What was changed by hand in the list of the user's constraints, the oldest change first.
        shared: The ancestors' entries that the dialog shares (`Node.ranges`); what lies between two of one ancestor it does not hold. Two views are
            equal whatever it is.
        carried: What stands for something that was left out before and has no words in the view: the facts of it go on here, as derived exchanges that
            are not shown, until a text is made of them. Two views are equal whatever it is.
        settled: How many of its exchanges were there when a plan last shaped it: what was decided about them then is not decided again
            before something new comes. Two views are equal whatever it is.
    """

    dialog_id: DialogId
    at: int
    system: tuple[Block, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    omissions: tuple[Omission, ...] = ()
    model: str = ""
    state: tuple[Span, ...] = ()
    leading: int = 0
    response: Handle | None = None
    policies: tuple[str, ...] = ()
    constraints: tuple[Stated, ...] = ()
    shared: tuple[Span, ...] = field(default=(), compare=False)
    settled: int = field(default=0, compare=False)
    carried: tuple[Exchange, ...] = field(default=(), compare=False)

    def known(self) -> tuple[Exchange, ...]:
        """Give what facts are read from: what it carries without showing it, and what it shows."""
        return (*self.carried, *self.exchanges)

    def newest_user(self) -> int | None:
        """Give the index of the exchange that holds the newest words of the user, or None; words a policy put in do not count."""
        for index in range(len(self.exchanges) - 1, -1, -1):
            exchange = self.exchanges[index]
            if (
                exchange.role is Role.USER
                and not exchange.derived
                and exchange.turns[0].blocks[0].speaker is Speaker.HUMAN
            ):
                return index
        return None

    def unanswered(self) -> int | None:
        """Give the index of the newest output of a tool in a text protocol that the model has not read yet, or None."""
        for index in range(len(self.exchanges) - 1, -1, -1):
            exchange = self.exchanges[index]
            if exchange.observes:
                return index
            if not exchange.derived and exchange.role is Role.ASSISTANT:
                return None
        return None

    def protected(self) -> frozenset[int]:
        """Give the indexes of the exchanges that every plan must leave in: the newest user message and tool output, the pinned, the open."""
        keep = {index for index, exchange in enumerate(self.exchanges) if exchange.pinned or exchange.open}
        return frozenset(keep.union(index for index in (self.newest_user(), self.unanswered()) if index is not None))
