"""Titles: what people call a session in lists and headings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePath

from palaver.errors import StoreDamaged, StoreError
from palaver.ids import DialogId, unchosen_name
from palaver.log import lineage
from palaver.store.protocol import SessionRecord, Store

_LOOKED_AT = 64
"""Entries in which the first words of a person are looked for."""

_LENGTH = 200

_HEADING = re.compile(r"\s*(?:\S[^\n]*\n[ \t\r]*\n\s*)?# +(?P<title>\S[^\n]*)")
"""The Markdown heading of a document, also after one line and a blank one."""


def title(store: Store, record: SessionRecord) -> str:
    """Return a session's own title, else what a person said first, else the name of its file or folder."""
    if own := own_title(store, record):
        return own
    try:
        if record.root is not None and (said := next(_said(store, record.root), "")):
            return said
    except (
        StoreError,
        ValueError,
    ) as error:  # a damaged entry, or one without its key, does not keep the others from being listed
        if isinstance(error, StoreError) and not (isinstance(error, StoreDamaged) or error.reason == "no_key"):
            raise
    return record.name or PurePath(record.workdir).name or record.session_id[:12]


def own_title(store: Store, record: SessionRecord) -> str:
    """Return the name that somebody chose for a session; empty if an import named it after its file, or `unchosen_name` did."""
    if record.name.endswith(unchosen_name("", record.session_id)):
        return ""
    sources = (source for source in store.sources(record.session_id) if not source.is_export)
    stems = {PurePath(source.path).name.partition(".")[0] for source in sources}
    stem, _, number = record.name.rpartition(" ")  # of several conversations in a file, the later ones are numbered
    return "" if record.name in stems or (stem in stems and number.isdecimal()) else record.name


def _said(store: Store, dialog_id: DialogId) -> Iterator[str]:
    """Yield what people said first in a dialog."""
    if not (spans := lineage(store.node(dialog_id), store.last(dialog_id).seq + 1)):
        return
    first = spans[0]
    for header in store.headers(first.dialog, first.start, min(first.stop, first.start + _LOOKED_AT)):
        if header.role == "user" and header.speaker in {"", "human"}:
            # read as JSON: the codec takes 40 ms to load
            said = json.loads(store.body(first.dialog, header.seq)).get("message") or {}
            blocks = (block.get("content", "") for block in said.get("contents", ()) if block.get("type") == "text")
            words = " ".join(blocks)
            heading = _HEADING.match(words)  # a plan that a program sends as the person's message
            if text := " ".join((words if heading is None else heading["title"]).split()):
                yield text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"
