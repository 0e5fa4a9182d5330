"""What starting the command line loads: the list of commands none of them, and a command what it needs itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.commands import Palaver

ERRORS = {"doors", "errors", "plurals"}
"""The errors, and the few lines by which they say how many."""

LOADED = """
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
{statement}
print(*sorted(name for name in sys.modules if "." not in name or name.startswith("palaver.") and name.count(".") == 1))
"""

RUN = """
from palaver.cli import main
with redirect_stdout(TextIOWrapper(BytesIO())), redirect_stderr(TextIOWrapper(BytesIO())):
    main({words})
"""


def modules(statement: str) -> set[str]:
    """Return the top modules, and the rooms of palaver, that a fresh process has after a statement."""
    command = [sys.executable, "-c", LOADED.format(statement=statement)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return set(ran.stdout.split())


def rooms(found: set[str]) -> set[str]:
    """Return the rooms of palaver among modules."""
    return {name.removeprefix("palaver.") for name in found if name.startswith("palaver.")}


def test_what_needs_no_command_loads_none() -> None:
    """Help, the version and wrong words need neither a store nor messages: only the errors, whose words they may have to tell."""
    found = modules("".join(RUN.format(words=words) for words in (["--help"], ["--version"], ["sesions"], [])))
    assert rooms(found) == {"cli", *ERRORS}
    assert found.isdisjoint({"apsw", "anyio", "tiktoken", "yaml"})


def test_a_listing_loads_the_store_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`palaver sessions` loads no view, no provider, no policy, and nothing that draws on a terminal."""
    store = tmp_path_factory.mktemp("store") / "store.db"
    made = f"from palaver.store import SqliteStore\nSqliteStore({str(store)!r}).close()\n"
    found = modules(made + RUN.format(words=["sessions", "--store", str(store)]))
    assert rooms(found) == {"browsing", "cli", *ERRORS, "files", "folders", "ids", "log", "messages", "store"}
    assert found.isdisjoint({"anyio", "asyncio", "tiktoken", "yaml", "zstandard", "psycopg", "rich"})


def test_a_budget_in_tokens_needs_no_list_of_models(stocked: Palaver) -> None:
    """The window of a model that nobody named is not looked up: the list takes a tenth of a second to load."""
    for words in (["view", "talk", "--explain"], ["compact", "talk"]):
        found = modules(RUN.format(words=[*words, "--budget", "5000", "--store", str(stocked.store)]))
        assert "genai_prices" not in found, words


def test_the_face_loads_nothing_before_it_is_used() -> None:
    """`import palaver` loads no room before one of its names is used."""
    assert rooms(modules("import palaver")) == {"doors"}
    assert rooms(modules("from palaver import Message")) == {*ERRORS, "ids", "messages"}


def test_a_conversation_loads_no_event_loop() -> None:
    """Making a session and appending to it loads neither what waits nor what logs."""
    found = modules("from palaver import Session, UserMessage\nSession.create().root.append(UserMessage(content='x'))")
    assert found.isdisjoint({"anyio", "asyncio", "concurrent", "logging", "httpx", "tiktoken"})
