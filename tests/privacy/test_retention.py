"""Retention: only when asked, looked at first, by the last activity in the log, and never what is held or in use."""

import pytest

from palaver.erasure.receipts import verify_receipt
from palaver.errors import InvalidInput
from palaver.ids import SessionId, new_dialog_id, new_session_id
from palaver.log import Node, draft
from palaver.log.entries import MessageEntry
from palaver.messages import UserMessage
from palaver.session import Session
from palaver.session.retention import age_of, retain, retention
from palaver.store import SessionRecord, Store

DAY = 86_400.0
NOW = 1_000 * DAY


def used(store: Store, name: str, days_ago: float, *, trashed: float | None = None, subject: str = "") -> SessionId:
    """Make a session that was used last so many days ago, and made long before."""
    session = new_session_id()
    dialog = new_dialog_id(session)
    at = None if trashed is None else NOW - trashed * DAY
    store.create_session(SessionRecord(session_id=session, name=name, created_at=1.0, trashed_at=at, subject=subject))
    store.create_dialog(Node(dialog_id=dialog, session_id=session, created_at=1.0))
    store.append(dialog, [draft(MessageEntry(message=UserMessage(content=name), at=NOW - days_ago * DAY))[0]], -1)
    return session


def names(records: tuple[SessionRecord, ...]) -> list[str]:
    """Return the names, sorted."""
    return sorted(record.name for record in records)


def test_what_is_due_goes_into_the_trash_and_then_for_good(store: Store) -> None:
    """A plan writes nothing; first the trash; what lies there long enough is erased, with a receipt; all else stays."""
    used(store, "old", 100)
    used(store, "edge", 90)
    used(store, "his", 100, subject="bob")
    lain = used(store, "lain", 400, trashed=40)
    used(store, "thrown away lately", 400, trashed=3)
    assert names(retention(store, older_than=90 * DAY, subject="bob", at=NOW).to_trash) == ["his"]
    plan = retention(store, older_than=90 * DAY, empty_trash=30 * DAY, at=NOW)
    assert (names(plan.to_trash), names(plan.to_erase), plan.kept) == (["his", "old"], ["lain"], ())
    assert names(tuple(store.sessions())) == ["edge", "his", "old"]
    done = retain(store, plan)
    assert len(done.trashed) == 2
    (receipt,) = done.receipts
    assert receipt.sessions == (lain,)
    assert verify_receipt(store, receipt).holds
    assert names(tuple(store.sessions(trashed=True))) == ["his", "old", "thrown away lately"]
    assert retain(store, plan).trashed == (), "what was done is not done again"
    with pytest.raises(InvalidInput):
        retention(store, older_than=-1)


def test_what_is_held_or_used_since_the_plan_stays(store: Store) -> None:
    """A hold keeps a session, with its reason, and ends; what somebody went on with, or held, since the plan stays."""
    going, held, due = (used(store, name, 100) for name in ("going", "held", "due"))
    plan = retention(store, older_than=90 * DAY, trash=False, at=NOW)
    assert names(plan.to_erase) == ["due", "going", "held"]
    Session.open(store, going).dialogs[0].put_text("I am back")
    Session.open(store, held).hold("a law suit")
    done = retain(store, plan)
    assert [receipt.sessions for receipt in done.receipts] == [(due,)]
    plan = retention(store, older_than=90 * DAY, trash=False, at=NOW)
    assert {one.record.name: one.reason for one in plan.kept} == {"held": "held: a law suit"}
    Session.open(store, held).hold(None)
    assert names(retention(store, older_than=90 * DAY, trash=False, at=NOW).to_erase) == ["held"]


def test_an_age_is_read() -> None:
    """A number and a unit; nothing is guessed where data would be deleted."""
    ages = {"90d": 90 * DAY, "1.5h": 5_400.0, "2w": 14 * DAY, "30s": 30.0, "1y": 365 * DAY, " 5m ": 300.0}
    assert {text: age_of(text) for text in ages} == ages
    for wrong in ("", "d", "90", "-1d", "90 days", "1e9d", "nan", "٩d"):
        with pytest.raises(InvalidInput):
            age_of(wrong)
