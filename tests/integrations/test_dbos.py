"""DBOS: the recipe of docs/how-to/engines.md, over a real database, with a process that dies."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from palaver import Session
from palaver.store.postgres import PostgresStore
from tests import postgres

pytest.importorskip("dbos", reason="DBOS is not installed: ./run integrations")

ROOT = Path(__file__).parents[2]

RUNS = """
import asyncio, os, sys
from functools import partial
from pathlib import Path

import recipe
from palaver import Agent, tool
from palaver.providers.scripted import ScriptedProvider


@tool
def charge(what: str) -> str:
    "Charge something."
    with Path("charged").open("a") as file:
        print(what, file=file)
    if sys.argv[1] == "dies":
        os._exit(9)
    return f"{what} is charged"


def model(request):
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return f"Done: {last['content']}"
    return {"tool_calls": [{"name": "charge", "arguments": {"what": last["content"]}}]}


async def work():
    await recipe.say("till 1", sys.argv[2])
    while await recipe.DBOS.list_workflows_async(status=["PENDING", "ENQUEUED"]):
        await asyncio.sleep(0.05)


recipe.clerk = partial(Agent, "clerk", "Answer.", "gpt-4o", ScriptedProvider(model), store=recipe.store, tools=[charge])
recipe.launch()
asyncio.run(work())
recipe.DBOS.destroy()
"""


def ran(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the recipe in a process of its own until nothing is left to do."""
    known = dict(os.environ) | environment | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run(
        [sys.executable, "runs.py", *words], cwd=folder, env=known, capture_output=True, text=True, check=False
    )


def test_turn_of_a_process_that_died_is_continued(postgres_server: postgres.Server, tmp_path: Path) -> None:
    """The step runs again after its process died in a tool: the tool does not, the model reads so, and the next message is answered as ever."""
    page = (ROOT / "docs/how-to/engines.md").read_text()
    (tmp_path / "recipe.py").write_text(re.findall(r"```python test=[^\n]*\n(.*?from dbos.*?)```", page, re.DOTALL)[0])
    (tmp_path / "runs.py").write_text(RUNS)
    where = {
        "PALAVER_STORE": postgres_server.url(),
        "DBOS_SYSTEM_DATABASE_URL": f"postgresql://palaver@/postgres?host={postgres_server.folder}",
    }
    assert ran(tmp_path, "dies", "lamp", **where).returncode == 9
    later = ran(tmp_path, "lives", "chair", **where)
    assert later.returncode == 0, later.stderr
    assert (tmp_path / "charged").read_text().split() == ["lamp", "chair"]
    with PostgresStore(where["PALAVER_STORE"]) as store:
        messages = list(Session.open(store, "till 1").root.messages)
    results = [str(message.content) for message in messages if message.role == "tool"]
    assert ["unknown" in result for result in results] == [True, False]
    assert str(messages[-1].content) == "Done: chair is charged"
