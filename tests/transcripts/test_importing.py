"""Importing: again adds nothing, grown adds what is new, rewritten becomes a branch, and an import that was cut off is taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from palaver.errors import StoreFull, UnsupportedTranscript
from palaver.ids import DialogId
from palaver.log import Draft, Header, MessageEntry, decode_entry, draft
from palaver.messages import UserMessage
from palaver.store.memory import MemoryStore
from palaver.testing.logs import sketch
from palaver.transcripts import Imported, Importer, kept
from palaver.view import fold


def line(number: int, kind: str, content: object, **more: object) -> str:
    """One record of a Claude Code session, the child of the one before it."""
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {
            "id": f"msg_{number}",
            "model": "claude-sonnet-4-5",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    record = {
        "type": kind,
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012d}" if number else None,
        "sessionId": "11111111-1111-4111-8111-111111111111",
        "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
        "cwd": "/home/someone/project",
        "version": "2.1.0",
        "isSidechain": False,
        "message": message,
        **more,
    }
    return json.dumps(record)


def talk(count: int) -> list[str]:
    """A session of user and assistant in turn."""
    return [
        line(n, "assistant", [{"type": "text", "text": f"answer {n}"}]) if n % 2 else line(n, "user", f"question {n}")
        for n in range(count)
    ]


def written(path: Path, lines: Sequence[str]) -> Path:
    """Write a session file."""
    path.write_text("\n".join(lines) + "\n")
    return path


def imported(store: MemoryStore, path: Path) -> Imported:
    """Import a file of one conversation."""
    (one,) = Importer(store).import_path(path)
    return one


def shown(store: MemoryStore, one: Imported) -> list[str]:
    """Give what the view of the main dialog shows."""
    assert one.main is not None
    return sketch(fold(store, one.main))


def test_a_session_is_imported_whole_with_its_source(tmp_path: Path) -> None:
    """Records become messages in order, the session has a name and a place, and the file itself is kept byte for byte."""
    store = MemoryStore()
    path = written(tmp_path / "s.jsonl", talk(4))
    one = imported(store, path)

    assert shown(store, one) == ["user[question 0]", "assistant[answer 1]", "user[question 2]", "assistant[answer 3]"]
    assert (one.outcome, one.records, one.messages) == ("new", 4, 4)
    (source,) = store.sources(one.session_id)
    assert source.raw is not None
    assert b"".join(kept(store, source.raw)) == path.read_bytes()
    assert store.session(one.session_id).workdir == "/home/someone/project"


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    """The same file is recognised by what it is, under another name too."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    again = imported(store, written(tmp_path / "copy.jsonl", talk(4)))

    assert (again.outcome, again.entries, again.session_id) == ("unchanged", 0, first.session_id)
    assert len(list(store.sessions())) == 1


def test_a_grown_file_adds_what_is_new(tmp_path: Path) -> None:
    """Only the new records are written, to the same dialog; what was there keeps its numbers."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    before = list(store.bodies(DialogId(str(first.main))))
    grown = imported(store, written(tmp_path / "s.jsonl", talk(7)))

    assert (grown.outcome, grown.entries, grown.main) == ("grown", 3, first.main)
    assert list(store.bodies(DialogId(str(first.main))))[: len(before)] == before


def test_a_rewritten_file_becomes_a_branch(tmp_path: Path) -> None:
    """A file whose earlier part was changed never changes what was imported: it goes on in a branch from there."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(6)))
    lines = talk(6)
    lines[3] = line(3, "assistant", [{"type": "text", "text": "another answer"}])
    other = imported(store, written(tmp_path / "s.jsonl", lines))

    assert (other.outcome, other.dialogs) == ("rewritten", 2)
    assert "assistant[answer 3]" in shown(store, first)
    assert shown(store, other)[3] == "assistant[another answer]"
    assert len(shown(store, other)) == 6


def test_a_shorter_file_takes_nothing_away(tmp_path: Path) -> None:
    """A file that lost its end is reported; what was imported stays."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(6)))
    shorter = imported(store, written(tmp_path / "s.jsonl", talk(3)))

    assert shorter.entries == 0
    assert "shrunk" in {loss.code for loss in shorter.losses}
    assert len(shown(store, first)) == 6


def test_a_dialog_that_was_continued_here_is_not_mixed_with_what_the_file_adds(tmp_path: Path) -> None:
    """When both sides went on, each has its own dialog, and the report says so."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    assert first.main is not None
    ours = draft(MessageEntry(message=UserMessage.text("mine")))[0]
    store.append(first.main, [ours], store.last(first.main).turn_head)
    grown = imported(store, written(tmp_path / "s.jsonl", talk(6)))

    assert shown(store, first)[-1] == "user[mine]"
    assert shown(store, grown)[-1] == "assistant[answer 5]"
    assert "user[mine]" not in shown(store, grown)
    assert "continued_here" in {loss.code for loss in grown.losses}


