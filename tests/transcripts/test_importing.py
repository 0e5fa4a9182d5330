"""Importing: again adds nothing, grown adds what is new, rewritten becomes a branch, and an import that was cut off is taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from palaver.browsing.sessions import session_row
from palaver.errors import StoreError
from palaver.ids import DialogId
from palaver.log import Draft, Header, MessageEntry, decode_entry, draft
from palaver.log.redaction import PatternRedactor, Redacted
from palaver.messages import UserMessage
from palaver.session import Session
from palaver.store.memory import MemoryStore
from palaver.transcripts import Imported, Importer, in_order, kept
from palaver.view import fold
from tests.formats.samples import Claude, codex, said, text
from tests.sketches import sketch


def talk(count: int, *, rewound: bool = False) -> list[str]:
    """Return a session of user and assistant in turn; rewound, question 2 was asked anew after the rest."""
    session = Claude()
    for n in range(count):
        if n % 2:
            session.model(f"r{n}", f"msg_{n}", text(f"answer {n}"))
        else:
            session.user(f"r{n}", f"question {n}")
    if rewound:
        session.user(f"r{count}", "question 2 again", after="r1")
        session.model(f"r{count + 1}", f"msg_{count + 1}", text("another way"))
    return [json.dumps(record) for record in session.records]


def written(path: Path, lines: Sequence[str]) -> Path:
    """Write a session file."""
    path.write_text("\n".join(lines) + "\n")
    return path


def imported(store: MemoryStore, path: Path) -> Imported:
    """Import a file of one conversation."""
    (one,) = Importer(store).import_path(path)
    return one


def shown(store: MemoryStore, one: Imported) -> list[str]:
    """Return what the view of the main dialog shows."""
    assert one.main is not None
    return sketch(fold(store, one.main))


def test_session_is_imported_whole_with_its_source(tmp_path: Path) -> None:
    """Records become messages in order, each names its record; the file itself is kept byte for byte, unless declined."""
    store = MemoryStore()
    path = written(tmp_path / "s.jsonl", talk(4))
    one = imported(store, path)
    assert shown(store, one) == ["user[question 0]", "assistant[answer 1]", "user[question 2]", "assistant[answer 3]"]
    assert (one.outcome, one.records, one.messages) == ("new", 4, 4)
    (source,) = store.sources(one.session_id)
    assert source.raw is not None
    assert b"".join(kept(store, one.session_id, source.raw)) == path.read_bytes()
    assert store.session(one.session_id).workdir == "/home/u/project"
    entries = [decode_entry(body) for _, body in store.bodies(DialogId(str(one.main)))]
    records = [entry.source.record for entry in entries if isinstance(entry, MessageEntry) and entry.source]
    assert records == [f"r{n}" for n in range(4)]
    other = MemoryStore()
    (bare,) = Importer(other, keep_source=False).import_path(path)
    assert other.sources(bare.session_id)[0].raw is None


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    """The session is known by what it is: under another name, and after it went through another system."""
    changes: tuple[Callable[[bytes], bytes], ...] = (
        bytes,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
    )
    for change in changes:
        store = MemoryStore()
        first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(change((tmp_path / "s.jsonl").read_bytes()))
        again = imported(store, copy)
        assert (again.outcome, again.entries, again.session_id) == ("unchanged", 0, first.session_id), change
        assert len(list(store.sessions())) == 1, change


def test_renamed_file_renames_a_session_without_a_title(tmp_path: Path) -> None:
    """The title stays what was said first; a name that somebody chose stays."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    again = imported(store, written(tmp_path / "copy.jsonl", talk(6)))
    record = store.session(first.session_id)
    assert (again.outcome, record.name, session_row(store, record)["title"]) == ("grown", "copy", "question 0")
    store.update_session(first.session_id, name="chosen")
    assert imported(store, written(tmp_path / "third.jsonl", talk(8))).name == "chosen"


