"""Erasing from a session: what it reaches, what stands afterwards, and what nobody gets back."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.agent.turn import deliveries
from palaver.erasure.erase import erase, finish_erasures
from palaver.erasure.plan import preview_erasure
from palaver.erasure.receipts import Receipt, verify_receipt
from palaver.errors import Conflict, Erased, InvalidInput, NotFound, NotReproducible
from palaver.ids import DialogId
from palaver.log import (
    ERASED,
    KINDS,
    BlockEdit,
    BranchSummary,
    ContextEdit,
    Erasure,
    Handle,
    Inbox,
    Place,
    Run,
    decode_entry,
    draft,
    stand_in,
)
from palaver.messages import Message
from palaver.providers import APIS
from palaver.session import Session, searchable
from palaver.store import MemoryStore, SqliteStore, Store, verify_store
from palaver.store.erasing import Placed
from palaver.store.sql.erasing import SqlEraser
from palaver.testing.kills import kill_this_process
from palaver.testing.logs import assert_closed, model, result, system, user
from palaver.testing.strategies import sayings
from palaver.transcripts import Importer, export, import_bundle, repair
from palaver.transfer.copies import copy_store
from palaver.view import View, fold
from tests.privacy.planted import plant


def told(*messages: Message, store: Store | None = None) -> Session:
    """Make a session of messages."""
    session = Session.create(store or MemoryStore())
    session.root.append(messages)
    return session


def words(view: View) -> str:
    """Return all that a view shows."""
    return repr([block.content for exchange in view.exchanges for block in exchange.blocks()])


CONVERSATION = (
    system("Be brief."),
    user("first words of the user, which are to go"),
    model("I look", "a", "b", response="r1"),
    result("a", "the file says what must go"),
    result("b", "other"),
    model("done", response="r2"),
    user("thanks"),
)


# --- tombstones -------------------------------------------------------------------------------------------------------------------


def test_every_kind_has_a_tombstone_of_its_own(tmp_path: Path) -> None:
    """The tombstone of an entry of any kind has its kind, calls and response, none of its words, and is a tombstone of itself."""
    store = MemoryStore()
    planted = plant(store, tmp_path, "one")
    mark = Erasure(at=1.0, receipt="r")
    kinds = set()
    for header, (_seq, body) in zip(store.headers(planted.dialog), store.bodies(planted.dialog), strict=True):
        entry = decode_entry(body)
        stood = stand_in(entry, mark)
        ready, was = draft(stood)[0], draft(entry)[0]
        assert ready._replace(body=b"", blocks="") == was._replace(body=b"", blocks="")
        assert ready.kind == header.kind
        assert decode_entry(ready.body) == stood
        assert stand_in(stood, mark) == stood
        assert not [one for one in planted.marks.values() if one.encode() in ready.body]
        kinds.add(entry.kind)
    assert len(kinds) >= len(KINDS) - 6


def test_no_kind_was_forgotten() -> None:
    """A kind that is added has to say what its tombstone is."""
    from palaver.log.erasure import _MAKERS  # noqa: PLC0415 - the table under test

    assert KINDS.keys() - {"tombstone"} <= _MAKERS.keys()


def test_an_entry_of_a_later_version_becomes_a_tombstone_of_it() -> None:
    """Nothing of a kind that is not known stays but its name."""
    session = told(user("hi"))
    body = b'{"at":1.0,"kind":"hologram","secret":"x"}'
    session.store.append(session.root.dialog_id, [draft(decode_entry(body))[0]], 0)
    session.root.reload()
    session.erase(entries=[Handle(session.root.dialog_id, 1)])
    stood = decode_entry(session.store.body(session.root.dialog_id, 1))
    assert (stood.kind, getattr(stood, "was", "")) == ("tombstone", "hologram")


def _reader(data: bytes) -> Callable[[int], bytes]:
    return BytesIO(data).read


@settings(max_examples=40)
@given(said=sayings().filter(bool), data=st.data())
def test_what_is_left_is_valid_everywhere(said: list[Message], data: st.DataObject) -> None:
    """Whatever is erased of whatever was said: views are closed, requests of every profile pass their check, a fork opens and goes on."""
    session = told(*said)
    root = session.root
    child = root.fork()
    before = [len(root.messages), len(child.messages)]
    gone = data.draw(st.sets(st.integers(0, session.store.last(root.dialog_id).seq), min_size=1))
    receipt = session.erase(entries=[Handle(root.dialog_id, seq) for seq in sorted(gone)])
    assert verify_receipt(session.store, receipt).holds
    for dialog in session.dialogs:
        assert session.store.verify(dialog.dialog_id) == ()
        assert_closed(dialog.view())
        for name in APIS:
            dialog.request(name, "some-model", then="And now?")  # it is checked as it is made
        dialog.put_text("goes on")
        assert_closed(dialog.view())
    assert [len(dialog.messages) - 1 for dialog in session.dialogs] == before
    assert fold(session.store, root.dialog_id) == session.root.view()


def test_an_unknown_argument_erases_nothing(store: Store) -> None:
    """A misspelt argument is refused by its name, next to a whole scope too, and nothing is erased."""
    session = told(user("hello"), store=store)
    for erasing in (erase, preview_erasure):
        with pytest.raises(InvalidInput, match=r"no argument 'handles'.*entries"):
            erasing(store, handles=[session.root.messages.handle(0)])  # type: ignore[call-arg]
        with pytest.raises(InvalidInput, match=r"no argument 'tombstone'\. Did you mean 'tombstones'"):
            erasing(store, dialog=session.root.dialog_id, tombstone=True)  # type: ignore[call-arg]
    assert [message.text_content() for message in session.root.messages] == ["hello"]


def test_what_was_made_of_it_goes_with_it(store: Store) -> None:
    """A committed summary and a recorded call go whole with an erased entry, and views start without them; labels of others stay."""
    session = told(*[user(f"number {n}: " + "why is that so? " * 30) for n in range(30)], store=store)
    root = session.root
    root.calls.record(root.request("anthropic", "claude-sonnet-4-5"))
    root.marks.label(root.messages.handle(0), "about why")
    root.compaction.commit(root.compaction.compose("fold", 2_000, model="gpt-4o"))
    assert "why" in words(root.view())
    target = root.messages.handle(3)
    preview = preview_erasure(store, entries=[target])
    assert len(preview.tombstones) == 3
    receipt = session.erase(entries=[target])
    assert {one.kind for one in receipt.tombstones} == {"message", "invocation", "compaction"}
    with pytest.raises(NotReproducible, match="erased"):
        session.root.calls[0].request()
    assert session.root.marks.labels
    assert_closed(session.root.view())
    assert len(session.root.view().exchanges) == 30, "it is shown without the compaction"
    for take_back in (session.root.compaction.undo, session.root.compaction.redo):
        with pytest.raises(InvalidInput):
            take_back()


def test_entry_goes_whole_with_any_of_its_sources(store: Store) -> None:
    """A shortened form and a summary of an erased entry go, and what was derived from those; blocks are shown as they were said; a note of it stays."""
    session = told(*CONVERSATION, store=store)
    root = session.root
    first = Run(dialog=root.dialog_id, start=1, stop=2)
    forms = (
        BlockEdit(target=Place(dialog=root.dialog_id, seq=4, block=0), text="like the words", reason="shortened"),
        BlockEdit(target=Place(dialog=root.dialog_id, seq=5, block=0), text="y", reason="shortened", sources=(first,)),
    )
    edit, summary = root.record(
        ContextEdit(base=6, edits=forms, policy="p"), BranchSummary(summary="words", sources=(first,)), beside=True
    )
    derived = Run(dialog=root.dialog_id, start=summary.seq, stop=summary.seq + 1)
    (again,) = root.record(BranchSummary(summary="of words", sources=(derived,)), beside=True)
    (kept,) = root.record(
        BranchSummary(summary="else", sources=(Run(dialog=first.dialog, start=6, stop=7),)), beside=True
    )
    assert "like the words" in words(root.view())
    receipt = session.erase(entries=[first.span.dialog + ":1"])
    assert [one.seq for one in receipt.tombstones] == [1, edit.seq, summary.seq, again.seq]
    shown = words(session.root.view())
    assert "words" not in shown
    assert all(said in shown for said in ("other", "done", "else"))
    assert decode_entry(store.body(root.dialog_id, kept.seq)).erased is None
    before = list(store.bodies(root.dialog_id))
    session.erase(entries=[Handle(root.dialog_id, 1)])
    assert [seq for seq, body in before if body != store.body(root.dialog_id, seq)] == [1]


def test_erased_compaction_uncovers_the_one_before(store: Store) -> None:
    """Views start at the newest compaction that was not erased; undo and redo pass over an erased one."""
    session = told(*[user(f"number {n}: " + "why is that so? " * 30) for n in range(30)], store=store)
    root, views, made = session.root, list[View](), list[Handle]()
    for limit in (2_000, 1_000):
        views.append(root.view())
        made.append(root.compaction.commit(root.compaction.compose("fold", limit, model="gpt-4o")))
    assert len(root.view().exchanges) < len(views[1].exchanges) < len(views[0].exchanges)
    session.erase(entries=[made[1]])
    root = session.root.reload()
    assert root.view().exchanges == views[1].exchanges
    assert root.view() == fold(store, root.dialog_id)
    root.compaction.undo()
    assert root.view().exchanges == views[0].exchanges
    root.compaction.redo()
    assert root.view().exchanges == views[1].exchanges


def test_a_repaired_branch_loses_what_it_repeats(store: Store) -> None:
    """Messages that `repair` copied are erased with their originals, by entry or by dialog; what was said since stays."""
    session = told(*CONVERSATION, store=store)
    root = session.root
    branch = session.dialog(repair(store, root.dialog_id).dialog_id)
    branch.put_text("said since")
    session.erase(entries=[root.messages.handle(0), root.messages.handle(3)])
    left = [message.content for message in session.dialog(branch.dialog_id).messages]
    assert left[:2] == [ERASED, "first words of the user, which are to go"]
    assert "must go" not in words(session.dialog(branch.dialog_id).view())
    session.erase(dialog=root.dialog_id, tombstones=True)
    *rest, last = session.dialog(branch.dialog_id).messages
    assert not any(word in repr(rest) for word in ("first words", "other", "done", "thanks"))
    assert last.content == "said since"


def test_what_waited_goes_with_its_delivery_and_nothing_else(store: Store) -> None:
    """A queued message and the message that delivered it are erased together; appended to another dialog, the latter alone."""
    session, other = (told(*[user(f"number {n}") for n in range(3)], store=store) for _ in range(2))
    root = session.root
    queued = store.annotate(root.dialog_id, draft(Inbox(message=user("queued words")))[0])
    (delivered,) = deliveries({queued.seq: user("queued words")}, root.dialog_id)
    root.reload().append([delivered.message])
    other.root.append(root.messages[-2:])
    for one, erased in ((other, 1), (session, 2)):
        assert one.erase(entries=[one.root.messages.handle(-1)]).entries == erased
    assert [message.content for message in root.reload().messages] == ["number 0", "number 1", "number 2", ERASED]


def test_block_is_not_erased_alone(store: Store) -> None:
    """A handle with a block is refused with the entry's handle: an erasure removes whole entries, and never more than was named."""
    session = told(*CONVERSATION, store=store)
    handle = session.root.messages.handle(1)
    with pytest.raises(InvalidInput, match="whole entries") as error:
        session.erase(entries=[handle._replace(block=0)])
    assert str(handle) in error.value.hint
    assert len(session.root.reload().messages) == len(CONVERSATION)


