"""palaver map: a map of a folder, for nobody or for a session, as text and as JSON; and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from palaver.cli.outcome import Exit
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Session
from palaver.store import SqliteStore
from palaver.tokens import counter
from tests.cli.commands import run
from tests.repomap.made_up import SHOP, written

KEYS = {"map", "tokens", "files", "definitions", "of_files", "of_definitions", "left_out", "digest"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give the folder of a small repository."""
    return written(tmp_path / "shop", SHOP)


def test_a_folder_is_mapped(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map goes to standard output, what it shows of what there is to standard error; without a name it is the working folder's."""
    ran = run("map", str(shop), "--tokens", "300")
    assert (ran.code, ran.err) == (Exit.OK, f"{counter('').text(ran.out)} tokens: 9 of 9 definitions, 6 of 6 files.\n")
    assert "│class Money:" in ran.out
    monkeypatch.chdir(shop)
    assert run("map", "--tokens", "300").out == ran.out


def test_json_has_the_same(shop: Path) -> None:
    """One object, with the text, the figures, what was left out and the digest; within the budget by the counter of the model that is named."""
    (shop / "link").symlink_to(shop)
    row = run("map", str(shop), "--tokens", "90", "--model", "gpt-4o", "--json").row()
    assert set(row) == KEYS
    assert row["left_out"] == {"link": 1}
    assert row["tokens"] == counter("gpt-4o").text(row["map"]) <= 90
    assert "1 link" in run("map", str(shop)).err


def test_what_is_mentioned_comes_first(shop: Path) -> None:
    """A name of a file or a definition, given once or more."""
    assert "lonely" not in run("map", str(shop), "--tokens", "75", "--model", "gpt-4o").out
    assert (
        "lonely"
        in run(
            "map", str(shop), "--tokens", "75", "--model", "gpt-4o", "--mention", "shelf.py", "--mention", "none"
        ).out
    )


def test_a_map_for_a_session(shop: Path, tmp_path: Path) -> None:
    """What the session's model has in its view is left out."""
    store = tmp_path / "store.db"
    with SqliteStore(store) as there:
        dialog = Session.create(there, "talk").root
        dialog.put_text("Mend shelf.py.")
        dialog.append(
            AssistantMessage(contents=(ToolCallContent(id="a", name="read", args={"path": "/x/shop/money.py"}),))
        )
        dialog.append(ToolMessage.from_result(ToolResultContent(id="a", name="read", content="...")))
    ran = run("map", str(shop), "--session", "talk", "--store", str(store), "--tokens", "85")
    assert (ran.code, "money.py" in ran.out) == (Exit.OK, False)
    assert run("map", str(shop), "--session", "none", "--store", str(store)).code == Exit.MISSING


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    """No folder, no number of tokens, an empty folder; none of them with a trace."""
    assert run("map", str(tmp_path / "none")).code == Exit.INPUT
    assert run("map", str(tmp_path), "--tokens", "0").code == Exit.USAGE
    ran = run("map", str(tmp_path))
    assert (ran.code, ran.out, ran.err) == (Exit.OK, "", "0 tokens: 0 of 0 definitions, 0 of 0 files.\n")


def test_without_the_extra_the_command_names_it(shop: Path) -> None:
    """It says which extra to install, and ends as for other input that cannot be used."""
    script = (
        "import sys\nsys.modules['tree_sitter'] = None\nfrom palaver.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, "map", str(shop)], capture_output=True, text=True, check=False)
    assert ran.returncode == Exit.INPUT
    assert "pip install 'palaver[repomap]'" in ran.stderr
