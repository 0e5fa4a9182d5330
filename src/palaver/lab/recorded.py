"""The recorded model calls of a dialog: what each saw, when it was answered, and what the answer referred to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from palaver.ids import DialogId
from palaver.log import NOTHING, Compaction, Derived, Handle, Header, MessageEntry, Reader, decode_entry
from palaver.messages import Message, Role
from palaver.view import Exchange, Folding, View

__all__ = ["Call", "Told", "Trace", "trace"]

_ASSISTANT = frozenset({Role.ASSISTANT, Role.TOOL_CALL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A recorded model call.

    Attributes:
        number: Its number in the dialog, from 1.
        seq: The number of the last own entry that it could see, -1 before the first.
        first: The first entry of its response.
        at: When the response was recorded, in seconds since 1970 UTC; None where that is not known.
        output: Tokens that the provider reported as written; None where it did not.
    """

    number: int
    seq: int
    first: Handle
    at: float | None
    output: int | None


@dataclass(frozen=True, slots=True)
class Told:
    """A summary that was recorded.

    Attributes:
        seq: The number of the entry that holds it.
        text: Its words.
    """

    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A dialog as its agent went through it.

    Attributes:
        reader: The log.
        dialog: The dialog.
        calls: Its own model calls, in order; those it inherited are its parent's.
        whole: The view of everything at its end.
        responses: The responses of its calls as they stand at the end, by their first entry.
        summaries: The summaries recorded in it, in order.
        models: The models that answered, in the order of their first answers.
    """

    reader: Reader
    dialog: DialogId
    calls: tuple[Call, ...]
    whole: View
    responses: Mapping[Handle, Exchange]
    summaries: tuple[Told, ...]
    models: tuple[str, ...]

    def views(self) -> Iterator[tuple[Call, View]]:
        """Give each call with the view of everything that had been said before it, compactions that were recorded passed over.

        One fold is gone on with, so all of them together cost one reading of the log. What did not change between two of them is the same
        object in both.
        """
        folding = Folding(self.reader, self.reader.node(self.dialog), whole=True)
        folded: tuple[Exchange, ...] = ()
        given: tuple[Exchange, ...] = ()
        for call in self.calls:
            upto = NOTHING if call.seq < 0 else self.reader.header(self.dialog, call.seq)
            view = folding.view(upto)
            given, folded = _kept(folded, given, view.exchanges), view.exchanges
            yield call, replace(view, exchanges=given)


def _kept(folded: tuple[Exchange, ...], given: tuple[Exchange, ...], now: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
    """Give exchanges of which those that are as they were are the same objects as before.

    A fold makes those anew that may still change, near the end; what stands before the first of them is as it was.

    Args:
        folded: What the fold gave before.
        given: What was given for it.
        now: What the fold gives now.
    """
    both = min(len(folded), len(now))
    same = next((index for index in range(both) if folded[index] is not now[index]), both)
    rest = (
        given[index] if index < len(given) and given[index] == now[index] else now[index]
        for index in range(same, len(now))
    )
    return (*given[:same], *rest)


def trace(reader: Reader, dialog_id: DialogId) -> Trace:
    """Read a dialog's calls.

    A call is where a new response begins, by the rules of the fold: fragments of one response are one call.
    """
    last = NOTHING
    summaries: list[Told] = []
    spoken: dict[int, Message] = {}
    for header in reader.headers(dialog_id):
        last = header
        if header.kind == "compaction":
            summaries += _summaries(reader, dialog_id, header)
        elif header.kind == "message" and header.role in _ASSISTANT:
            entry = decode_entry(reader.body(dialog_id, header.seq))
            if isinstance(entry, MessageEntry):
                spoken[header.seq] = entry.message
    whole = Folding(reader, reader.node(dialog_id), whole=True).view(last)
    own = [
        each
        for each in whole.exchanges
        if each.role is Role.ASSISTANT
        and not each.derived
        and each.first is not None
        and each.first.dialog == dialog_id
    ]
    return Trace(
        reader=reader,
        dialog=dialog_id,
        calls=tuple(_call(number, each, spoken) for number, each in enumerate(own, start=1)),
        whole=whole,
        responses={each.first: each for each in own if each.first is not None},
        summaries=tuple(summaries),
        models=tuple(dict.fromkeys(message.model for message in spoken.values() if message.model)),
    )


def _call(number: int, response: Exchange, spoken: Mapping[int, Message]) -> Call:
    """Make a call of its response; providers report the usage of one with its last fragment."""
    first = response.first
    assert first is not None  # noqa: S101 - a response is recorded
    said = [
        spoken[seq]
        for run in response.runs
        if run.dialog == first.dialog
        for seq in range(run.start, run.stop)
        if seq in spoken
    ]
    written = [message.usage.output_tokens for message in said if message.usage]
    return Call(
        number=number,
        seq=first.seq - 1,
        first=first,
        at=said[0].timestamp or None if said else None,
        output=max(written, default=0) or None,
    )


def _summaries(reader: Reader, dialog_id: DialogId, header: Header) -> Iterator[Told]:
    entry = decode_entry(reader.body(dialog_id, header.seq))
    if isinstance(entry, Compaction):
        texts = [piece.text for piece in entry.pieces if isinstance(piece, Derived)]
        if texts:
            yield Told(header.seq, "\n\n".join(texts))
