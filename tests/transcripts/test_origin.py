"""Exports that come back: what a tool appended joins the session that was exported, and nothing of it is there twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from palaver.browsing.sessions import OWN, tool_of
from palaver.erasure import erase
from palaver.errors import Erased
from palaver.log import Custom
from palaver.messages import Usage
from palaver.session import Session
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts import Imported, Importer, export, remember, write_file
from palaver.transcripts.exporting import TOOLS
from palaver.transcripts.tables import write_tables
from palaver.view import fold
from tests.sketches import sketch

EVERY = pytest.mark.parametrize("tool", TOOLS)
STAMP = "2026-11-29T23:00:00.000Z"


def talk() -> Log:
    """Return a session with two calls at once, whose answers came in the other order, and a second question."""
    log = Log()
    log.put(
        system("Be brief."), user("go"), model("I look.", "a", "b"), result("b", "B"), result("a", "A"), model("Done.")
    )
    log.put(user("again"), model("Yes."), Custom(custom_type="note"))
    log.store.update_session(log.session, root=log.dialog)
    return log


def exported(log: Log, tool: str, folder: Path, *, whole: bool = True) -> Path:
    """Export a session to a file, which the store remembers."""
    done = export(log.store, log.session, tool, dialog_id=log.dialog, whole=whole)
    path = folder / f"{tool}.jsonl"
    write_file(path, done.pieces)
    remember(log.store, log.session, done, path)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def append(path: Path, tool: str, question: str, answer: str, after: str | None = None) -> None:
    """Append a question and an answer as the tool does, after its last record or another one."""
    records = lines_of(path)
    added = _added(records, tool, question, answer, after)
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in added)


def _added(
    records: list[dict[str, Any]], tool: str, question: str, answer: str, after: str | None
) -> list[Mapping[str, Any]]:
    content = [{"type": "text", "text": answer}]
    match tool:
        case "claude-code":
            chained = [record for record in records if "uuid" in record]
            base = {name: chained[0][name] for name in ("cwd", "sessionId", "version", "isSidechain")}
            parents = (after or chained[-1]["uuid"], f"{question}-1")
            about = {"id": f"msg_{question}", "model": "claude-opus-4-8", "type": "message"}
            said: list[dict[str, Any]] = [{"role": "user", "content": question}]
            said += [{"role": "assistant", "content": content, **about}]
            return [
                {**base, "type": message["role"], "parentUuid": parent, "uuid": f"{question}-{n}", "timestamp": STAMP}
                | {"message": message}
                for n, (parent, message) in enumerate(zip(parents, said, strict=True), 1)
            ]
        case "codex":
            bodies = [("user", "input_text", question), ("assistant", "output_text", answer)]
            items = [
                {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
                for role, kind, text in bodies
            ]
            return [{"timestamp": STAMP, "type": "response_item", "payload": item} for item in items]
        case _:
            parents = (after or records[-1]["id"], f"{question}-1")
            messages = {"role": "user", "content": question}, {"role": "assistant", "content": content}
            return [
                {"type": "message", "id": f"{question}-{n}", "parentId": parent, "timestamp": STAMP, "message": message}
                for n, (parent, message) in enumerate(zip(parents, messages, strict=True), 1)
            ]


def imported(log: Log, path: Path) -> Imported:
    """Import a file of one conversation into the store of a session."""
    (one,) = Importer(log.store).import_path(path)
    return one


def shown(log: Log, one: Imported) -> list[str]:
    """Return what the view of the dialog to continue with shows."""
    assert one.main is not None
    return sketch(fold(log.store, one.main))


@EVERY
def test_continued_export_grows_its_session(tool: str, tmp_path: Path) -> None:
    """Only what the tool appended is new; the session is still palaver's own; importing again adds nothing."""
    log = talk()
    before = sketch(fold(log.store, log.dialog))
    path = exported(log, tool, tmp_path)
    append(path, tool, "more", "More.")
    one = imported(log, path)
    assert (one.outcome, one.session_id, one.main, one.dialogs) == ("grown", log.session, log.dialog, 1)
    assert shown(log, one) == [*before, *shown(log, one)[-2:]]
    assert len(list(log.store.sessions())) == 1
    assert tool_of(log.store, log.store.session(log.session)) == OWN
    assert imported(log, path).outcome == "unchanged"
    append(path, tool, "last", "Last.")
    assert len(shown(log, imported(log, path))) == len(before) + 4


@EVERY
def test_exported_session_is_still_its_own(tool: str, tmp_path: Path) -> None:
    """The tool of an export is not where the session comes from, and its file does not name it: in ATIF, in tables and in lists."""
    log = talk()
    log.store.update_session(log.session, name=tool)
    exported(log, tool, tmp_path)  # the file has the session's name
    trajectory = json.loads(b"".join(export(log.store, log.session, "atif", dialog_id=log.dialog).pieces))
    assert trajectory["agent"]["name"] != tool
    write_tables([(log.store, log.session)], tmp_path)
    (row,) = pq.read_table(tmp_path / "sessions.parquet").to_pylist()
    assert (row["format"], row["title"]) == (None, tool)


