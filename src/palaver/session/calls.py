"""The call history: every recorded model call, reproduced byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import takewhile
from typing import Any, NamedTuple, overload

from pydantic import TypeAdapter

from palaver import providers, wire
from palaver.errors import Conflict, InvalidInput, NotFound, NotReproducible, StoreDamaged
from palaver.log import ErrorEntry, Handle, Header, Invocation, MessageEntry, Reader, entry_at
from palaver.messages import Message, Usage, thaw
from palaver.plurals import counted
from palaver.session.opened import OpenDialog
from palaver.store.protocol import Store
from palaver.store.records import payloads_of
from palaver.store.redacting import RedactingStore
from palaver.view import (
    CALL_VERSION,
    Manifest,
    Omission,
    View,
    changed,
    fold,
    manifest,
    patched,
    restored,
    whole,
)

__all__ = ["CallHistory", "ModelCall"]

_DEEPEST = 32
"""The maximum number of differences before a whole manifest, which bounds the reads to rebuild one."""

_ANSWER_WITHIN = 64
"""The number of entries after a call in which to search for its answer."""

_Data = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One recorded call of a model.

    Attributes:
        store: The store that records it.
        number: Its number among the dialog's calls, starting at 1.
        handle: The entry that records it.
        entry: The entry.
    """

    store: Store = field(repr=False)
    number: int
    handle: Handle
    entry: Invocation = field(repr=False)

    @property
    def model(self) -> str:
        """The model."""
        return self.entry.model

    @property
    def at(self) -> float:
        """The time, in seconds since 1970-01-01 UTC."""
        return self.entry.at

    @property
    def reproducible(self) -> bool:
        """Whether the call recorded the model's view; other programs' calls did not."""
        return _is_ours(self.entry)

    @property
    def sent(self) -> _Data:
        """Data of the request; empty for other programs' calls.

        It has `profile`, `digest` (SHA-256 of the bytes), `bytes`, `compiler` (0 for a request that palaver passed on and did not write) and, where
        the profile is not palaver's alone, `columns`.
        """
        return self._data["request"] if self.reproducible else {}

    def view(self) -> View:
        """Return the view of the model.

        Raises:
            NotReproducible: Another program recorded the call, or it was erased.
        """
        return _viewed(self.store, self.handle, list(_chain(self.store, self.handle, self._data)))

    def request(self) -> wire.Request:
        """Return the request that was sent, byte for byte.

        Raises:
            NotReproducible: As for `view`; or this version compiles other bytes, which the error has.
            StoreDamaged: The record is not one.
        """
        chain = list(_chain(self.store, self.handle, self._data))
        try:
            name, model, digest, compiler = (self.sent[key] for key in ("profile", "model", "digest", "compiler"))
            call = _calls().validate_python(thaw(_asked(self.handle, chain)))
            sent = _sent(chain)
            fields = json.loads(sent) if sent else {}
        except (LookupError, TypeError, ValueError) as error:
            raise StoreDamaged(str(self.handle), f"it is not the record of a call ({error})") from error
        profile = providers.profile(name, model, self.sent.get("columns", {}))
        view = _viewed(self.store, self.handle, chain)
        if sent:
            made = wire.passed_on(sent.encode(), fields, profile, call, view)
        else:
            load = payloads_of(self.store, self.store.node(self.handle.dialog).session_id)
            made = wire.compile(view, profile, call, load)
        if made.digest != digest:
            version = f"Version {compiler} of the compiler made it; this one is {wire.COMPILER}."
            same = "The view is the recorded one, but it compiles to other bytes: its profile is not one of palaver's, or it was redacted."
            taken = "Secrets were taken out of it before it was written."
            raise NotReproducible(taken if sent else version if compiler != wire.COMPILER else same, request=made)
        return made

    def usage(self) -> Usage | None:
        """Return the usage that the provider reported for the answer; None without an answer."""
        answer = self._answer()
        return None if answer is None else answer.usage

    def failure(self) -> str:
        """Return the class of the error that ended the call, such as `ProviderError`; empty if it was answered, or nothing came of it."""
        if self._answer() is not None:
            return ""
        seqs = (header.seq for header in self._after() if header.kind == "error")
        entry = next((entry_at(self.store, Handle(self.handle.dialog, seq)) for seq in seqs), None)
        return entry.error if isinstance(entry, ErrorEntry) else ""

    def left_out(self) -> tuple[Omission, ...]:
        """Return what the provider says it left out of the request, such as thinking that was bound to other content.

        Raises:
            NotReproducible: As for `request`.
        """
        answer = self._answer()
        return () if answer is None or wire.TRANSFORMED not in answer.metadata else self.request().left_out(answer)

    def _answer(self) -> Message | None:
        for header in self._after():
            if header.kind == "message" and header.role in {"assistant", "tool_call"}:
                entry = entry_at(self.store, Handle(self.handle.dialog, header.seq))
                return entry.message if isinstance(entry, MessageEntry) else None
        return None

    def _after(self) -> Iterator[Header]:
        """Yield the headers of the entries between the call and the next one."""
        headers = self.store.headers(self.handle.dialog, self.handle.seq + 1, self.handle.seq + 1 + _ANSWER_WITHIN)
        return takewhile(lambda header: header.kind != "invocation", headers)

    @property
    def _data(self) -> _Data:
        if self.entry.erased is not None:
            raise NotReproducible(f"The view of call {self.number} was erased (receipt {self.entry.erased.receipt}).")
        if not self.reproducible:
            raise NotReproducible(f"Another program recorded call {self.number}, without the view.")
        data: _Data = self.entry.manifest
        return data


