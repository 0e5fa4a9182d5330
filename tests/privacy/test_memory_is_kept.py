"""What an agent remembers of somebody lives as long as a session of his: reading it leaves no trace, and is use all the same."""

import pytest

from palaver.erasure.erase import erase
from palaver.errors import InvalidInput
from palaver.memory import MemoryWarning, SubjectMemory, shared_memory
from palaver.session import Session
from palaver.session.retention import HOLD, retain, retention
from palaver.store import Store

YEAR = 365 * 86_400.0
BLOCKS = {"human": {"value": ""}}


def remembered(store: Store, subject: str) -> tuple[SubjectMemory, Session]:
    """Have something remembered of somebody, in a session of his."""
    memory = SubjectMemory("helper", blocks=BLOCKS)
    session = Session.create(store, f"chat of {subject}", owner="a", subject=subject)
    memory.core(session.root).append("human", f"{subject} likes tea.")
    return memory, session


def test_memory_stays_while_its_subject_has_a_session(store: Store) -> None:
    """Its last entry is old, his newest conversation is not: it stays, and whoever looks is told why; nobody else's sessions count."""
    memory, _ = remembered(store, "ann")
    remembered(store, "bob")
    since = max(record.updated_at for record in store.sessions()) + 1e-6
    new = Session.create(store, "new", owner="a", subject="ann")
    new.root.put_text("hi")
    plan = retention(store, older_than=0, at=since, trash=False)
    going = {each.name for each in plan.to_erase}
    assert going == {"chat of ann", "chat of bob", "helper of bob"}
    assert [(kept.record.name, "memory of a subject" in kept.reason) for kept in plan.kept] == [("helper of ann", True)]
    retain(store, plan)
    assert memory.core(new.root).get("human").value.strip() == "ann likes tea."


def test_it_goes_with_the_last_session_of_its_subject(store: Store) -> None:
    """When all of his sessions go, in the same plan too, it goes with them; of a conversation that was used since the plan it stays."""
    _, session = remembered(store, "ann")
    at = session.record.created_at + YEAR
    plan = retention(store, older_than=1, at=at)
    assert {each.name for each in plan.to_trash} == {"chat of ann", "helper of ann"}
    session.root.put_text("back again")
    retain(store, plan)
    assert {each.name for each in store.sessions()} == {"chat of ann", "helper of ann"}
    retain(store, retention(store, older_than=1, at=at))
    assert not list(store.sessions())


def test_what_all_share_stays_while_anybody_has_a_session(store: Store) -> None:
    """It has no subject: it is of whoever is talked with; a session that is held counts. In the trash it is an error that says so."""
    shared_memory(store, "all", blocks=BLOCKS)
    session = Session.create(store, "x", owner="a", subject="ann")
    at = session.record.created_at + YEAR
    plan = retention(store, older_than=1, at=at)
    assert {each.name for each in plan.to_trash} == {"all", "x"}
    store.update_session(session.session_id, metadata={HOLD: "audit"})
    assert retention(store, older_than=1, at=at).to_trash == ()
    store.update_session(session.session_id, metadata={})
    retain(store, plan)
    with pytest.raises(InvalidInput, match="'all' is in the trash"):
        shared_memory(store, "all", blocks=BLOCKS)


def test_memory_in_the_trash_is_neither_read_nor_replaced(store: Store) -> None:
    """A warning with the session; what is kept meanwhile stays in the conversation; taken out it is all there, erased it begins anew."""
    memory, session = remembered(store, "ann")
    (kept,) = (record for record in store.sessions() if record.name == "helper of ann")
    store.update_session(kept.session_id, trashed_at=1.0)
    fresh = SubjectMemory("helper", blocks=BLOCKS)
    with pytest.warns(MemoryWarning, match=rf"'helper of ann' is in the trash.*{kept.session_id}"):
        meanwhile = fresh.core(session.root)
    meanwhile.append("human", "Meanwhile.")
    assert [record.name for record in store.sessions(subject="ann")] == ["chat of ann"]
    store.update_session(kept.session_id, trashed_at=None)
    for each in (memory, fresh):
        assert each.core(session.root).get("human").value.strip() == "ann likes tea."
    erase(store, session=kept.session_id)
    assert SubjectMemory("helper", blocks=BLOCKS).core(session.root).get("human").value == ""
