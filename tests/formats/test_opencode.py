"""OpenCode: a session of its database is its export, grows by finished steps, and shows what OpenCode's model saw."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from palaver.errors import UnsupportedTranscript
from palaver.messages import Speaker
from palaver.store.memory import MemoryStore
from palaver.transcripts import Importer
from palaver.transcripts.sources import kept
from tests.formats.reading import imported, read_bytes, read_file, views
from tests.formats.samples import document, value_of

CLEARED = 11  # messages after which OpenCode cleared a result
OLD = "[Old tool result content cleared]"
PARENT = "ses_df5455cb6ffekcU1hfP6Kpi44Z"
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, path TEXT, title TEXT, version TEXT,
  summary_additions INTEGER, cost REAL, tokens_input INTEGER, tokens_cache_read INTEGER, agent TEXT, model TEXT, revert TEXT,
  time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
"""


def session(parent: str = "") -> dict[str, Any]:
    """Return an export; with a parent, of its sub-agent."""
    found: dict[str, Any] = value_of("opencode")
    if parent:
        found = json.loads(json.dumps(found).replace("msg_", "msg_s").replace("prt_", "prt_s"))
        found["info"] |= {"id": "ses_sub", "parentID": parent, "title": "Look"}
        found["messages"] = found["messages"][:3]
    return found


@contextmanager
def database(path: Path, *exports: dict[str, Any]) -> Iterator[apsw.Connection]:
    """Write a database as OpenCode leaves it while it runs: all of it is in the write-ahead log."""
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute(SCHEMA)
    for export in exports:
        info = export["info"]
        columns = {
            name: info[name] for name in ("id", "slug", "directory", "path", "title", "version", "cost", "agent")
        }
        columns |= {
            "project_id": info["projectID"],
            "parent_id": info.get("parentID"),
            "model": json.dumps(info["model"]),
        }
        columns |= {"time_created": info["time"]["created"], "tokens_cache_read": info["tokens"]["cache"]["read"]}
        insert(writer, "session", columns)
        for message in export["messages"]:
            add(writer, info["id"], message)
    yield writer
    writer.close()


def insert(writer: apsw.Connection, table: str, row: dict[str, Any]) -> None:
    """Insert a row."""
    marks = ", ".join("?" * len(row))
    writer.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - test


def add(writer: apsw.Connection, key: str, message: dict[str, Any]) -> None:
    """Insert a message and its parts."""
    about = {"session_id": key, "time_created": message["info"]["time"]["created"]}
    own = message["info"]["id"]
    insert(writer, "message", {"id": own, "data": json.dumps(message["info"]), **about})
    for part in reversed(message["parts"]):
        insert(writer, "part", {"id": part["id"], "message_id": own, "data": json.dumps(part), **about})


def test_session_of_a_database_is_its_export(tmp_path: Path) -> None:
    """Each session is read and kept as its export, in the session of its parent; nothing is written beside the database."""
    path = tmp_path / "opencode.db"
    with database(path, session(), session(PARENT)) as writer:
        names, found = sorted(tmp_path.iterdir()), read_file(path)
        exports = [read_bytes(tmp_path, document(one), "export.json") for one in (session(), session(PARENT))]
        assert found.identities() == [identity for one in exports for identity in one.identities()]
        assert found.conversations[0].metadata == exports[0].conversations[0].metadata
        assert [one.part_of for one in found.conversations] == ["", PARENT]
        (tmp_path / "export.json").unlink()
        store = MemoryStore()
        one, part = Importer(store).import_path(path)
        assert (part.session_id, part.dialogs, one.outcome) == (one.session_id, 2, "new")
        assert store.nodes(one.session_id)[1].relation == "subagent"
        source = store.source(f"opencode:{PARENT}")
        assert source is not None
        assert source.raw is not None
        export = json.loads(b"".join(kept(store, one.session_id, source.raw)))
        assert (export["info"]["tokens"], len(export["messages"])) == ({"cache": {"read": 360}}, 14)
        assert export["messages"] == session()["messages"]
        add(writer, "ses_sub", json.loads(json.dumps(session()["messages"][10]).replace('"id": "', '"id": "s')))
        assert [(one.outcome, one.entries) for one in imported(store, path)] == [("unchanged", 0), ("grown", 1)]
        assert sorted(tmp_path.iterdir()) == names
    assert [one.outcome for one in imported(store, path)] == ["unchanged", "unchanged"]
    assert [one.name for one in tmp_path.iterdir()] == ["opencode.db"], "closed, it has no log: none is made"


