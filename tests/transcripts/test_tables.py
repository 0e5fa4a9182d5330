"""Tables: sessions as Parquet files."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palaver import Session, SqliteStore
from palaver.ids import SessionId
from palaver.log import Place
from palaver.log.entries import Label
from palaver.messages import AssistantMessage, Message, TextContent, ThinkingContent, Usage, UserMessage
from palaver.store import Store
from palaver.testing.logs import Log, model, result, user
from palaver.transcripts.tables import ROWS, TABLES, write_tables
from tests.cli.commands import Palaver

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "tables.md"
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    """Return the rows of a table."""
    read: list[dict[str, object]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return read


def at(message: Message) -> Message:
    """Return a message of that noon."""
    return message.model_copy(update={"timestamp": NOON.timestamp()})


def test_entries_have_their_texts_times_and_numbers(tmp_path: Path) -> None:
    """An entry is a row: what was said and thought, the speaker, the model, a real timestamp, and the handle that commands take."""
    log = Log()
    said = AssistantMessage(contents=(ThinkingContent(content="Hm."), TextContent("Yes.")), model="gpt-5")
    log.put(at(user("Is it?")), at(said), Label(target=Place.of(log.at(0)), label="good"))
    write_tables([(log.store, log.session)], tmp_path)
    first, second, third = rows(tmp_path, "entries")
    assert (first["text"], first["role"], first["speaker"], first["thinking"]) == ("Is it?", "user", "human", None)
    assert (second["text"], second["thinking"], second["model"]) == ("Yes.", "Hm.", "gpt-5")
    assert (third["kind"], third["text"], third["role"]) == ("label", "good", None)
    assert [row["handle"] for row in (first, second)] == [str(log.at(0)), str(log.at(1))]
    assert pq.read_schema(tmp_path / "entries.parquet").field("at").type == pa.timestamp("us", tz="UTC")
    assert isinstance(first["at"], datetime)


def test_call_and_result_are_one_row(tmp_path: Path) -> None:
    """A call has its result, arguments in JSON and both entries; one without a result, and a result whose call is in the parent, have nulls."""
    log = Log()
    log.put(user("go"), model("", "a", "b"), result("b"))
    child = log.fork()
    child.put(result("a"))
    write_tables([(log.store, log.session)], tmp_path)
    calls = {(row["dialog"], row["call"]): row for row in rows(tmp_path, "tool_calls")}
    answered, waiting = calls[log.dialog, "b"], calls[log.dialog, "a"]
    assert (answered["tool"], answered["arguments"], answered["result"]) == ("shell", '{"cmd":"b"}', "done")
    assert (answered["seq"], answered["result_seq"], answered["failed"]) == (1, 2, False)
    assert (waiting["seq"], waiting["result_seq"], waiting["result"], waiting["failed"]) == (1, None, None, None)
    late = calls[child.dialog, "a"]
    assert (late["arguments"], late["seq"], late["result_seq"], late["result"]) == (None, None, 0, "done")


def test_costs_are_those_of_the_session(tmp_path: Path) -> None:
    """Each paid answer is a row, and dollars from list prices say so."""
    log = Log()
    usage = Usage(input_tokens=1000, output_tokens=10, cached_tokens=0)
    log.put(user("go"), AssistantMessage(contents=(TextContent("Yes."),), model="gpt-5", usage=usage))
    write_tables([(log.store, log.session)], tmp_path)
    (paid,) = rows(tmp_path, "costs")
    assert (paid["input_tokens"], paid["output_tokens"], paid["model"], paid["estimated"]) == (1000, 10, "gpt-5", True)
    assert isinstance(paid["dollars"], float)
    assert paid["dollars"] > 0


def test_many_entries_are_written_in_row_groups(tmp_path: Path) -> None:
    """A session of many entries becomes several row groups of bounded size, in the order of the log."""
    log = Log()
    log.put(*[user(f"word {number}") for number in range(ROWS + 5)])
    assert write_tables([(log.store, log.session)], tmp_path)["entries"] == ROWS + 5
    file = pq.ParquetFile(tmp_path / "entries.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [ROWS, 5]
    assert file.read(columns=["seq"])["seq"].to_pylist() == list(range(ROWS + 5))


def test_failed_export_leaves_the_files_that_were_there(tmp_path: Path) -> None:
    """Tables are private and appear whole: an interrupted export changes nothing and leaves nothing."""
    log = Log()
    log.put(user("first"))
    write_tables([(log.store, log.session)], tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupted() -> Iterator[tuple[Store, SessionId]]:
        yield log.store, log.session
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tables(interrupted(), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_redacted_tables_have_no_secret(tmp_path: Path) -> None:
    """What a redactor removes is in no table."""
    log = Log()
    log.put(user("my key is sk-ant-api03-" + "a1B2" * 24))
    log.store.update_session(log.session, root=log.dialog)
    write_tables([(log.store, log.session)], tmp_path, redact=True)
    assert "a1B2a1B2" not in str(rows(tmp_path, "entries"))
    assert "my key is" in str(rows(tmp_path, "entries"))


def test_text_that_is_no_unicode_is_stored(tmp_path: Path) -> None:
    """A lone surrogate, which UTF-8 lacks, becomes a question mark in a table."""
    log = Log()
    log.put(model("", "a"), UserMessage.text("\N{SNOWMAN}"))
    log.store.update_session(log.session, name="snow")
    write_tables([(log.store, log.session)], tmp_path)
    assert [row["text"] for row in rows(tmp_path, "entries")] == [None, "\N{SNOWMAN}"]


def test_page_lists_the_columns() -> None:
    """The page has each column of each table, its type and its meaning, as the files' own schema says."""
    page = PAGE.read_text("utf-8")
    lines = [
        f"| `{name}` | {kind} | {meaning} |" for columns in TABLES.values() for name, (kind, meaning) in columns.items()
    ]
    assert [line for line in lines if line not in page] == []
    assert [line[4:-1] for line in page.splitlines() if line.startswith("## `")] == list(TABLES)


def test_missing_pyarrow_names_the_extra() -> None:
    """Without the package, the command says what to install, and other exports work."""
    program = """
import sys
sys.modules["pyarrow"] = None
from palaver.cli import main
sys.exit(main(["export", "--to", "parquet", "--all", "-o", "nowhere"]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'palaver-llm[arrow]'" in ran.stderr
    assert ran.returncode


def test_export_writes_tables_of_named_sessions(tmp_path: Path) -> None:
    """`palaver export --to parquet` takes sessions or --all, refuses both and neither, and says how many rows it wrote; the store knows the files."""
    store = SqliteStore(tmp_path / "store.db")
    for name in ("one", "two"):
        Session.create(store, name=name).root.append([user(name), model("", "a"), result("a")])
    run = Palaver(tmp_path)
    row = json.loads(run("export", "one", "--to", "parquet", "-o", tmp_path / "t", "--json").out)
    assert row["rows"] == {"sessions": 1, "entries": 3, "tool_calls": 1, "costs": 0}
    assert "sessions 2, entries 6" in run("export", "--all", "--to", "parquet", "-o", tmp_path / "t").err
    assert [row["text"] for row in rows(tmp_path / "t", "entries") if row["role"] == "user"] == ["two", "one"]
    for wrong in (
        ["--to", "parquet", "--all"],
        ["--to", "parquet", "-o", "t"],
        ["one", "--all", "--to", "parquet", "-o", "t"],
    ):
        assert run("export", *wrong).code == 2
    (session,) = store.sessions(name="one")
    assert {Path(file.path).name for file in store.files(session.session_id)} == {f"{name}.parquet" for name in TABLES}
    store.close()
