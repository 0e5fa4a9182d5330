"""Model calls as they were: each recorded with what it saw, and given back to the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, overload

from pydantic import TypeAdapter

from palaver.errors import InvalidInput, NotReproducible, UnknownHandle
from palaver.ids import BlobId, DialogId
from palaver.log import Handle, Invocation, Span, entry_at
from palaver.messages import thaw
from palaver.store.protocol import Store
from palaver.view import RULES, Manifest, View, changed, fold, manifest, patched, restored, rules_of
from palaver.wire import COMPILER, Call, Request, profile
from palaver.wire import compile as compile_request

__all__ = ["Invocations", "ModelCall", "newest_view"]

VERSION = 1
"""The version of what an invocation's manifest holds."""

_DEEPEST = 32
"""After so many differences a manifest is written whole, so that reading one costs a bounded number of reads."""

_SEARCHED = 512
"""How many of the newest headers are searched for the call before; where it stands further back, a manifest is written whole."""


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One call of a model, as it was recorded.

    Attributes:
        store: Where it is recorded.
        number: Its number among the dialog's calls, starting at 1.
        handle: The entry that records it.
        entry: The entry.
    """

    store: Store
    number: int
    handle: Handle
    entry: Invocation

    @property
    def model(self) -> str:
        """The model that was asked."""
        return self.entry.model

    @property
    def at(self) -> float:
        """When, in seconds since 1970-01-01 UTC."""
        return self.entry.at

    @property
    def reproducible(self) -> bool:
        """Whether what it saw was recorded; other programs' calls were not recorded so."""
        return _is_ours(self.entry)

    @property
    def sent(self) -> Mapping[str, Any]:
        """The request in figures: `profile`, `digest` (SHA-256 of the canonical bytes), `bytes`, and the `compiler`'s version."""
        return self._data["request"] if self.reproducible else {}

    @property
    def decision(self) -> Mapping[str, Any] | None:
        """What a schedule decided before it, and the figures of a map that it was the first to show; None where there was nothing of either."""
        data = self.entry.manifest
        return data.get("decision") if isinstance(data, Mapping) else None

    def view(self) -> View:
        """Give what the model saw.

        Raises:
            NotReproducible: Another program recorded the call, and not what it saw.
        """
        return _view(self.store, self.handle, _whole(self.store, self.handle, self._data))

    def request(self) -> Request:
        """Give the request that was sent, the same to the byte.

        Raises:
            NotReproducible: Another program recorded the call; or compiling gives other bytes today, and the error has them.
        """
        sent = self._data["request"]
        made = compile_request(
            self.view(),
            profile(sent["profile"], sent["model"]),
            _calls().validate_python(thaw(_call_of(self.store, self.handle, self._data))),
            lambda digest: self.store.blob(BlobId(digest)),
        )
        if made.digest != sent["digest"]:
            raise NotReproducible(_why(sent), request=made)
        return made

    @property
    def _data(self) -> Mapping[str, Any]:
        if self.entry.erased is not None:
            raise NotReproducible(f"What call {self.number} saw was erased (receipt {self.entry.erased.receipt}).")
        if not self.reproducible:
            raise NotReproducible(f"Call {self.number} was recorded by another program, without what it saw.")
        data: Mapping[str, Any] = self.entry.manifest
        return data


class Invocations(Sequence[ModelCall]):
    """The model calls of a dialog, those of its ancestors before the fork included, in order; numbered from 1 for people, from 0 here."""

    def __init__(self, store: Store, spans: Sequence[Span]) -> None:
        self._store = store
        self._places = tuple(
            Handle(span.dialog, header.seq)
            for span in spans
            for header in reversed(list(store.of_kind(span.dialog, "invocation", span.start, span.stop)))
        )

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ModelCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ModelCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ModelCall | tuple[ModelCall, ...]:
        if isinstance(index, slice):
            return tuple(self._call(number) for number in range(*index.indices(len(self))))
        return self._call(range(len(self))[index])

    def _call(self, index: int) -> ModelCall:
        place = self._places[index]
        entry = entry_at(self._store, place)
        if not isinstance(entry, Invocation):
            raise UnknownHandle(str(place), hint="It is no model call.")
        return ModelCall(store=self._store, number=index + 1, handle=place, entry=entry)


# --- recording -------------------------------------------------------------------------------------------------------------------


class Latest(NamedTuple):
    """The newest call that this process knows of: what the next one's manifest is a difference to.

    Attributes:
        seq: The number of the entry.
        depth: How many differences lie between it and a whole manifest.
        saw: Its whole manifest.
        asked: Its call, as JSON values.
    """

    seq: int
    depth: int
    saw: Manifest
    asked: Mapping[str, Any]


