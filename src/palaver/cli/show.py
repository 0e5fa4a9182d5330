"""palaver show: what was said, and the originals that handles name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from palaver.cli.options import JsonOption, StoreOption, found, numbered, opened
from palaver.cli.terminal import paged, print_json, say, write
from palaver.errors import InvalidInput, NotFound
from palaver.log import Entry, Handle, MessageEntry, decode_entry
from palaver.messages import Content, ToolCallContent, words_of
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.transcripts.markdown import markdown
from palaver.view import fold, held

__all__ = ["recalled", "run", "text_of", "who_of"]

_LINE = 100


_WHAT = "A session or dialog; a handle (dialog:entry, dialog:entry:block, dialog:first-last), also with a session in place of its main dialog; a transcript."


def run(
    what: Annotated[str, Argument(metavar="SESSION|HANDLE|FILE", help=_WHAT)],
    entries: Annotated[bool, Option("--entries", "-e", help="List the entries of the log, a line each.")] = False,
    last: Annotated[int | None, Option("--last", min=1, help="Only the last N exchanges, or entries.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show everything that was said, or the original that a handle names, exactly as it was recorded.

    With --json: the entries, one object a line.
    """
    if ":" in what and not Path(what).is_file():
        with opened(store) as source, paged(data=json):
            if _is_handle(named := numbered(source, what)):
                _recall(source, named, json=json)
                return
    with found(what, store) as (_, dialog, _, _), paged(data=json):
        if json or entries:
            _list(dialog, last, json=json)
            return
        view = fold(dialog.store, dialog.dialog_id, whole=True)
        if last:
            view = replace(view, exchanges=view.exchanges[-last:])
        view.load()
        for text in markdown(dialog.store.session(dialog.session_id), view):
            write(text)


# --- entries --------------------------------------------------------------------------------------------------------------------------


def _list(dialog: Dialog, last: int | None, *, json: bool) -> None:
    rows = _rows(dialog)
    for place, body in deque(rows, last) if last else rows:
        entry = decode_entry(body)
        short = f"{place.dialog[:12]}:{place.seq}"
        if json:
            print_json({"handle": short, **entry.model_dump(mode="json")})
        else:
            say(f"{short:<19} {entry.kind:<14} {_line(entry)}".rstrip())


def _rows(dialog: Dialog) -> Iterator[tuple[Handle, bytes]]:
    """Yield the entries that a dialog holds, its ancestors' first."""
    for span in held(dialog.store, dialog.dialog_id, None):
        for seq, body in dialog.store.bodies(span.dialog, span.start, span.stop):
            yield Handle(span.dialog, seq), body


def _line(entry: Entry) -> str:
    if not isinstance(entry, MessageEntry):
        return ""
    text = " ".join(entry.message.text_content().split())
    calls = " ".join(f"[call {block.name}]" for block in entry.message.contents if isinstance(block, ToolCallContent))
    return f"{entry.message.role.value}: {text[:_LINE]}{'…' if len(text) > _LINE else ''} {calls}".rstrip()


# --- handles --------------------------------------------------------------------------------------------------------------------------


def _recall(store: Store, text: str, *, json: bool) -> None:
    if not json:
        for piece in recalled(store, text):
            write(piece)
        return
    session, handles = _places(store, text)
    for place in handles:
        original = session.recall(place).model_dump(mode="json")
        print_json({"handle": str(place), "session": session.session_id, "found": original})


def recalled(store: Store, text: str) -> Iterator[str]:
    """Yield for people what a handle, or a run of entries, names; each piece ends its line.

    Raises:
        InvalidInput: It is not a handle.
        NotFound: There is no such entry or block.
        Erased: It was there and was erased.
    """
    session, handles = _places(store, text)
    for place in handles:
        original = session.recall(place)
        head = f"{place}  {who_of(original)}\n" if len(handles) > 1 else ""
        yield f"{head}{text_of(original)}\n{head and chr(10)}"


def _is_handle(text: str) -> bool:
    from palaver.context.recall import places  # noqa: PLC0415 - it loads the policies, which a whole session needs not

    try:
        return bool(places(text))
    except InvalidInput:
        return False


def _places(store: Store, text: str) -> tuple[Session, tuple[Handle, ...]]:
    """Return the session and the entries or blocks that a text names."""
    from palaver.context.recall import places  # noqa: PLC0415 - as above

    named = places(text)
    dialog_id = store.resolve(named[0].dialog)
    session = Session.open(store, store.node(dialog_id).session_id)
    newest = store.last(dialog_id).seq
    handles: list[Handle] = []
    for one in named:
        if isinstance(one, Handle):
            handles.append(one._replace(dialog=store.resolve(one.dialog, session.session_id)))
        elif one.stop - 1 > newest:
            raise NotFound(text, what="entry", hint=f"The newest entry of this dialog is {newest}.")
        else:
            handles += (Handle(dialog_id, seq) for seq in range(one.start, one.stop))
    return session, tuple(handles)


def who_of(original: Entry | Content) -> str:
    """Return who said an entry, or what a block is."""
    if isinstance(original, MessageEntry):
        return f"{original.message.role.value}:"
    return f"{getattr(original, 'kind', 'block')}:"


def text_of(original: Entry | Content) -> str:
    """Return the words of an entry or a block; of what has none, all of it as JSON."""
    if isinstance(original, MessageEntry):
        return "\n\n".join(text_of(block) for block in original.message.contents)
    said = "" if isinstance(original, Entry) else words_of(original)
    return said or original.model_dump_json(indent=2)