class CallHistory(Sequence[ModelCall]):
    """The model calls of a dialog in order, including those of its ancestors before the fork. Records the next call."""

    def __init__(self, dialog: OpenDialog) -> None:
        """Create the history; nothing is read yet."""
        self._dialog = dialog
        self._store = dialog.store
        self._own: list[int] = []
        self._read = -1
        self._changes = dialog.changes
        self._latest: _Latest | None = None

    # --- reading ----------------------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'model call')}>"

    def __len__(self) -> int:
        """Return the number of calls; read the headers of new ones."""
        self._dialog.refresh()
        self._catch_up()
        return len(self._inherited) + len(self._own)

    @overload
    def __getitem__(self, index: int) -> ModelCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ModelCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ModelCall | tuple[ModelCall, ...]:
        """Return one call by its index, or several as a tuple."""
        if isinstance(index, slice):
            return tuple(map(self._call, range(*index.indices(len(self)))))
        return self._call(range(len(self))[index])

    def __iter__(self) -> Iterator[ModelCall]:
        """Yield the calls that there are now."""
        return map(self._call, range(len(self)))

    def _call(self, number: int) -> ModelCall:
        own = number - len(self._inherited)
        place = self._inherited[number] if own < 0 else Handle(self._dialog.dialog_id, self._own[own])
        entry = entry_at(self._store, place)
        if not isinstance(entry, Invocation):
            raise NotFound(str(place), what="model call")
        return ModelCall(store=self._store, number=number + 1, handle=place, entry=entry)

    def _catch_up(self) -> None:
        last = self._dialog.last
        if self._changes != self._dialog.changes:  # a call may be erased, or rolled back
            self._own, self._read, self._latest = [], -1, None
            self._changes = self._dialog.changes
        if last.seq > self._read:
            new = self._dialog.recent.latest_of_kind(self._dialog.dialog_id, "invocation", self._read + 1, last.seq + 1)
            self._own += sorted(header.seq for header in new)
            self._read = last.seq

    @cached_property
    def _inherited(self) -> tuple[Handle, ...]:
        places: list[Handle] = []
        for span in self._dialog.node.ranges:
            headers = self._store.latest_of_kind(span.dialog, "invocation", span.start, span.stop)
            places += sorted(Handle(span.dialog, header.seq) for header in headers)
        return tuple(places)

    # --- recording --------------------------------------------------------------------------------------------------------------------

    def record(self, request: wire.Request) -> Handle:
        """Record a model call and its view, before the request is sent, so that a crash leaves a trace.

        The cost depends on the changes since the previous call.

        Raises:
            Conflict: Part of the dialog was erased after the request was compiled, or another writer continued it.
            InvalidInput: The request has no view of this dialog.
        """
        view, dialog_id = request.view, self._dialog.dialog_id
        if view is None or request.call is None or view.dialog_id != dialog_id:
            raise InvalidInput(
                f"The request was not compiled from a view of dialog {dialog_id}.", hint="Use dialog.request()."
            )
        self._catch_up()
        saw = manifest(view, self._dialog.known_view(view.at))
        asked = thaw(_calls().dump_python(request.call, mode="json", exclude_defaults=True))
        before = self._latest or self._find_latest()
        sent = self._as_stored(request.sent.decode())
        data, depth = _recorded(request, saw, asked, sent, before)

        def check(newest: Header) -> None:
            self._dialog.require_unerased(view.at, "the request")
            if newest.turn_head != self._dialog.last.turn_head:
                raise Conflict(dialog_id, self._dialog.last.turn_head, newest.turn_head)

        place = self._dialog.annotate(Invocation(model=request.model, manifest=data), check)
        self._latest = _Latest(place.seq, depth, saw, asked, sent)
        return place

    def _as_stored(self, sent: str) -> str:
        """Return the text of a request as the store may keep it: a secret is found in the whole, not in what differs from an earlier request."""
        return self._store.redactor.redact(sent).text if isinstance(self._store, RedactingStore) else sent

    def _find_latest(self) -> _Latest | None:
        """Return the newest own call that recorded its view, or None if its manifest cannot be read."""
        if not self._own:
            return None
        place = Handle(self._dialog.dialog_id, self._own[-1])
        entry = entry_at(self._dialog.recent, place)
        if not isinstance(entry, Invocation) or not _is_ours(entry):
            return None
        try:
            chain = list(_chain(self._dialog.recent, place, entry.manifest))
            return _Latest(place.seq, len(chain) - 1, _patched(chain), thaw(_asked(place, chain)), _sent(chain))
        except (NotReproducible, StoreDamaged):
            return None


