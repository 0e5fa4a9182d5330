"""Manifests: what one model call saw, small enough to keep for every call.

A manifest records how a view differs from the fold of its dialog: which exchanges of the fold it shows, which blocks it shows in another form, and texts of
no entry. With the log it restores the view, byte for byte. Little changes between two calls, so a call keeps the difference to the one
before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter

from palaver.errors import StoreDamaged
from palaver.ids import DialogId
from palaver.log import BlockEdit, Handle, Omitted, Span
from palaver.messages import canonical_json, thaw
from palaver.view.blocks import Block, BlockChange, Turn, from_edit, to_edit
from palaver.view.exchange import Exchange
from palaver.view.view import Omission, View

_T = TypeVar("_T")

CALL_VERSION = 1
"""The version of the record of a call, which has a manifest or a difference to one."""

Manifest: TypeAlias = dict[str, Any]
"""A manifest as JSON values, with these keys:

`at`
    The number of the dialog's last own entry that the view includes.
`system`, `items`
    The blocks of the instructions and the exchanges that are shown, in order: `[start, stop]` for those of the fold at `at` (stop exclusive), or one
    written out.
`edits`
    The blocks shown in another form than in the fold, or left out (`text` is null), by place.
`omitted`
    What the view leaves out, as a compaction records it.
`policies`
    The policies that shaped it.
`compact_at`
    From how many tokens the provider was asked to compact; missing for never.