def test_handles_to_what_was_erased_say_so(store: Store) -> None:
    """An erased entry, block, dialog or session answers with `Erased`, its time and receipt; what never was is unknown."""
    session = told(*CONVERSATION, store=store)
    root = session.root
    handle = root.messages.handle(1)
    receipt = session.erase(entries=[handle])
    for place in (handle, handle._replace(block=0), str(handle)):
        with pytest.raises(Erased) as error:
            session.recall(place)
        assert (error.value.receipt, error.value.at) == (receipt.id, receipt.at)
    with pytest.raises(NotFound):
        session.recall(Handle(root.dialog_id, 99))
    again = session.erase(entries=[handle])  # what is erased twice is erased
    assert verify_receipt(store, again).holds
    session.erase()
    for ask in (
        lambda: Session.open(store, session.session_id),
        lambda: session.recall(handle),
        lambda: root.put_text("x"),
        lambda: erase(store, session=session.session_id),
    ):
        with pytest.raises(Erased):
            ask()
    assert verify_receipt(store, receipt).holds


def test_a_dialog_goes_with_its_children_or_leaves_tombstones(every_store: Store) -> None:
    """Erasing it alone is refused and changes nothing; with its children all are gone; with tombstones the children stay readable."""
    store = every_store
    session = told(*CONVERSATION, store=store)
    root = session.root
    child = root.fork(last_n=2)
    child.put_text("on the branch")
    grandchild = child.fork()
    before = list(store.bodies(root.dialog_id))
    with pytest.raises(InvalidInput, match=f"{child.dialog_id[:12]}, {grandchild.dialog_id[:12]}"):
        session.erase(dialog=root.dialog_id)
    assert list(store.bodies(root.dialog_id)) == before
    receipt = session.erase(dialog=root.dialog_id, tombstones=True)
    assert receipt.dialogs == ()
    assert [m.text_content() for m in session.dialog(child.dialog_id).messages] == [ERASED] * 3 + ["on the branch"]
    receipt = session.erase(dialog=child.dialog_id[:8], children=True)
    assert receipt.dialogs == (grandchild.dialog_id, child.dialog_id)
    assert [node.dialog_id for node in store.nodes(session.session_id)] == [root.dialog_id]
    assert verify_receipt(store, receipt).holds


