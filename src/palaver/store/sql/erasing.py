"""Erasing, as rows: it locks and touches the rows of what is erased, and no others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle, references
from palaver.store.erasing import Gone, KeptReceipt, Placed, Thing, retotalled
from palaver.store.records import unknown
from palaver.store.sql import log
from palaver.store.sql.database import Database, Rows
from palaver.store.sql.rows import blob_digest, missing, session_no


class SqlEraser:
    """What may be done inside an erasure."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        if not placed:
            return
        with self._db.writing() as rows:
            place = self._locked(rows, dialog_id)
            length = log.newest(rows, dialog_id, strict=True).seq + 1
            wrong = next((entry.seq for entry in placed if not 0 <= entry.seq < length), None)
            if wrong is not None:
                raise unknown("handle", str(Handle(dialog_id, wrong)))
            first = min(entry.seq for entry in placed)
            before = log.one_header(rows, dialog_id, first - 1).total if first else 0
            old = list(log.headers(self._db, dialog_id, first, None))
            for entry in placed:
                self._put(rows, place, entry)
            changed = [made for was, made in zip(old, retotalled(old, placed, before), strict=True) if made != was]
            rows.many("header_set", [{**place, **log.header_values(made)} for made in changed])

    def _put(self, rows: Rows, place: dict[str, Any], entry: Placed) -> None:
        where = {**place, "seq": entry.seq}
        rows.run("body_set", **where, body=bytes(entry.body))
        rows.run("text_remove", **where)
        rows.run("references_remove", **where)
        rows.many("reference_add", [{**where, "digest": bytes.fromhex(digest)} for digest in references(entry.body)])

    @staticmethod
    def _locked(rows: Rows, dialog_id: DialogId) -> dict[str, Any]:
        row = rows.one("dialog_lock_alone", dialog_id=dialog_id)
        if row is None:
            raise missing(rows, "dialog", dialog_id)
        return {"dialog_id": dialog_id, "session_no": row[0], "dialog_no": row[1]}

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        with self._db.writing() as rows:
            self._locked(rows, dialog_id)
            rows.run("dialog_clear", dialog_id=dialog_id)

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        with self._db.writing() as rows:
            for dialog_id in dialog_ids:
                place = self._locked(rows, dialog_id)
                for statement in ("indexed_remove", "entries_remove", "dialog_references_remove", "dialog_remove"):
                    rows.run(statement, **place)

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        with self._db.writing() as rows:
            number = session_no(rows, session_id, lock=True)
            for name in ("session_references", "sources", "files", "activity", "session"):
                rows.run(f"{name}_remove", session_no=number)

    def unnamed(self, session_id: SessionId | None, blob_ids: Collection[BlobId]) -> frozenset[BlobId]:
        """Return those payloads that are there and that nothing names."""
        with self._db.writing() as rows:
            # locked first: whoever names one puts it before, and waits there
            names = {name: {"of": session_id, "digest": blob_digest(name)} for name in sorted(blob_ids)}
            there = [name for name, values in names.items() if rows.one("blob_lock", **values) is not None]
            return frozenset(name for name in there if rows.one("blob_named", **names[name]) is None)

    def remove_blobs(self, session_id: SessionId | None, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        with self._db.writing() as rows:
            for blob_id in sorted(blob_ids):
                rows.run("blob_remove", of=session_id, digest=blob_digest(blob_id))
                rows.run("blob_bytes_remove", of=session_id, digest=blob_digest(blob_id))

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        with self._db.writing() as rows:
            rows.many(
                "gone_add",
                [{"thing": thing, "name": name, "at": gone.at, "receipt_id": gone.receipt} for thing, name in things],
            )

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        with self._db.writing() as rows:
            rows.run("receipt_put", receipt_id=receipt.receipt_id, receipt=receipt.text, pending=receipt.pending)
