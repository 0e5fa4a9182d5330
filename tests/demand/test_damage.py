"""D20: logs that were cut, spoilt or written by somebody newer."""

from __future__ import annotations

from pathlib import Path

from palaver import Dialog, Session, Store
from palaver.log import Span
from palaver.transcripts import examine
from tests.demand.ground import PAGE, answers, asks, says, shown, valid
from tests.store.backends import SqliteBackend


def small(store: Store | None = None) -> Dialog:
    """Return a short conversation."""
    dialog = Dialog(owner="user", store=store)
    dialog.append([asks("go"), says("I look.", "c1"), answers("c1", "a.py"), says("done"), asks("and?"), says("well")])
    return dialog


def test_each_entry_of_a_store_spoilt_in_turn(tmp_path: Path) -> None:
    """D20: the bytes of one entry are spoilt on the disk: all others load, the place is told, the session can be asked and goes on."""
    for seq in range(6):
        backend = SqliteBackend(tmp_path / f"{seq}.db")
        store = backend.open()
        dialog = small(store)
        before = shown(dialog)
        store.close()
        backend.damage(dialog.dialog_id, seq)
        again = backend.open()
        session = Session.open(again, dialog.session_id)
        assert list(again.verify(dialog.dialog_id)) == [Span(dialog.dialog_id, seq, seq + 1)]
        found = session.root
        assert len(found.messages) == 6
        seen = shown(found)
        assert any(f"{dialog.dialog_id[:12]}:{seq}" in line for line in seen)
        kept = [line for line in before if line not in seen]
        assert len(kept) <= 2, "what the spoilt entry said is lost, and nothing else"
        valid(found)
        assert {finding.code for finding in examine(again, dialog.session_id).findings} >= {"damaged_entry"}
        found.append(asks(f"next {PAGE[:20]}"))
        assert found.messages[-1].content == f"next {PAGE[:20]}"
        again.close()