def test_a_subject_goes_whole_and_leaves_the_others(store: Store) -> None:
    """All sessions of a subject go, those in the trash, too; a receipt does not tell who it was, and notes a session made since."""
    for name, subject in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        Session.create(store, name, subject=subject).root.put_text(name)
    Session.open(store, "b").delete()
    receipt = erase(store, subject="ann")
    assert len(receipt.sessions) == 2
    assert "ann" not in receipt.to_json()
    assert [record.name for record in (*store.sessions(), *store.sessions(trashed=True))] == ["c"]
    assert not verify_receipt(store, receipt).notes
    Session.create(store, "d", subject="ann")
    verdict = verify_receipt(store, receipt)
    assert verdict.holds
    assert "same subject" in verdict.notes[0]


def test_a_picture_said_again_during_an_erasure_is_kept() -> None:
    """A session that showed a picture is erased just before the step in which another says it again: the picture goes with the last."""
    picture = b"\x89PNG\r\n\x1a\n" + b"y" * 50

    class Between(MemoryStore):
        doomed: Session | None = None

        @contextmanager
        def transaction(self, lock: str = "") -> Iterator[None]:
            if self.doomed is not None:
                doomed, self.doomed = self.doomed, None
                doomed.erase()
            with super().transaction(lock):
                yield

    store = Between()
    first, second = Session.create(store, "first"), Session.create(store, "second")
    first.root.put_image(picture)
    store.doomed = first
    second.root.put_image(picture)
    assert [record.name for record in store.sessions()] == ["second"]
    assert second.erase().blobs
    assert not store.contents.blobs


