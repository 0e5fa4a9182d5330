"""A store that has lost rows: what is gone is said in its place, in messages, views and requests; nothing is passed over."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from palaver import Session
from palaver.errors import UnknownHandle
from palaver.ids import DialogId
from palaver.testing.logs import model

LOST = {
    "body": "DELETE FROM bodies WHERE body_no = (SELECT body_no FROM headers WHERE id = {id})",
    "header": "DELETE FROM headers WHERE id = {id}",
}


def made(path: Path) -> tuple[DialogId, DialogId]:
    """Make a session of six messages, the last one a model's, and a branch with one more; give root and branch."""
    with Session.create(path, "lossy") as session:
        for number in range(5):
            session.root.put_text(f"words {number}")
        session.root.append(model("an answer", response="r1"))
        child = session.root.fork()
        child.put_text("on the branch")
        return session.root.dialog_id, child.dialog_id


def lose(path: Path, what: str, seq: int) -> None:
    """Delete a row of the first dialog behind the store's back."""
    connection = apsw.Connection(str(path))
    connection.execute(LOST[what].format(id=(1 << 32) + seq))
    assert connection.changes() == 1
    connection.close()


@pytest.mark.parametrize("what", LOST)
@pytest.mark.parametrize("seq", range(5))
def test_a_lost_row_is_said_in_its_place(tmp_path: Path, what: str, seq: int) -> None:
    """Messages, views and requests of the dialog and of its branches have a line in the place of what is lost, and all the rest."""
    path = tmp_path / "s.db"
    root, child = made(path)
    lose(path, what, seq)
    expected = [f"words {number}" for number in range(5)]
    expected[seq] = f"[Entry {root[:12]}:{seq} cannot be read: the store has lost it.]"
    with Session.open("lossy", path, verify=True) as session:
        assert session.opened is not None
        assert (session.opened.extent.total, session.opened.extent.unreachable) == (7, 1)
        for dialog, end in ((root, ["an answer"]), (child, ["an answer", "on the branch"])):
            found = session.dialog(dialog)
            assert [message.text_content() for message in found.messages.bare()] == [*expected, *end]
            assert len(found.messages) == len(expected) + len(end)
            said = found.request("openai-chat", "gpt-4o").body["messages"]
            assert all(text in str(said) for text in (*expected, *end))
        assert session.root.append(model("and on")).text_content() == "and on"


def test_a_branch_whose_ancestor_is_cut_short_is_told(tmp_path: Path) -> None:
    """Where the end of a log is gone, what stands on it is counted as unreachable and raises; it never shows fewer without a word."""
    path = tmp_path / "s.db"
    _, child = made(path)
    for seq in (4, 5):
        lose(path, "header", seq)
    with Session.open("lossy", path) as session:
        assert session.opened is not None
        assert session.opened.extent.unreachable == 1
        assert "unreachable" in str(session.opened)
        with pytest.raises(UnknownHandle):
            list(session.dialog(child).messages)