@EVERY
def test_untouched_export_is_unchanged(tool: str, tmp_path: Path) -> None:
    """An export that no tool continued adds nothing, whichever name and folder it has."""
    log = talk()
    path = exported(log, tool, tmp_path)
    moved = path.rename(tmp_path / "elsewhere.jsonl")
    one = imported(log, moved)
    assert (one.outcome, one.session_id, one.entries) == ("unchanged", log.session, 0)


@EVERY
def test_export_continued_on_both_sides_becomes_a_branch(tool: str, tmp_path: Path) -> None:
    """What was appended here stays, and what the tool appended is on a branch that shares the exported entries."""
    log = talk()
    before = sketch(fold(log.store, log.dialog))
    path = exported(log, tool, tmp_path)
    log.put(user("here"), model("Here."))
    append(path, tool, "there", "There.")
    one = imported(log, path)
    assert (one.session_id, one.dialogs) == (log.session, 2)
    assert "continued_here" in {loss.code for loss in one.losses}
    branch = next(node for node in log.store.nodes(log.session) if node.dialog_id != log.dialog)
    there = sketch(fold(log.store, branch.dialog_id))
    assert there[:-2] == before
    assert sketch(fold(log.store, log.dialog))[:-2] == before


@pytest.mark.parametrize("tool", ["claude-code", "pi"])
def test_rewind_in_an_export_shares_the_entries_before(tool: str, tmp_path: Path) -> None:
    """A prompt that the tool's user asked anew, after the first answer, forks the session there."""
    log = talk()
    path = exported(log, tool, tmp_path)
    marker = json.dumps("Done.")
    done = next(record for record in lines_of(path) if marker in json.dumps(record))
    append(path, tool, "otherwise", "Otherwise.", after=done.get("uuid") or done["id"])
    one = imported(log, path)
    assert (one.session_id, one.dialogs) == (log.session, 2)
    branch = next(node for node in log.store.nodes(log.session) if node.dialog_id == one.main)
    assert branch.dialog_id != log.dialog
    assert [(span.dialog, span.stop) for span in branch.ranges] == [(log.dialog, 6)]


@EVERY
def test_exported_fork_grows_its_own_branch(tool: str, tmp_path: Path) -> None:
    """A branch that was exported gets what is new; the entries that it shares with others are not copied."""
    log = talk()
    fork = log.fork()
    fork.put(user("on the branch"), model("Fine."))
    path = exported(fork, tool, tmp_path)
    append(path, tool, "more", "More.")
    one = imported(fork, path)
    assert (one.session_id, one.entries > 0) == (log.session, True)
    assert len(sketch(fold(fork.store, fork.dialog))) == len(sketch(fold(log.store, log.dialog))) + 4


@EVERY
def test_continued_view_keeps_its_checkpoint(tool: str, tmp_path: Path) -> None:
    """A compacted view that was exported and continued stays compacted: the tool's copy of the record is none of its own."""
    log = talk()
    for n in range(8):
        log.put(user(f"read {n}"), model("", f"r{n}"), result(f"r{n}", f"line {n}\n" * 2000), model(f"Read {n}."))
    Session.open(log.store, log.session).root.compaction.preview(budget=6000).approve()
    before = sketch(fold(log.store, log.dialog))
    path = exported(log, tool, tmp_path, whole=False)
    append(path, tool, "more", "More.")
    one = imported(log, path)
    assert (one.session_id, one.dialogs, one.main) == (log.session, 1, log.dialog)
    assert before[0].startswith("user[[Record of")
    assert shown(log, one)[:-2] == before


def test_second_export_of_the_same_state_forgets_nothing(tmp_path: Path) -> None:
    """Exporting again writes the same id; what was imported from the first file is not imported a second time."""
    log = talk()
    dialog = log.fork()
    path = exported(dialog, "claude-code", tmp_path)
    whole = path.read_bytes()
    append(path, "claude-code", "more", "More.")
    grown = path.read_bytes()
    imported(dialog, path)
    done = export(dialog.store, dialog.session, "claude-code", dialog_id=dialog.dialog)
    path.write_bytes(whole)
    remember(dialog.store, dialog.session, done, path)
    path.write_bytes(grown)
    assert imported(dialog, path).outcome == "unchanged"


@EVERY
def test_usage_of_an_export_counts_once(tool: str, tmp_path: Path) -> None:
    """The origin's calls are paid for once: the file's copies of its answers add nothing."""
    log = talk()
    log.put(user("count"), model("One.").model_copy(update={"usage": Usage({"input_tokens": 10, "output_tokens": 5})}))
    entries = log.store.last(log.dialog).seq
    path = exported(log, tool, tmp_path)
    assert imported(log, path).entries == 0
    assert log.store.last(log.dialog).seq == entries


def test_export_of_an_erased_session_is_refused(tmp_path: Path) -> None:
    """After an erasure the exported file is not imported again, unless somebody asks for it."""
    log = talk()
    path = exported(log, "claude-code", tmp_path)
    kept = path.read_bytes()
    erase(log.store, session=log.session)
    path.write_bytes(kept)
    with pytest.raises(Erased):
        list(Importer(log.store).import_path(path))
    (one,) = Importer(log.store, again=True).import_path(path)
    assert one.outcome == "new"