def recorded(
    folded: Callable[[int], View],
    dialog_id: DialogId,
    request: Request,
    before: Latest | None,
    decision: Mapping[str, Any] | None = None,
) -> tuple[Invocation, Latest]:
    """Give the entry that records a call, and what the next one is to be a difference to (its `seq` is still to be filled in).

    Args:
        folded: Gives the fold of the dialog at an own entry.
        dialog_id: The dialog that the call is made for.
        request: The request as it is to be sent.
        before: The call before, or None.
        decision: What a schedule decided before it, as JSON values; None where nothing was scheduled.

    Raises:
        InvalidInput: The request was not compiled from a view of this dialog.
    """
    if request.view is None or request.call is None or request.view.dialog_id != dialog_id:
        raise InvalidInput(
            f"The request was not compiled from a view of dialog {dialog_id}.",
            hint="Compile it with dialog.request(), or from a view that dialog.view() or dialog.compose() gave.",
        )
    view = request.view
    saw = manifest(view, folded(view.at))
    asked = thaw(_calls().dump_python(request.call, mode="json", exclude_defaults=True))
    data: dict[str, Any] = {"version": VERSION, "request": _figures(request)}
    if decision is not None:
        data["decision"] = dict(decision)
    if before is None or before.depth >= _DEEPEST:
        data |= {"saw": saw, "call": asked}
        return Invocation(model=request.model, manifest=data), Latest(-1, 0, saw, asked)
    data |= {"base": before.seq, "saw": changed(saw, before.saw)}
    if asked != before.asked:
        data["call"] = asked
    return Invocation(model=request.model, manifest=data), Latest(-1, before.depth + 1, saw, asked)


def latest(store: Store, dialog_id: DialogId) -> Latest | None:
    """Find the dialog's newest own call that was recorded with what it saw; None where there is none near, or what it goes on from is lost."""
    found = _newest(store, dialog_id)
    if found is None:
        return None
    place, data = found
    try:
        chain = sum(1 for _ in _chain(store, place, data))
        return Latest(place.seq, chain - 1, _whole(store, place, data), thaw(_call_of(store, place, data)))
    except NotReproducible:
        return None


def newest_view(store: Store, dialog_id: DialogId) -> View:
    """Give what the model saw when a dialog's newest call was recorded; the view of the log where no call was, not near, or none of ours."""
    if (found := _newest(store, dialog_id)) is not None:
        with suppress(NotReproducible):
            return _view(store, found[0], _whole(store, *found))
    return fold(store, dialog_id)


def _newest(store: Store, dialog_id: DialogId) -> tuple[Handle, Mapping[str, Any]] | None:
    """Find the newest own call that was recorded with what it saw, among the newest entries."""
    near = store.last(dialog_id).seq + 1 - _SEARCHED
    for header in store.of_kind(dialog_id, "invocation", near):
        entry = entry_at(store, Handle(dialog_id, header.seq))
        if isinstance(entry, Invocation) and _is_ours(entry):
            return Handle(dialog_id, header.seq), entry.manifest
    return None


def _figures(request: Request) -> dict[str, Any]:
    return {
        "profile": request.profile.name,
        "model": request.model,
        "digest": request.digest,
        "bytes": len(request.data),
        "compiler": COMPILER,
    }


# --- giving back ------------------------------------------------------------------------------------------------------------------


def _is_ours(entry: Invocation) -> bool:
    data = entry.manifest
    return isinstance(data, Mapping) and data.get("version") == VERSION and "saw" in data


def _chain(store: Store, place: Handle, data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give what a call recorded, then what the calls before it did, back to a whole manifest."""
    yield data
    while "base" in data:
        entry = entry_at(store, Handle(place.dialog, data["base"]))
        if not isinstance(entry, Invocation) or not _is_ours(entry):
            raise NotReproducible(f"The call that {place} goes on from is not there any more: it was erased.")
        data = entry.manifest
        yield data


def _whole(store: Store, place: Handle, data: Mapping[str, Any]) -> Manifest:
    *differences, first = [one["saw"] for one in _chain(store, place, data)]
    saw: Manifest = thaw(first)
    for difference in reversed(differences):
        saw = patched(thaw(difference), saw)
    return saw


def _call_of(store: Store, place: Handle, data: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one["call"] for one in _chain(store, place, data) if "call" in one)
    return found


def _view(store: Store, place: Handle, saw: Manifest) -> View:
    rules = rules_of(saw)
    if rules > RULES:
        raise NotReproducible(f"A later version of palaver recorded it (rules {rules} of the fold; these are {RULES}).")
    return restored(saw, fold(store, place.dialog, saw["at"], rules=rules))


def _why(sent: Mapping[str, Any]) -> str:
    if sent["compiler"] != COMPILER:
        return f"It was compiled by version {sent['compiler']} of the compiler; this one is version {COMPILER}."
    return "The view is the recorded one, but compiling it gives other bytes: its profile or call is not one of palaver's own."


@cache
def _calls() -> TypeAdapter[Call]:
    """Give what writes calls down and reads them; made when it is first needed."""
    return TypeAdapter(Call)
