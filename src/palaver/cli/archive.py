"""palaver archive: a session leaves its store for a folder or for object storage, and comes back."""

from __future__ import annotations

from typing import Annotated

from typer import BadParameter, Option

from palaver.cli.options import JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.terminal import emit
from palaver.plurals import counted
from palaver.store.connect import only_session
from palaver.transfer.archives import archive, archived, restore


def run(
    session: SessionArgument,
    *,
    to: Annotated[
        str | None,
        Option("--to", metavar="ADDRESS", help="Where: file:///folder, or s3://bucket/prefix (extra `archive`)."),
    ] = None,
    back: Annotated[bool, Option("--restore", help="Restore it. Opening it does so, too.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Move a session into an archive: a bundle is written, read back and compared, then its entries, media and full text leave the store.

    Its row stays and says where it is. Whatever opens the session brings it back, with the same ids and handles. Without options, say where it is.
    """
    if to is not None and back:
        raise BadParameter("choose one of --to and --restore.", param_hint="--to")
    with opened(store, writes=back or to is not None) as source:
        record = only_session(source, session)
        name = record.session_id
        if back:
            written = restore(source, name)
            emit(json, {"session": name, "entries": written}, f"Brought back {counted(written, 'entry')}.")
            return Exit.OK
        there = archived(record) if to is None else archive(source, name, to)
    if there is None:
        emit(json, {"session": name, "address": None}, f"{name} is in the store, not in an archive.")
        return Exit.OK
    row = {
        "session": name,
        "address": there.address,
        "sha256": there.sha256,
        "bytes": there.bytes,
        "entries": there.entries,
    }
    said = f"{counted(there.entries, 'entry')}, {counted(there.bytes, 'byte')}, in {there.address}"
    emit(json, row, said)
    return Exit.OK
