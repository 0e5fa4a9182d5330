"""Merging: what happened on a branch comes back into another one as one entry that says where it is from.

Messages of the branch are not copied: the two sides stay apart, and what one side said never becomes what the other said. The entry holds an
account, made by code or by the caller, the entries that it was made of, and the lowest trust among them; every line of an account by code
has the handle of what it tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from palaver.context.record import Recorder, told
from palaver.errors import InvalidInput
from palaver.ids import DialogId, SessionId
from palaver.log import NOTHING, BranchSummary, Handle, Place, Reader, Run, Span, entry_at
from palaver.messages import Trust
from palaver.session.branches.paths import apart, common, newest, node_of, runs_of
from palaver.tokens import counter
from palaver.view import Exchange, Folding

__all__ = ["ROOM", "account", "departure", "exchanges_of", "lowest_trust"]

ROOM = 1_000
"""Tokens that an account by code has at most; all of what it tells of can be recalled."""


class Branching(NamedTuple):
    """A branch, and the one that it is told to.

    Attributes:
        dialog_id: The branch.
        spans: All that it holds.
        others: All that the other one holds.
    """

    dialog_id: DialogId
    spans: Sequence[Span]
    others: Sequence[Span]


def exchanges_of(reader: Reader, session_id: SessionId, spans: Sequence[Span]) -> tuple[Exchange, ...]:
    """Give what was said in some entries alone, nothing left out by a policy."""
    view = Folding(reader, node_of(session_id, spans), whole=True).view(NOTHING)
    return view.exchanges


def lowest_trust(exchanges: Iterable[Exchange]) -> Trust:
    """Give the lowest trust among what was said; of nothing the lowest there is."""
    return min((block.trust for exchange in exchanges for block in exchange.blocks()), default=Trust.OUTSIDE)


def account(
    reader: Reader, session_id: SessionId, branching: Branching, summary: str | None, room: int = ROOM
) -> BranchSummary:
    """Make the entry that tells of a branch: of what the other one does not hold and was not told before.

    Args:
        reader: The log.
        session_id: The session of both.
        branching: The branch and the one that it is told to.
        summary: What happened, in the caller's words; told by code when not given.
        room: Tokens that an account by code may have.

    Raises:
        InvalidInput: There is nothing to tell: the other one holds it, or was told, or nothing was said.
    """
    new = apart(apart(branching.spans, branching.others), _told_before(reader, branching.others))
    said = exchanges_of(reader, session_id, new)
    if not said:
        raise InvalidInput(
            f"Nothing was said on branch {branching.dialog_id[:12]} that this dialog does not have or was not told.",
            hint="Say something there first.",
        )
    head = _head(branching, new, len(said))
    if summary is None:
        facts = Recorder(begun=True).take(said).facts()
        text = told(facts, head, room, counter("").text)
    else:
        text = f"{head}\n{summary}"
    return departure(branching, text, new, lowest_trust(said))


def departure(branching: Branching, text: str, sources: Sequence[Span], trust: Trust) -> BranchSummary:
    """Make the entry of a text about a branch: the branch, where it parted from the other one, and what the text was made of."""
    parted = newest(common(branching.spans, branching.others))
    return BranchSummary(
        summary=text,
        dialog=branching.dialog_id,
        left=None if parted is None else Place(dialog=parted.dialog, seq=parted.seq),
        sources=runs_of(sources),
        trust=trust.name.lower(),
    )


def _told_before(reader: Reader, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Give the entries that summaries of branches already tell of; reads headers, and the bodies of those summaries."""
    found: list[Run] = []
    for span in spans:
        for header in reader.headers(span.dialog, span.start, span.stop):
            if header.kind == "branch_summary":
                entry = entry_at(reader, Handle(span.dialog, header.seq))
                found.extend((entry.sources or ()) if isinstance(entry, BranchSummary) else ())
    return tuple(Span(run.dialog, run.start, run.stop) for run in found)


def _head(branching: Branching, spans: Sequence[Span], count: int) -> str:
    """Say in a line what follows, and where its originals are."""
    runs = ", ".join(f"{Handle(span.dialog, span.start)} to {Handle(span.dialog, span.stop - 1)}" for span in spans)
    things = "1 exchange" if count == 1 else f"{count} exchanges"
    return f"[What happened on branch {branching.dialog_id[:12]}, {things}; recall {runs} for the originals]"
