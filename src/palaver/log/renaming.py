"""Renaming: an entry as it is in a copy of its session, whose dialogs have other ids.

Only fields whose value is an id are renamed. Texts stay as they are: handles printed in them have the first digits of an id, which a copy keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from palaver.ids import DialogId
from palaver.log.entries import BranchSummary, Entry
from palaver.log.erasure import COPY_OF, copy_of, originals
from palaver.log.values import LogValue, Place, Run
from palaver.messages import Message, ToolResultContent

Names = Mapping[DialogId, DialogId]
"""The new ids of dialogs, by their old ones. An id that is not in it stays."""

_Value = TypeVar("_Value", bound=LogValue)


def renamed(entry: Entry, names: Names) -> Entry:
    """Return an entry with the ids of dialogs replaced: in places, runs, branches, and in what a message repeats of other entries."""
    return _renamed(entry, names)


def _renamed(value: _Value, names: Names) -> _Value:
    changed: dict[str, Any] = {}
    for name in type(value).model_fields:
        old = getattr(value, name)
        new = _field(old, names)
        if new is not old:
            changed[name] = new
    if isinstance(value, Place | Run | BranchSummary) and value.dialog is not None:
        changed["dialog"] = names.get(value.dialog, value.dialog)
    return value.model_copy(update=changed) if changed else value


def _field(value: Any, names: Names) -> Any:  # noqa: ANN401 - a field of any type
    if isinstance(value, LogValue):
        return _renamed(value, names)
    if isinstance(value, Message):
        return _message(value, names)
    if isinstance(value, tuple):
        items = tuple(_field(item, names) for item in value)
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _message(message: Message, names: Names) -> Message:
    contents = tuple(
        content.model_copy(update={"metadata": _metadata(content.metadata, names)})
        if isinstance(content, ToolResultContent)
        else content
        for content in message.contents
    )
    return message.model_copy(update={"contents": contents, "metadata": _metadata(message.metadata, names)})


def _metadata(metadata: Mapping[str, Any], names: Names) -> Mapping[str, Any]:
    """Return metadata with the dialog that a message was put into, and the entries that it repeats, under their new names."""
    own = metadata.get("dialog_id")
    repeats = copy_of(place._replace(dialog=names.get(place.dialog, place.dialog)) for place in originals(metadata))
    kept = {name: value for name, value in metadata.items() if name != COPY_OF or not repeats}
    stamp = {"dialog_id": names[DialogId(own)]} if isinstance(own, str) and own in names else {}
    return {**kept, **repeats, **stamp}