class FullStore(MemoryStore):
    """A store whose device is full after so many entries."""

    def __init__(self, room: int) -> None:
        """Make room for so many entries."""
        super().__init__()
        self.room = room

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append as long as there is room."""
        if len(drafts) > self.room:
            raise StoreFull("The device is full.")
        self.room -= len(drafts)
        return super().append(dialog_id, drafts, turn_head)


def branched(count: int) -> list[str]:
    """A session with a rewind, so that several transactions are needed: question 2 was asked anew after the rest."""
    again = line(count, "user", "question 2 again", parentUuid="00000000-0000-4000-8000-000000000001")
    return [*talk(count), again, line(count + 1, "assistant", [{"type": "text", "text": "another way"}])]


@pytest.mark.parametrize("room", [0, 5, 7, 9])
def test_an_import_that_was_cut_off_is_hidden_and_taken_up(tmp_path: Path, room: int) -> None:
    """A full device leaves no half session in sight; importing again when there is room gives what one import would have."""
    path = written(tmp_path / "s.jsonl", branched(8))
    store = FullStore(room)
    with pytest.raises(StoreFull):
        imported(store, path)
    assert list(store.sessions()) == []

    store.room = 10**6
    one = imported(store, path)
    whole = MemoryStore()
    other = imported(whole, path)

    assert len(list(store.sessions())) == 1
    assert shown(store, one) == shown(whole, other)
    assert one.dialogs == other.dialogs
    assert [store.last(node.dialog_id).seq for node in store.nodes(one.session_id)] == [
        whole.last(node.dialog_id).seq for node in whole.nodes(other.session_id)
    ]


def test_every_file_that_is_no_transcript_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A typed error names the file; the store stays as it was."""
    store = MemoryStore()
    for name, data in {"empty": b"", "text": b"hello\n", "binary": bytes(range(256)) * 40, "json": b'{"a": 1}'}.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(UnsupportedTranscript):
            list(Importer(store).import_path(path))
    for bad in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UnsupportedTranscript):
            list(Importer(store).import_path(bad))
    assert list(store.sessions(trashed=True)) == []


def test_declining_the_source_keeps_no_file(tmp_path: Path) -> None:
    """With `keep_source` off the file's bytes are not stored."""
    store = MemoryStore()
    (one,) = Importer(store, keep_source=False).import_path(written(tmp_path / "s.jsonl", talk(2)))

    assert store.sources(one.session_id)[0].raw is None


def test_every_imported_entry_says_where_it_came_from(tmp_path: Path) -> None:
    """Each message entry names its format and record."""
    store = MemoryStore()
    one = imported(store, written(tmp_path / "s.jsonl", talk(4)))
    assert one.main is not None
    entries = [decode_entry(body) for _, body in store.bodies(one.main)]

    said = [entry for entry in entries if isinstance(entry, MessageEntry)]
    assert [entry.source.record for entry in said if entry.source] == [
        f"00000000-0000-4000-8000-{n:012d}" for n in range(4)
    ]


def test_a_file_that_grows_its_first_call_only_grows(tmp_path: Path) -> None:
    """Tools are declared from the calls of the whole file; the first call that comes later moves nothing that was imported."""
    store = MemoryStore()
    lines = talk(4)
    first = imported(store, written(tmp_path / "s.jsonl", lines))
    call = [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}]
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}]
    grown = imported(
        store,
        written(
            tmp_path / "s.jsonl", [*lines, line(4, "user", "read"), line(5, "assistant", call), line(6, "user", result)]
        ),
    )

    assert (grown.outcome, grown.dialogs, grown.main) == ("grown", 1, first.main)
    assert grown.main is not None
    assert [tool.name for tool in fold(store, grown.main).tools] == ["Read"]