def test_what_makes_no_sense_is_refused(store: Store) -> None:
    """One thing has to be named, it has to be there, and options have to go with it."""
    wrong: tuple[dict[str, Any], ...] = (
        {},
        {"session": "a", "subject": "b"},
        {"subject": "a", "children": True},
        {"dialog": "abcdef", "children": True, "tombstones": True},
    )
    for asked in wrong:
        with pytest.raises(InvalidInput):
            erase(store, **asked)
    with pytest.raises(NotFound):
        erase(store, subject="nobody")


def test_verify_finds_nothing_wrong_with_tombstones(every_store: Store, tmp_path: Path) -> None:
    """What a store keeps is derived again from its tombstones: headers, running sizes, payloads and the index agree."""
    store = every_store
    one, two = plant(store, tmp_path, "one"), plant(store, tmp_path, "two")
    erase(store, entries=one.said[:9])
    erase(store, dialog=two.dialog, tombstones=True)
    store.index(searchable)
    assert list(verify_store(store, extract=searchable)) == []


# --- receipts ---------------------------------------------------------------------------------------------------------------------


def test_a_receipt_that_does_not_hold_says_why(store: Store) -> None:
    """A receipt that was changed is refused; one that names what is there, or a tombstone that is none, does not hold."""
    session, other = told(*CONVERSATION, store=store), told(user("hi"), store=store)
    receipt = session.erase(entries=[session.root.messages.handle(1)])
    fields = json.loads(receipt.to_json())
    changed = verify_receipt(store, json.dumps(fields | {"tombstones": []}))
    assert changed.problems == ("the receipt is not the one that the store wrote",)
    for wrong in ("", "{}", "[1]", '{"version": 9}', "no such id"):
        with pytest.raises(InvalidInput):
            verify_receipt(store, wrong)
    lies = {"sessions": [other.session_id], "dialogs": ["0" * 32], "sources": ["f" * 64]}
    assert len(verify_receipt(store, Receipt.from_json(json.dumps(fields | lies))).problems) == 4
    assert verify_receipt(MemoryStore(), receipt).problems