def test_two_versions_of_a_file_in_turn_add_nothing(tmp_path: Path) -> None:
    """What is new is written to the same dialog, or a branch; each is known once it was imported, also one that is a beginning of the other; no version of the file is lost."""
    for outcome in ["grown", "rewritten"]:
        store = MemoryStore()
        lines = talk(6)
        lines[3] = lines[3].replace("answer 3", "another answer")
        one = written(tmp_path / "one.jsonl", talk(4) if outcome == "grown" else talk(6))
        other = written(tmp_path / "other.jsonl", talk(6) if outcome == "grown" else lines)
        first = DialogId(str(imported(store, one).main))
        before = list(store.bodies(first))
        second = imported(store, other)
        assert (second.outcome, second.entries, second.dialogs) == (
            (outcome, 2, 1) if outcome == "grown" else (outcome, 3, 2)
        )
        assert list(store.bodies(first))[: len(before)] == before, "what was there keeps its numbers"
        assert len(shown(store, second)) == 6, outcome
        for path in (one, other, one):
            again = imported(store, path)
            assert (again.outcome, again.entries, again.main) == ("unchanged", 0, second.main), path
            assert ("shrunk" in [loss.code for loss in again.losses]) == (path == one and outcome == "grown"), outcome
        files = {
            b"".join(kept(store, second.session_id, source.raw))
            for source in store.sources(second.session_id)
            if source.raw
        }
        assert files == {other.read_bytes()} | ({one.read_bytes()} if outcome == "rewritten" else set()), outcome


def test_rewritten_branch_keeps_what_it_shares(tmp_path: Path) -> None:
    """Its own first record was changed, or the part that it shares was: it begins with what both have now."""
    for place, words in ((4, "question 2 edited"), (1, "edited answer")):
        store = MemoryStore()
        lines = talk(4, rewound=True)
        first = imported(store, written(tmp_path / "s.jsonl", lines))
        lines[place] = lines[place].replace("question 2 again", words).replace("answer 1", words)
        other = imported(store, written(tmp_path / "s.jsonl", lines))
        assert other.outcome == "rewritten"
        said = ["user[question 0]", "assistant[answer 1]", "user[question 2 again]", "assistant[another way]"]
        assert shown(store, first) == said
        said[place if place == 1 else 2] = f"{'assistant' if place == 1 else 'user'}[{words}]"
        assert shown(store, other) == said
        assert (imported(store, tmp_path / "s.jsonl").outcome, imported(store, tmp_path / "s.jsonl").entries) == (
            "unchanged",
            0,
        )


def _sums(store: MemoryStore, one: Imported) -> tuple[int, int, int | None, float | None, int]:
    """Return the messages, tokens and dollars of a session, as the report, the list and the session say them."""
    row, cost = session_row(store, store.session(one.session_id)), Session.open(store, one.session_id).cost
    assert (cost.total_tokens or None) == row["tokens"]
    return one.messages, row["messages"], row["tokens"], row["dollars"], cost.total_tokens


def test_rewritten_file_counts_each_response_once(tmp_path: Path) -> None:
    """An edited or removed record, one put back, a rewound part that follows another past, a file cut short that grows again: every message and its usage count once."""
    lines = talk(8, rewound=True)
    edits = {
        "response": [*lines[:1], lines[1].replace("answer 1", "edited"), *lines[2:]],
        "question": [*lines[:2], lines[2].replace("question 2", "edited"), *lines[3:]],
        "removed": [*lines[:4], lines[5].replace('"r4"', '"r3"'), *lines[6:]],
        "cut and edited": [*lines[:2], lines[2].replace("question 2", "edited"), *lines[3:5]],
    }
    for name, changed in edits.items():
        store = MemoryStore()
        sums = _sums(store, imported(store, written(tmp_path / "s.jsonl", lines)))
        assert sums[:2] == (10, 10)
        for version in (changed, lines, [*changed[:2], lines[2].replace("question 2", "again"), *lines[3:]]):
            assert _sums(store, imported(store, written(tmp_path / "s.jsonl", version))) == sums, name


def test_rewritten_list_without_times_counts_once(tmp_path: Path) -> None:
    """Messages are known by their content: what moved up counts once, what is new counts."""
    path, store = tmp_path / "messages.json", MemoryStore()
    said = [{"role": ("user", "assistant")[n % 2], "content": f"words {n % 4}"} for n in range(8)]
    for messages, count in ((said, 8), (said[2:], 8), ([*said[2:], {"role": "user", "content": "new"}], 9)):
        path.write_text(json.dumps(messages))
        assert _sums(store, imported(store, path))[:2] == (count, count)


