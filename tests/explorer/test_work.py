"""Long work: how far it is, what it finds, and how it is stopped."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver import Session, SqliteStore
from palaver.errors import InvalidInput, NotFound
from palaver.explorer.api import Source
from palaver.explorer.work import Works
from palaver.ids import DialogId
from palaver.store import open_store
from tests.explorer.running import explorer, stocked


def source(path: Path) -> Source:
    """Return a store, opened read-only."""
    return Source(store=open_store(str(path), create=False, read_only=True), url=str(path), name=path.name)


async def told(works: Works, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Start a job and return its lines."""
    return [json.loads(line) async for line in works.find(works.start(works.job(job))).lines()]


def test_work_tells_how_far_it_is(tmp_path: Path) -> None:
    """The index grows in steps; a what-if is what the policy makes of the view, and is asked once for each state of the dialog."""
    dialog_id = stocked(tmp_path / "store.db", 1_200)
    question = {"do": "whatif", "dialog": dialog_id, "call": None, "policy": "palaver", "budget": 5_000}

    async def main() -> None:
        works = Works(source(tmp_path / "store.db"))
        async with works.running():
            *steps, last = await told(works, {"do": "index"})
            assert last == {"result": {"indexed": 1_200}}
            assert sorted(step["done"] for step in steps) == [step["done"] for step in steps]
            assert {step["of"] for step in steps} == {None, 1_200}
            *steps, last = await told(works, question)
            assert steps[0]["what"] == "waiting"
            with closing(SqliteStore(tmp_path / "store.db")) as store:
                dialog = Session.open(store, "talk").root
                made = dialog.compaction.compose("palaver", 5_000)
                assert last["result"]["tokens"] == made.after.total <= 5_000
                assert await told(works, question) == [last], "remembered"
                first = works.start(works.job(question))
                dialog.put_text("more")
                assert works.start(works.job(question)) != first
            _, *_, last = await told(works, {**question, "budget": 5})
            assert sum(last["error"]["breakdown"].values()) == last["error"]["needed"] > 5

    anyio.run(main)


def test_cancelled_work_ends_at_once(tmp_path: Path) -> None:
    """A process that waits for a lock does not get to the end of its patience; the store is as it was, and the work can be begun again."""
    stocked(tmp_path / "store.db")

    async def main() -> None:
        works = Works(source(tmp_path / "store.db"))
        async with works.running():
            with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                work = works.find(works.start(works.job({"do": "index"})))
                last: dict[str, Any] = {}
                async for line in work.lines():
                    last = json.loads(line)
                    if last.get("what") == "indexing":
                        work.cancel()
                assert last["error"]["kind"] == "Ended"
                other.execute("ROLLBACK")
            assert (await told(works, {"do": "index"}))[-1] == {"result": {"indexed": 4}}

    anyio.run(main)


WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"do": "rm"}, InvalidInput),
    ({"do": ["index"]}, InvalidInput),
    ({"do": "index", "force": True}, InvalidInput),
    ({"do": "whatif", "policy": "palaver", "dialog": "0" * 32}, NotFound),
    ({"do": "whatif", "policy": "os:system", "dialog": ""}, NotFound),
    ({"do": "whatif", "policy": "palaver", "dialog": "DIALOG", "call": -1}, InvalidInput),
    ({"do": "whatif", "policy": "palaver", "dialog": "DIALOG", "budget": "5"}, InvalidInput),
    ({"do": "whatif", "policy": ["palaver"], "dialog": "DIALOG"}, InvalidInput),
]


def test_wrong_jobs_start_nothing(tmp_path: Path) -> None:
    """They are refused before there is a process."""
    dialog = stocked(tmp_path / "store.db")
    works = Works(source(tmp_path / "store.db"))
    for job, kind in WRONG:
        with pytest.raises(kind):
            works.job({**job, **({"dialog": dialog} if job.get("dialog") == "DIALOG" else {})})


def test_an_export_is_reviewed_and_then_downloaded(tmp_path: Path) -> None:
    """What would be left out is said before there is a file; the file is an attachment, and gone with the server."""
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    dialog = stocked(tmp_path / "store.db")
    with SqliteStore(tmp_path / "store.db") as store:
        session = store.node(DialogId(dialog)).session_id
        Session.open(store, session).dialog(DialogId(dialog)).put_text(f"use {key}")
    with explorer("--store", tmp_path / "store.db") as (_, page):
        words = {"do": "export", "session": session, "dialog": dialog}
        reviewed = list(page.work(**words, review=True))[-1]
        assert [row["beginning"] for row in reviewed["result"]["secrets"]] == ["ghp_…"]
        assert page.ask("GET", f"/api/jobs/{reviewed['id']}/file").status == 404
        done = list(page.work(**words))[-1]
        answer = page.ask("GET", f"/api/jobs/{done['id']}/file")
        assert (answer.getheader("Content-Disposition") or "").startswith("attachment")
        assert len(answer.read()) == done["result"]["bytes"]
