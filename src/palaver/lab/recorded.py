"""The recorded model calls of a dialog: the view, the time and the response of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from palaver.ids import DialogId
from palaver.log import NOTHING, Compaction, Derived, Handle, Header, MessageEntry, Reader, decode_entry
from palaver.messages import Message, Role
from palaver.view import Exchange, Fold, View

_ASSISTANT = frozenset({Role.ASSISTANT, Role.TOOL_CALL})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A recorded model call.

    Attributes:
        number: Its number in the dialog, from 1.
        seq: The number of the last own entry that it could see, -1 before the first.
        first: The first entry of its response.
        at: When the response was recorded, in seconds since 1970 UTC; None if unknown.
        output: Output tokens that the provider reported, or None.
    """

    number: int
    seq: int
    first: Handle
    at: float | None
    output: int | None


@dataclass(frozen=True, slots=True)
class RecordedSummary:
    """A summary that the recorded agent wrote.

    Attributes:
        seq: The number of its entry.
        text: Its text.
    """

    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class _Growth:
    """A view as the change from the previous view.

    Attributes:
        view: The view without its exchanges.
        same: The number of leading exchanges that it shares with the previous view.
        rest: The exchanges after them.
    """

    view: View
    same: int
    rest: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDialog:
    """A dialog with its model calls.

    Attributes:
        dialog: The dialog.
        calls: Its own model calls, in order, without inherited ones.
        whole: The whole view at its end.
        responses: The final responses of its calls, by their first entry.
        summaries: The summaries recorded in it, in order.
        models: The models that answered, in the order of their first answers.
    """

    dialog: DialogId
    calls: tuple[RecordedCall, ...]
    whole: View
    responses: Mapping[Handle, Exchange]
    summaries: tuple[RecordedSummary, ...]
    models: tuple[str, ...]
    _growth: tuple[_Growth, ...]

    def views(self) -> Iterator[tuple[RecordedCall, View]]:
        """Yield each call with the whole view before it; recorded compactions are ignored.

        Unchanged exchanges are the same objects in all views, and in every iteration.
        """
        exchanges: tuple[Exchange, ...] = ()
        for call, growth in zip(self.calls, self._growth, strict=True):
            exchanges = (*exchanges[: growth.same], *growth.rest)
            yield call, replace(growth.view, exchanges=exchanges)


def recorded_dialog(reader: Reader, dialog_id: DialogId) -> RecordedDialog:
    """Return a dialog's calls. Each response is one call, also if it has several fragments."""
    last = NOTHING
    summaries: list[RecordedSummary] = []
    spoken: dict[int, Message] = {}
    for header in reader.headers(dialog_id):
        last = header
        if header.kind == "compaction":
            summaries += _summaries(reader, dialog_id, header)
        elif header.kind == "message" and header.role in _ASSISTANT:
            entry = decode_entry(reader.body(dialog_id, header.seq))
            if isinstance(entry, MessageEntry):
                spoken[header.seq] = entry.message
    whole = Fold(reader, reader.node(dialog_id), whole=True).view(last)
    whole.load()
    responses = {
        each.first: each
        for each in whole.exchanges
        if each.role is Role.ASSISTANT
        and not each.derived
        and each.first is not None
        and each.first.dialog == dialog_id
    }
    calls = tuple(_call(number, first, each, spoken) for number, (first, each) in enumerate(responses.items(), start=1))
    return RecordedDialog(
        dialog=dialog_id,
        calls=calls,
        whole=whole,
        responses=responses,
        summaries=tuple(summaries),
        models=tuple(dict.fromkeys(message.model for message in spoken.values() if message.model)),
        _growth=tuple(_grown(reader, dialog_id, calls)),
    )


def _grown(reader: Reader, dialog_id: DialogId, calls: tuple[RecordedCall, ...]) -> Iterator[_Growth]:
    fold = Fold(reader, reader.node(dialog_id), whole=True)
    before: tuple[Exchange, ...] = ()
    for call in calls:
        view = fold.view(NOTHING if call.seq < 0 else reader.header(dialog_id, call.seq))
        both = zip(before, view.exchanges, strict=False)
        same = next((index for index, (one, other) in enumerate(both) if one is not other), None)
        if same is None:
            same = min(len(before), len(view.exchanges))
        view.load(range(same, len(view.exchanges)))
        before = view.exchanges
        yield _Growth(replace(view, exchanges=()), same, before[same:])


def _call(number: int, first: Handle, response: Exchange, spoken: Mapping[int, Message]) -> RecordedCall:
    """Return the call of a response. Providers report usage with the last fragment of a response."""
    said = [spoken[place.seq] for place in response.entries() if place.dialog == first.dialog and place.seq in spoken]
    written = [message.usage.output_tokens for message in said if message.usage]
    return RecordedCall(
        number=number,
        seq=first.seq - 1,
        first=first,
        at=said[0].timestamp or None if said else None,
        output=max(written, default=0) or None,
    )


def _summaries(reader: Reader, dialog_id: DialogId, header: Header) -> Iterator[RecordedSummary]:
    entry = decode_entry(reader.body(dialog_id, header.seq))
    if isinstance(entry, Compaction):
        texts = [piece.text for piece in entry.pieces if isinstance(piece, Derived)]
        if texts:
            yield RecordedSummary(header.seq, "\n\n".join(texts))