class _Latest(NamedTuple):
    """The newest call that this process knows. The next manifest is a difference from it.

    Attributes:
        seq: The number of the entry.
        depth: The number of differences between it and a whole manifest.
        saw: Its whole manifest.
        asked: Its call, as JSON values.
        sent: The text of a request that palaver passed on and did not write, or empty.
    """

    seq: int
    depth: int
    saw: Manifest
    asked: _Data
    sent: str


def _recorded(
    request: wire.Request, saw: Manifest, asked: _Data, sent: str, before: _Latest | None
) -> tuple[dict[str, Any], int]:
    """Return an entry's record of a call, and the number of differences before it."""
    figures = {
        "profile": request.profile.name,
        "model": request.model,
        "digest": request.digest,
        "bytes": len(request.data),
        "compiler": 0 if sent else wire.COMPILER,
    }
    if request.profile.columns:
        figures["columns"] = thaw(request.profile.columns)
    data: dict[str, Any] = {"version": CALL_VERSION, "request": figures}
    if before is None or before.depth >= _DEEPEST:  # a whole manifest bounds what a reader must read
        return data | {"saw": saw, "call": asked} | ({"sent": [sent]} if sent else {}), 0
    data |= {"base": before.seq, "saw": changed(saw, before.saw)}
    data |= {"sent": _difference(sent, before.sent)} if sent else {}
    return data | ({} if asked == before.asked else {"call": asked}), before.depth + 1


def _is_ours(entry: Invocation) -> bool:
    data = entry.manifest
    return isinstance(data, Mapping) and data.get("version") == CALL_VERSION and "saw" in data


def _chain(reader: Reader, place: Handle, data: _Data) -> Iterator[_Data]:
    """Yield the record of a call, then of earlier calls, back to a whole manifest."""
    yield data
    seq = place.seq
    while "base" in data:
        base = data["base"]
        if not isinstance(base, int) or not 0 <= base < seq:  # a forged record must not lead in a circle
            raise StoreDamaged(str(place), f"its view depends on {base!r}, which is not an earlier call")
        seq = base
        entry = entry_at(reader, Handle(place.dialog, seq))
        if not isinstance(entry, Invocation) or not _is_ours(entry):
            raise NotReproducible(f"An earlier call, on which the record of {place} depends, was erased.")
        data = entry.manifest
        yield data


def _viewed(store: Store, place: Handle, chain: Sequence[_Data]) -> View:
    saw = _patched(chain)
    return restored(saw, fold(store, place.dialog, saw["at"]))


def _asked(place: Handle, chain: Iterable[_Data]) -> _Data:
    """Return the call of a record: its own, or that of the newest earlier record that has one."""
    asked = next((record["call"] for record in chain if "call" in record), None)
    if not isinstance(asked, Mapping):
        raise StoreDamaged(str(place), "the record of its call is lost")
    return asked


def _patched(chain: Sequence[_Data]) -> Manifest:
    *differences, first = [record["saw"] for record in chain]
    saw = whole(thaw(first))
    for difference in reversed(differences):
        saw = patched(thaw(difference), saw)
    return saw


def _difference(text: str, before: str) -> list[Any]:
    """Return a text as its difference from an earlier one: what is new, and how much is the same at the beginning and at the end."""
    start = _same(text, before)
    end = _same(text[: start - 1 if start else None : -1], before[: start - 1 if start else None : -1])
    return [text[start : len(text) - end], start, end]


def _same(text: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _sent(chain: Sequence[_Data]) -> str:
    """Return the text of a request that was passed on; empty where palaver wrote it."""
    text = ""
    for record in reversed(chain):
        new, start, end = [*record["sent"], 0, 0][:3] if "sent" in record else ("", 0, 0)
        if start + end > len(text):
            raise ValueError("it repeats more of an earlier request than there is")
        text = text[:start] + new + text[len(text) - end :]
    return text


@cache
def _calls() -> TypeAdapter[wire.Call]:
    """Return the codec of calls, created on first use."""
    return TypeAdapter(wire.Call)