def test_dialog_that_was_continued_here_is_not_mixed(tmp_path: Path) -> None:
    """When both sides went on, each has its own dialog, and the report says so."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    assert first.main is not None
    store.append(first.main, [draft(MessageEntry(message=UserMessage("mine")))[0]], store.last(first.main).turn_head)
    grown = imported(store, written(tmp_path / "s.jsonl", talk(6)))
    assert shown(store, first)[-1] == "user[mine]"
    assert shown(store, grown)[-1] == "assistant[answer 5]"
    assert "user[mine]" not in shown(store, grown)
    assert "continued_here" in [loss.code for loss in grown.losses]


def test_rewound_session_and_trash_stay_as_they_are(tmp_path: Path) -> None:
    """Importing again, or what was added to the file, moves nobody back; only something new takes a session out of the trash."""
    store = MemoryStore()
    path = written(tmp_path / "s.jsonl", talk(4))
    session = Session.open(store, imported(store, path).session_id)
    rewound = session.rewind(session.root.messages.handle(1)).apply().dialog_id
    for count in (4, 6):
        assert imported(store, written(path, talk(count))).main == rewound
    session.delete()
    assert imported(store, path).outcome == "unchanged"
    assert list(store.sessions()) == []
    assert imported(store, written(path, talk(8))).outcome == "grown"
    assert len(list(store.sessions())) == 1


def test_two_imports_at_once_make_one_session(tmp_path: Path) -> None:
    """The one that ends later finds the session of the other, and its own stays in the trash."""
    store = MemoryStore()
    path = written(tmp_path / "s.jsonl", talk(4))

    class Meanwhile(PatternRedactor):
        other: Imported | None = None

        def redact(self, text: str, name: str = "") -> Redacted:
            if self.other is None and len(list(store.sessions(trashed=True))) == 1:
                self.other = imported(store, path)
            return super().redact(text, name)

    meanwhile = Meanwhile()
    (one,) = Importer(store, redactor=meanwhile).import_path(path)
    assert meanwhile.other is not None
    assert (one.session_id, one.outcome, one.losses) == (meanwhile.other.session_id, "unchanged", ())
    assert len(list(store.sessions())) == 1
    longer = written(tmp_path / "longer.jsonl", talk(6))
    store = MemoryStore()
    (one,) = Importer(store, redactor=Meanwhile()).import_path(longer)
    assert [loss.code for loss in one.losses] == ["meanwhile"]
    assert imported(store, longer).outcome == "grown"


def test_file_of_a_sub_agent_joins_its_session(tmp_path: Path) -> None:
    """Its dialog hangs on the session that it names, whichever of the folder's files comes first; alone it is a session."""
    inner = [json.loads(one) | {"isSidechain": True, "agentId": "ag"} for one in talk(2)]
    part = written(tmp_path / "agent-ag.jsonl", [json.dumps(one) for one in inner])
    whole = written(tmp_path / "s.jsonl", talk(4))
    store = MemoryStore()
    session, agent = [imported(store, path) for path in in_order([part, whole])]
    assert agent.session_id == session.session_id
    root, child = store.nodes(session.session_id)
    assert (child.parent_id, child.relation) == (root.dialog_id, "subagent")
    alone = imported(MemoryStore(), part)
    assert [loss.code for loss in alone.losses].count("part") == 1


# --- what fails -------------------------------------------------------------------------------------------------------------------


class FullStore(MemoryStore):
    """A store whose device is full after so many entries."""

    room = 0

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append as long as there is room."""
        if len(drafts) > self.room:
            raise StoreError("The device is full.", reason="full")
        self.room -= len(drafts)
        return super().append(dialog_id, drafts, turn_head, last)


def test_import_that_was_cut_off_is_hidden_and_taken_up(tmp_path: Path) -> None:
    """A full device leaves no half session in sight; importing again gives what one import would have."""
    for room in [0, 5, 7, 9]:
        path = written(tmp_path / "s.jsonl", talk(8, rewound=True))
        store, whole = FullStore(), MemoryStore()
        store.room = room
        with pytest.raises(StoreError):
            imported(store, path)
        assert list(store.sessions()) == [], room
        store.room = 10**6
        one, other = imported(store, path), imported(whole, path)
        assert len(list(store.sessions())) == 1, room
        assert (shown(store, one), one.dialogs) == (shown(whole, other), other.dialogs), room


def test_nul_in_the_head_of_a_file_does_not_stop_the_import(tmp_path: Path) -> None:
    """It is replaced, as in messages."""
    data = codex(said("user", "Go.")).replace(b"0.142.2", b"0.1\\u0000")
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    store = MemoryStore()
    assert store.session(imported(store, path).session_id).metadata["cli_version"] == "0.1\ufffd"