# --- other ways in and out --------------------------------------------------------------------------------------------------------


def test_an_import_does_not_bring_back_what_was_erased(store: Store, tmp_path: Path) -> None:
    """Importing the file again leaves erased entries erased and keeps no file; an erased session is refused, unless it is wanted again."""
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"role": "user", "content": "one secret"}, {"role": "assistant", "content": "two"}]))
    (done,) = Importer(store).import_path(file)
    session = Session.open(store, done.session_id)
    session.erase(entries=[session.root.messages.handle(0)])
    (again,) = Importer(store).import_path(file)
    assert (again.outcome, again.entries) == ("unchanged", 0)
    assert "erased" in {loss.code for loss in again.losses}
    assert [source.raw for source in store.sources(done.session_id)] == [None]
    assert session.root.messages[0].text_content() == ERASED
    session.erase()
    with pytest.raises(Erased, match="imported"):
        list(Importer(store).import_path(file))
    assert list(store.sessions()) == []
    assert list(store.strays()) == []  # type: ignore[attr-defined]
    (wanted,) = Importer(store, again=True).import_path(file)
    assert wanted.outcome == "new"


def test_bundles_and_copies_bring_nothing_back(store: Store) -> None:
    """A copied store and a bundle have the tombstones; an older bundle of an erased session is refused."""
    session = told(*CONVERSATION, store=store)

    def bundle() -> bytes:
        return b"".join(export(store, session.session_id, "bundle").pieces)

    older = bundle()
    receipt = session.erase(entries=[session.root.messages.handle(1)])
    assert b"to go" not in bundle()
    target, copy = MemoryStore(), MemoryStore()
    import_bundle(target, _reader(bundle()))
    assert copy_store(store, copy).equal
    assert verify_receipt(target, receipt).holds
    assert verify_receipt(copy, receipt).holds
    with pytest.raises(Conflict):
        import_bundle(store, _reader(older))
    session.erase()
    with pytest.raises(Erased):
        import_bundle(store, _reader(older))
    assert list(store.sessions()) == []


def test_damage_does_not_stop_an_erasure(tmp_path: Path) -> None:
    """An entry whose bytes are no entry is erased by what its header tells."""
    session = told(*CONVERSATION, store=(store := SqliteStore(tmp_path / "s.db")))
    dialog = session.root.dialog_id
    with store.erasing() as eraser:
        eraser.put_in_place(dialog, [Placed(2, "message", b"\xff\x00 no entry")])
    receipt = session.erase(entries=[Handle(dialog, 2)])
    assert verify_receipt(store, receipt).holds
    assert_closed(session.root.view())
    assert [call.id for call in session.root.messages[2].tool_calls()] == ["a", "b"]
    store.close()


# --- crashes ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["put_in_place", "remove_dialogs", "keep_receipt", "scrub"])
def test_a_kill_leaves_all_of_it_or_nothing(tmp_path: Path, step: str) -> None:
    """A process killed (SIGKILL) in the middle of an erasure has erased nothing; killed behind it, the work is pending and can be finished."""
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        session = told(*CONVERSATION, store=store)
        child = session.root.fork()
        child.put_text("branch secret")
        dialog, gone = session.root.dialog_id, child.dialog_id
        before = [list(store.bodies(one)) for one in (dialog, gone)]
    process = os.fork()
    if not process:
        _die_in(path, step, gone, dialog)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    with SqliteStore(path) as store:
        if step == "scrub":
            with pytest.raises(Erased):
                store.node(gone)
            assert [one.pending for one in finish_erasures(store)] == [()]
            assert verify_receipt(store, store.receipts()[0].receipt_id).holds
        else:
            assert [list(store.bodies(one)) for one in (dialog, gone)] == before
            assert (store.receipts(), list(store.all_gone())) == ((), [])
        Session.open(store, session.session_id).root.put_text("goes on")
    assert step != "scrub" or b"branch secret" not in path.read_bytes()


def _die_in(path: Path, step: str, gone: DialogId, dialog: DialogId) -> None:
    """Erase a dialog, and one entry of what it grew from, and die in the middle."""
    try:
        setattr(SqliteStore if step == "scrub" else SqlEraser, step, lambda *_given, **_named: kill_this_process())
        with SqliteStore(path) as store:
            if step == "put_in_place":
                erase(store, entries=[Handle(dialog, 1)])
            erase(store, dialog=gone)
    finally:
        os._exit(3)