def test_a_branch_whose_first_words_were_rewritten_keeps_what_it_shares(tmp_path: Path) -> None:
    """A rewind whose own first record was changed goes on in a branch that still begins with what both share."""
    store = MemoryStore()
    lines = branched(4)
    imported(store, written(tmp_path / "s.jsonl", lines))
    lines[4] = lines[4].replace("question 2 again", "question 2 edited")
    other = imported(store, written(tmp_path / "s.jsonl", lines))

    assert other.outcome == "rewritten"
    assert shown(store, other) == [
        "user[question 0]",
        "assistant[answer 1]",
        "user[question 2 edited]",
        "assistant[another way]",
    ]


def test_a_fork_of_what_was_rewritten_follows_the_rewritten_part(tmp_path: Path) -> None:
    """When the part that a fork shares was changed in the file, the fork is made anew behind the changed part; the old one stays."""
    store = MemoryStore()
    lines = branched(4)
    first = imported(store, written(tmp_path / "s.jsonl", lines))
    lines[1] = line(1, "assistant", [{"type": "text", "text": "edited answer"}])
    other = imported(store, written(tmp_path / "s.jsonl", lines))

    assert shown(store, first)[1] == "assistant[answer 1]"
    assert shown(store, other) == [
        "user[question 0]",
        "assistant[edited answer]",
        "user[question 2 again]",
        "assistant[another way]",
    ]
    again = imported(store, written(tmp_path / "s.jsonl", lines))
    assert (again.outcome, again.entries) == ("unchanged", 0)


def test_a_rewrite_after_tools_were_declared_anew_keeps_the_tools(tmp_path: Path) -> None:
    """A file that grew a tool and was rewritten at its second record: the branch has the newest tools and no doubled past."""
    store = MemoryStore()
    call = [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}]
    imported(store, written(tmp_path / "s.jsonl", talk(4)))
    lines = [*talk(4), line(4, "user", "read"), line(5, "assistant", call)]
    lines[0] = line(0, "user", "another question")
    other = imported(store, written(tmp_path / "s.jsonl", lines))

    assert other.main is not None
    assert [tool.name for tool in fold(store, other.main).tools] == ["Read"]
    assert shown(store, other)[:2] == ["user[another question]", "assistant[answer 1]"]
    assert len(shown(store, other)) == 6


# --- copies that hold less --------------------------------------------------------------------------------------------------------


def with_tools(count: int) -> list[str]:
    """A session in which every answer calls another tool."""
    lines = []
    for n in range(count):
        call = {"type": "tool_use", "id": f"t{n}", "name": f"Tool{n}", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"t{n - 1}", "content": f"result {n}"}
        lines.append(line(n, "assistant", [call]) if n % 2 else line(n, "user", [answer] if n else "go"))
    return lines


def tools(store: MemoryStore, one: Imported) -> list[str]:
    """Give the tools in force in the main dialog."""
    assert one.main is not None
    return [tool.name for tool in fold(store, one.main).tools]


def test_an_older_copy_and_a_newer_one_in_turn_add_nothing(tmp_path: Path) -> None:
    """Snapshots of one session in a folder, imported again and again: the tools of the newer one stay, and nothing is written."""
    store = MemoryStore()
    old, new = written(tmp_path / "old.jsonl", with_tools(4)), written(tmp_path / "new.jsonl", with_tools(8))
    imported(store, old)
    assert imported(store, new).outcome == "grown"
    for path in (old, new, old, new):
        again = imported(store, path)
        assert (again.outcome, again.entries) == ("unchanged", 0), path
        assert tools(store, again) == ["Tool1", "Tool3", "Tool5", "Tool7"]
    (source,) = store.sources(imported(store, old).session_id)
    assert source.raw is not None
    assert b"".join(kept(store, source.raw)) == new.read_bytes(), "the file that is kept is the one that holds most"


@pytest.mark.parametrize("start", [1, 2, 3, 9])
def test_a_copy_that_lacks_its_beginning_adds_only_what_is_new(tmp_path: Path, start: int) -> None:
    """Its records are known by what they are: nothing is doubled, the dialog to go on with stays, and the report says what is lacking."""
    store = MemoryStore()
    whole = imported(store, written(tmp_path / "s.jsonl", with_tools(10)))
    part = imported(store, written(tmp_path / "part.jsonl", with_tools(10)[start:]))

    assert (part.outcome, part.entries, part.main) == ("unchanged", 0, whole.main)
    assert "shrunk" in {loss.code for loss in part.losses}
    grown = imported(store, written(tmp_path / "part.jsonl", with_tools(14)[start:]))
    assert (grown.outcome, grown.entries, grown.dialogs, grown.main) == ("grown", 4, 1, whole.main)
    assert shown(store, grown) == shown(store, imported(store, written(tmp_path / "s.jsonl", with_tools(14))))
    assert imported(store, tmp_path / "s.jsonl").outcome == "unchanged"


