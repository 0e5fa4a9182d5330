"""A small history with one of everything that writes: what the sweeps of damage cut off, kill and fail at every step of."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

from palaver.log import Handle, Label, Place, TurnEnded, TurnStarted
from palaver.messages import AssistantMessage, ImageContent, TextContent, ToolCallContent, UserMessage
from palaver.session import Dialog, Session, erase
from palaver.session.erasure.doing import erasing_store
from palaver.store import MemoryStore, Store
from palaver.testing.logs import model, result
from palaver.testing.tape import Tape, recorder
from palaver.transcripts import Importer, export_bundle, import_bundle

__all__ = ["history_of_everything", "work"]

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
_FOREIGN = (
    {"role": "user", "content": "hello from elsewhere"},
    {"role": "assistant", "content": "good day"},
    {"role": "user", "content": "go on"},
)


def history_of_everything(folder: Path) -> Tape:
    """Do `work` in a store in memory, and give its tape.

    Args:
        folder: Where a foreign file is written, to be imported.
    """
    store, notes = recorder(MemoryStore())
    work(store, folder)
    return notes.tape


def work(store: Store, folder: Path) -> Session:
    """Write one of everything: turns, calls, media, marks, forks, compactions, calls of models, imports, bundles, the trash, erasures."""
    session = Session.create(store, "everything", subject="nobody", metadata={"n": 1})
    dialog = session.root
    dialog.put_text("Be brief.", role="system")
    for number in range(3):
        _turn(dialog, number)
    dialog.label(dialog.messages.handle(1), "start")
    dialog.annotate(Label(target=Place(dialog=dialog.dialog_id, seq=2), label="call"))
    dialog.pin(dialog.messages.handle(1))
    dialog.commit(dialog.compose("default", 500, model="gpt-4o"), margin=0)
    dialog.append(UserMessage(contents=(TextContent("see"), ImageContent(images=(_PNG,)))))
    pictured = dialog.messages.handle(-1)
    child = dialog.fork()
    _turn(child, 7)
    middle = session.fork(dialog.dialog_id, last_n=3)
    middle.put_text("and here")
    dialog.record(TurnStarted(agent="coder"))
    dialog.append(model("", "open"))
    within = dialog.fork()  # in the middle of a turn, with a call open
    within.put_text("meanwhile")
    dialog.append(result("open"))
    dialog.record(TurnEnded())
    dialog.record_call(dialog.request("anthropic", "claude-opus-4-6", max_tokens=50))
    dialog.merge(child)
    dialog.undo()
    back = dialog.rewind(dialog.messages.handle(2)).apply()
    back.put_text("otherwise")
    back.undo_rewind().put_text("after all")
    session.rename("renamed")
    session.delete()
    session.restore()
    _foreign(store, folder)
    _erasures(store, dialog, pictured, child)
    _sweep(store)
    dialog.reload().put_text("after all that")
    return session


def _turn(dialog: Dialog, number: int) -> None:
    """A question, a call with a long answer, and a reply."""
    dialog.put_text(f"question {number} " + "with words " * 20)
    call = ToolCallContent(id=f"c{number}", name="look", args={"at": number})
    dialog.append(AssistantMessage(contents=(TextContent(f"looking {number}"), call), response_id=f"r{number}"))
    dialog.append(result(f"c{number}", f"line {number}\n" * 120))
    dialog.append(model(f"found {number}", response=f"s{number}"))


def _erasures(store: Store, dialog: Dialog, pictured: Handle, child: Dialog) -> None:
    """Erase entries that others share, one of them with a picture; a branch that others stand on; and a session with its source."""
    erase(store, entries=[dialog.messages.handle(1), pictured])
    erase(store, dialog=child.dialog_id, tombstones=True)
    imported = next(record for record in store.sessions() if store.sources(record.session_id))
    erase(store, session=imported.session_id)


def _sweep(store: Store) -> None:
    """Leave a payload that nothing names, and remove it by the steps of a sweep, which would do so hours later."""
    stray = store.put_blob(b"put, and never named")
    erasing = erasing_store(store)
    with erasing.erasing() as eraser:
        eraser.remove_blobs(eraser.unnamed([stray]))
    erasing.scrub(thorough=False, payloads=True)


def _foreign(store: Store, folder: Path) -> None:
    """Import a foreign file, the same file grown, and a bundle."""
    path = folder / "foreign.json"
    for size in (2, 3):
        path.write_text(json.dumps(_FOREIGN[:size]), encoding="utf-8")
        for _ in Importer(store).import_path(path):
            pass
    elsewhere = Session.create(MemoryStore(), "carried", owner="other")
    _turn(elsewhere.root, 9)
    elsewhere.root.fork().put_text("on a branch")
    import_bundle(store, BytesIO(b"".join(export_bundle(elsewhere.store, elsewhere.session_id))).read)