"""

_LISTS = ("system", "items", "edits", "omitted", "policies")


def manifest(view: View, folded: View) -> Manifest:
    """Record how a view differs from the fold of its dialog at the same entry. `restored` makes the view again.

    Args:
        view: What the model saw.
        folded: `fold(reader, view.dialog_id, view.at)`.
    """
    known = {_key(exchange): index for index, exchange in enumerate(folded.exchanges)}
    places: list[int | Any] = []
    edits: dict[Handle, Any] = {}
    for exchange in view.exchanges:
        index = known.pop(_key(exchange), None)
        if index is None or not _same(folded.exchanges[index], exchange):
            places.append(_write(exchange))
            continue
        places.append(index)
        own = folded.exchanges[index].changes
        changed = (each for each in exchange.changes.items() if own.get(each[0]) != each[1])
        edits |= {target: _write_edit(target, change) for target, change in changed}
    sections: dict[Handle | None, int] = {
        block.origin: index for index, block in enumerate(folded.system) if block.origin is not None
    }
    system = ((block, sections.get(block.origin)) for block in view.system)
    return {
        "at": view.at,
        "system": _runs(
            index
            if index is not None and folded.system[index] == block
            else _adapter(Block).dump_python(block, mode="json")
            for block, index in system
        ),
        "items": _runs(places),
        "edits": list(edits.values()),
        "omitted": [gone.stored().model_dump(mode="json") for gone in view.omissions],
        "policies": list(view.policies),
        **_asked(view.compact_at),
    }


def _asked(compact_at: int) -> Manifest:
    return {"compact_at": compact_at} if compact_at else {}


def restored(stored: Mapping[str, Any], folded: View) -> View:
    """Make the view again that a manifest records.

    Args:
        stored: The whole manifest.
        folded: The fold of the dialog at the manifest's entry.

    Raises:
        StoreDamaged: The manifest is not one, or names exchanges that the fold does not have.
    """
    try:
        exchanges = _edited(folded, dict(map(_read_edit, stored["edits"])))
        return replace(
            folded,
            system=tuple(_chosen(stored["system"], folded.system, _adapter(Block).validate_python)),
            exchanges=tuple(_chosen(stored["items"], exchanges, _read)),
            omissions=tuple(Omission.of(Omitted.model_validate(gone)) for gone in stored["omitted"]),
            policies=tuple(stored["policies"]),
            compact_at=int(stored.get("compact_at", 0)),
        )
    except (LookupError, TypeError, ValueError) as error:  # a pydantic ValidationError is a ValueError
        what = f"the manifest of a call in {folded.dialog_id[:12]}"
        raise StoreDamaged(what, f"it does not fit the log ({error})") from error


# --- a manifest as a difference ----------------------------------------------------------------------------------------------


def changed(stored: Mapping[str, Any], before: Mapping[str, Any]) -> Manifest:
    """Return a manifest as a difference to an earlier one: for each list, the runs that both share and the new items."""
    lists = {name: list(_difference(stored[name], before.get(name, ()))) for name in _LISTS}
    return {"at": stored["at"], **_asked(stored.get("compact_at", 0)), **lists}


def whole(stored: Any) -> Manifest:  # noqa: ANN401 - any JSON value
    """Return a manifest that is not a difference.

    Raises:
        StoreDamaged: It does not say of which entry it is, or what it should list is not a list.
    """
    if not isinstance(stored, dict) or not isinstance(stored.get("at"), int):
        raise StoreDamaged("the manifest of a call", "it does not say of which entry it is")
    if not all(isinstance(stored.get(name, []), list) for name in _LISTS):
        raise StoreDamaged("the manifest of a call", "what it should list is not a list")
    return stored


def patched(difference: Mapping[str, Any], before: Mapping[str, Any]) -> Manifest:
    """Return the whole manifest that `changed` made a difference of.

    Raises:
        StoreDamaged: The difference is not one.
    """
    try:
        lists = {name: list(_undone(difference.get(name, ()), before.get(name, ()))) for name in _LISTS}
        return {"at": difference["at"], **_asked(difference.get("compact_at", 0)), **lists}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StoreDamaged("the manifest of a call", f"it is not a difference to the one before ({error!r})") from error


def _difference(new: Sequence[Any], old: Sequence[Any]) -> Iterator[dict[str, Any]]:
    known = {canonical_json(item): index for index, item in reversed(list(enumerate(old)))}
    places = [known.get(canonical_json(item), -1) for item in new]
    # neighbours in both lists are one run, and so are neighbours that are new
    for _, run in groupby(enumerate(places), key=lambda one: None if one[1] < 0 else one[1] - one[0]):
        indexes = [index for index, _ in run]
        start = places[indexes[0]]
        if start < 0:
            yield {"new": [new[index] for index in indexes]}
        else:
            yield {"kept": [start, start + len(indexes)]}


def _undone(difference: Sequence[Mapping[str, Any]], old: Sequence[Any]) -> Iterator[Any]:
    for run in difference:
        yield from run["new"] if "new" in run else old[slice(*run["kept"])]


# --- in a copy of the session -------------------------------------------------------------------------------------------------


_Json: TypeAlias = dict[str, Any]
_Names: TypeAlias = Mapping[DialogId, DialogId]


def renamed_call(data: Any, names: _Names) -> Any:  # noqa: ANN401 - any JSON value
    """Return the record of a call in a copy of its session, whose dialogs have other ids."""
    if not isinstance(data, Mapping) or data.get("version") != CALL_VERSION or "saw" not in data:
        return data
    return {**data, "saw": _renamed(thaw(data["saw"]), names)}


def _renamed(saw: Mapping[str, Any], names: _Names) -> Manifest:
    """Return a manifest, or a difference to one, that names other dialogs; what is not one stays as it is."""
    parts = {"system": _block_of, "items": _exchange_of, "edits": _edit_of, "omitted": _omission_of}
    try:
        lists = {name: [_item_of(item, names, part) for item in saw.get(name, ())] for name, part in parts.items()}
    except (LookupError, TypeError, ValueError, AttributeError):
        return dict(saw)
    return {**saw, **lists}


def _item_of(item: Any, names: _Names, part: Callable[[_Json, _Names], _Json]) -> Any:  # noqa: ANN401 - a JSON value
    if not isinstance(item, dict) or "kept" in item:
        return item  # indexes
    return {"new": [_item_of(new, names, part) for new in item["new"]]} if "new" in item else part(item, names)


def _place_of(place: _Json, names: _Names) -> _Json:
    return {**place, "dialog": names.get(place["dialog"], place["dialog"])}


def _omission_of(omission: _Json, names: _Names) -> _Json:
    named = (name for name in ("run", "target") if omission.get(name))
    return {**omission, **{name: _place_of(omission[name], names) for name in named}}


def _edit_of(edit: _Json, names: _Names) -> _Json:
    return _omission_of(_with_sources(edit, names), names)


def _with_sources(value: _Json, names: _Names) -> _Json:
    sources = value.get("sources")
    return {**value, "sources": [_place_of(run, names) for run in sources]} if sources else value


def _block_of(block: _Json, names: _Names) -> _Json:
    origin = block["origin"] and [names.get(block["origin"][0], block["origin"][0]), *block["origin"][1:]]
    return {**_with_sources(block, names), "origin": origin}


def _exchange_of(exchange: _Json, names: _Names) -> _Json:
    turns = [{**turn, "blocks": [_block_of(block, names) for block in turn["blocks"]]} for turn in exchange["turns"]]
    runs = [[names.get(dialog, dialog), *bounds] for dialog, *bounds in exchange["runs"]]
    return {**exchange, "turns": turns, "runs": runs}


# --- what a manifest lists ----------------------------------------------------------------------------------------------------


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    return TypeAdapter(kind)


def _key(exchange: Exchange) -> object:
    """Return what finds an exchange in another fold of the same log: its entries; a derived one is found in its own fold only."""
    return (exchange.source.runs, exchange.role) if exchange.source.runs else id(exchange.source)


def _same(folded: Exchange, exchange: Exchange) -> bool:
    """Return whether an exchange differs from the fold by changes of blocks only."""
    return folded.source is exchange.source or bool(exchange.source.entries) or folded == exchange


def _runs(places: Iterable[int | Any]) -> list[Any]:
    """Return indexes as runs, and other items unchanged."""
    items: list[Any] = []
    for place in places:
        if not isinstance(place, int):
            items.append(place)
        elif items and isinstance(items[-1], list) and items[-1][1] == place:
            items[-1][1] = place + 1
        else:
            items.append([place, place + 1])
    return items


def _chosen(items: Iterable[Any], known: Sequence[_T], read: Callable[[Any], _T]) -> Iterator[_T]:
    """Return the items that a list of runs names or contains."""
    for item in items:
        if isinstance(item, Mapping):
            yield read(item)
            continue
        start, stop = item
        if not 0 <= start < stop <= len(known):
            raise ValueError(f"it shows {start} to {stop} of {len(known)}")
        yield from known[start:stop]


def _write_edit(target: Handle, change: BlockChange) -> Any:  # noqa: ANN401 - a JSON value
    edit = to_edit(target, change).model_dump(mode="json")
    return edit if change.text is not None else {**edit, "text": None}


def _read_edit(stored: Mapping[str, Any]) -> tuple[Handle, BlockChange]:
    edit = BlockEdit.model_validate({**stored, "text": stored["text"] or ""})
    change = from_edit(edit)
    return edit.target.handle, change if stored["text"] is not None else replace(change, text=None)


def _edited(folded: View, changes: Mapping[Handle, BlockChange]) -> list[Exchange]:
    """Return the exchanges of a fold with more changes."""
    exchanges = list(folded.exchanges)
    for target, change in changes.items():
        for index in folded.showing(target):
            each = exchanges[index]
            exchanges[index] = replace(each, changes={**each.changes, target: change})
    return exchanges


def _write(exchange: Exchange) -> dict[str, Any]:
    """Write out an exchange that is not in the fold."""
    names = ("pinned", "open", "derived", "messages", "size")
    return {name: getattr(exchange, name) for name in names} | {
        "turns": _adapter(tuple[Turn, ...]).dump_python(exchange.turns, mode="json"),
        "runs": [list(run) for run in exchange.source.runs],
    }


def _read(item: Mapping[str, Any]) -> Exchange:
    rest = {name: value for name, value in item.items() if name not in {"turns", "runs"}}
    turns = _adapter(tuple[Turn, ...]).validate_python(item["turns"])
    return Exchange.of(turns, runs=[Span(*run) for run in item["runs"]], **rest)