def test_a_copy_that_lacks_its_beginning_and_differs_later_is_a_branch(tmp_path: Path) -> None:
    """It leaves what was imported where it differs, and holds the beginning that the copy lacks."""
    store = MemoryStore()
    first = imported(store, written(tmp_path / "s.jsonl", talk(8)))
    lines = talk(8)[2:]
    lines[3] = line(5, "assistant", [{"type": "text", "text": "another answer"}])
    other = imported(store, written(tmp_path / "s.jsonl", lines))

    assert other.outcome == "rewritten"
    assert shown(store, other) == [
        *shown(store, first)[:5],
        "assistant[another answer]",
        *shown(store, first)[6:],
    ]
    assert "assistant[answer 5]" in shown(store, first)


def test_two_versions_of_a_file_in_turn_add_nothing(tmp_path: Path) -> None:
    """Each is known once it was imported: neither is doubled, and both files are kept."""
    store = MemoryStore()
    lines = talk(6)
    lines[3] = line(3, "assistant", [{"type": "text", "text": "another answer"}])
    one, other = written(tmp_path / "one.jsonl", talk(6)), written(tmp_path / "other.jsonl", lines)
    imported(store, one)
    rewritten = imported(store, other)
    assert rewritten.outcome == "rewritten"
    for path in (one, other, one):
        again = imported(store, path)
        assert (again.outcome, again.entries, again.main) == ("unchanged", 0, rewritten.main), path
    files = {b"".join(kept(store, source.raw)) for source in store.sources(rewritten.session_id) if source.raw}
    assert files == {one.read_bytes(), other.read_bytes()}


@pytest.mark.parametrize(
    "change", [lambda data: data.replace(b"\n", b"\r\n"), lambda data: b"\xef\xbb\xbf" + data], ids=["CRLF", "BOM"]
)
def test_line_ends_and_a_byte_order_mark_change_no_record(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    """A file that went through another system says the same."""
    store = MemoryStore()
    path = written(tmp_path / "s.jsonl", talk(6))
    imported(store, path)
    path.write_bytes(change(path.read_bytes()))

    assert imported(store, path).outcome == "unchanged"


@pytest.mark.parametrize("room", range(1, 6))
def test_a_grown_import_that_was_cut_off_is_taken_up(tmp_path: Path, room: int) -> None:
    """What was derived anew, and what followed it, is not written twice."""
    store = FullStore(4)
    imported(store, written(tmp_path / "s.jsonl", with_tools(2)))
    path = written(tmp_path / "s.jsonl", with_tools(8))
    store.room = room
    with suppress(StoreFull):
        imported(store, path)
    store.room = 100
    done = imported(store, path)
    fresh = MemoryStore()

    assert shown(store, done) == shown(fresh, imported(fresh, path))
    assert tools(store, done) == ["Tool1", "Tool3", "Tool5", "Tool7"]
    assert imported(store, path).outcome == "unchanged"


def test_a_run_that_is_imported_before_its_first_answer_goes_on(tmp_path: Path) -> None:
    """The answer gives the run its name; the file and its instance say that it is the one which was imported before. Another instance is not."""
    store = MemoryStore()
    path = tmp_path / "run.traj.json"

    def run(count: int, instance: str = "repo-1") -> Imported:
        extra = {"response": {"id": f"chatcmpl-{instance}", "model": "gpt-5", "usage": {}}, "timestamp": 1767225600.0}
        messages = [
            {"role": "system", "content": "You work in a shell."},
            {"role": "user", "content": f"Mend {instance}."},
            {"role": "assistant", "content": "I look.", "extra": extra},
            {"role": "user", "content": "<returncode>0</returncode>"},
        ]
        about = {"trajectory_format": "mini-swe-agent-1.1", "instance_id": instance, "info": {}}
        path.write_text(json.dumps({**about, "messages": messages[:count]}))
        return imported(store, path)

    first = run(2)
    assert [(one.session_id, one.outcome) for one in (run(3), run(4))] == [(first.session_id, "grown")] * 2
    assert run(4).outcome == "unchanged"
    path = tmp_path / "next.traj.json"
    waiting = run(2, "repo-2")
    assert run(4, "repo-3").session_id != waiting.session_id
