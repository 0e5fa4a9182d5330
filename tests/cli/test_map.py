"""palaver map: a map of a folder, for nobody or for a session, as text and as JSON; and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.cli.outcome import Exit
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Session
from palaver.store import SqliteStore
from palaver.tokens import counter
from tests.cli.commands import run
from tests.repomap.made_up import SHOP, written


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give the folder of a small repository."""
    return written(tmp_path / "shop", SHOP)


def test_a_folder_is_mapped_within_a_budget(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map goes to standard output, what it shows of what there is to standard error; what is mentioned comes first."""
    monkeypatch.chdir(shop)
    ran = run("map", "--tokens", "300")
    assert (ran.code, ran.err) == (Exit.OK, f"{counter('').text(ran.out)} tokens: 9 of 9 definitions, 6 of 6 files.\n")
    (shop / "link").symlink_to(shop)
    words = ("map", str(shop), "--tokens", "75", "--model", "gpt-4o", "--json")
    row = run(*words).row()
    assert row["left_out"] == {"link": 1}
    assert row["tokens"] == counter("gpt-4o").text(row["map"]) <= 75
    assert "lonely" not in row["map"]
    assert "lonely" in run(*words, "--mention", "shelf.py", "--mention", "none").row()["map"]
    assert run("map", str(shop / "none")).code == Exit.INPUT


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