def test_other_databases_are_refused_in_a_sentence(tmp_path: Path) -> None:
    """A database of another program, and a log without its index, are no transcripts; the error says why."""
    with database(tmp_path / "a.db") as writer:
        for name, data in (("b.db", b""), ("b.db-wal", (tmp_path / "a.db-wal").read_bytes())):
            (tmp_path / name).write_bytes(data or (tmp_path / "a.db").read_bytes())
        with pytest.raises(UnsupportedTranscript, match=r"b\.db-shm, is missing"):
            imported(MemoryStore(), tmp_path / "b.db")
        with pytest.raises(UnsupportedTranscript, match="without sessions of OpenCode"):
            imported(MemoryStore(), tmp_path / "a.db")
        writer.execute("DROP TABLE part")
        with pytest.raises(UnsupportedTranscript, match="without sessions of OpenCode"):
            imported(MemoryStore(), tmp_path / "a.db")


def test_session_in_use_grows_by_finished_steps(tmp_path: Path) -> None:
    """Whatever OpenCode had written at a moment, importing it and then the rest adds to it, and rewrites nothing."""
    whole = session()
    answer = whole["messages"][1]
    running = copy.deepcopy(answer)
    del running["info"]["time"]["completed"], running["info"]["finish"]
    store, outcomes, path = MemoryStore(), [], tmp_path / "export.json"
    stages = [whole["messages"][:1]]
    for parts in range(len(answer["parts"])):
        stages.append([whole["messages"][0], running | {"parts": copy.deepcopy(answer["parts"][: parts + 1])}])
        if answer["parts"][parts]["type"] == "tool":
            stages[-1][1]["parts"][parts]["state"] = {"status": "running", "input": {}}
    stages += [whole["messages"][:count] for count in range(2, len(whole["messages"]) + 1)]
    for messages in stages:
        messages = json.loads(json.dumps(messages))  # noqa: PLW2901 - a copy
        for part in messages[1]["parts"] if 1 < len(messages) < CLEARED else ():
            part.get("state", {}).get("time", {}).pop("compacted", None)
        path.write_bytes(document(whole | {"messages": messages}))
        outcomes.append(imported(store, path)[0].outcome)
    assert set(outcomes) == {"new", "grown", "unchanged"}
    straight = imported(other := MemoryStore(), path)
    grown = [view.exchanges for view in views(store, imported(store, path))]
    assert [[turn.role for one in exchanges for turn in one.turns] for exchanges in grown] == [
        [turn.role for one in view.exchanges for turn in one.turns] for view in views(other, straight)
    ]


def test_view_is_what_opencode_showed_its_model(tmp_path: Path) -> None:
    """A compaction leaves its question, its summary and the tail; a cleared result shows OpenCode's words; usage counts the cache."""
    whole = session()
    found = read_bytes(tmp_path, document(whole))
    assert [line.partition("\n")[0] for line in found.shown()] == [
        "user: What did we do so far?",
        "assistant: ## Goal",
        'user: "Now use a subagent for it"',
        "assistant: I ask a sub-agent.",
        "assistant: task(call_task)",
        'tool: call_task=<task id="ses_df5434368ffe9CSVzcvNvMrUai" state="completed">',
        "assistant: (Both came back.)",
        "assistant: The note says hello.",
        "user: And now?",
        "assistant: Done, as you asked.",
        "user: The following tool was executed by the user",
        "assistant: bash(01M85BTBQSEMF04Q7G17AZBPB7)",
        "tool: 01M85BTBQSEMF04Q7G17AZBPB7=hi",
    ]
    said, (summary, *_) = found.said(), [one for one in found.said() if one.speaker == Speaker.SUMMARY]
    assert summary.text_content().startswith("## Goal")
    assert [one.speaker for one in said if one.role == "user"][:4] == [
        *(Speaker.HUMAN, Speaker.HARNESS, Speaker.HUMAN, Speaker.HUMAN)
    ]
    assert {
        (one.usage.input_tokens, one.usage.cache_read_tokens, one.usage.output_tokens) for one in said if one.usage
    } == {(120, 40, 14)}
    del whole["messages"][8:10]
    assert f"tool: call_a={OLD}" in read_bytes(tmp_path, document(whole)).shown()
    whole["info"]["revert"] = {"messageID": whole["messages"][3]["info"]["id"]}
    taken = read_bytes(tmp_path, document(whole))
    assert taken.shown()[-1] == "assistant: The note says hello."
    assert any("undone" in loss.reason for loss in taken.losses)
