"""The laws of a stored session, for sessions of your own: `check_session` reads all of it and changes nothing."""

from __future__ import annotations

from palaver.log import decode_entry, draft
from palaver.session import Session
from palaver.session.recall import whole


def check_session(session: Session) -> None:
    """Check that entries are written as they are read, calls can be reproduced, and omissions resolve in every branch (laws 2, 6, 9)."""
    store = session.store
    for node in store.nodes(session.session_id):
        for seq, body in store.bodies(node.dialog_id):
            assert draft(decode_entry(body))[0].body == body, f"{node.dialog_id}:{seq} is written differently"
    for dialog in session.dialogs:
        for call in dialog.calls:
            if call.reproducible:
                call.request()
        view = dialog.view()
        for handle in {handle for omission in view.omissions for handle in omission.handles()}:
            # another machine's version of a dialog means its own entries by the handles of that dialog
            ids = [whole(store, session.session_id, handle, other.dialog_id) for other in session.dialogs]
            readers = (other for other, place in zip(session.dialogs, ids, strict=True) if place == handle)
            originals = [other.recall(str(handle)) for other in (dialog, *readers)]
            assert all(entry == originals[0] for entry in originals), f"{handle} differs between branches"
