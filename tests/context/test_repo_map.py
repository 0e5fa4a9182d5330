"""The repo map in a conversation: a tool's result, and beside the record of the preset `aider` (R318)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palaver.context import WorkingDialog
from palaver.context.presets.aider import Aider
from palaver.context.recall import LIST
from palaver.context.repo_map import RepoMap, repo_map_tools
from palaver.errors import InvalidInput
from palaver.messages import Message, UserMessage
from palaver.tools import CallContext
from palaver.view import fold_messages
from tests.context.pencil import METER, composed, did, prose, shape, text
from tests.repomap.made_up import SHOP, written


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return the folder of a small repository."""
    return written(tmp_path / "shop", SHOP)


def dialog_of(*messages: Message) -> WorkingDialog:
    """Return a dialog with messages."""
    return WorkingDialog(fold_messages(messages, LIST))


def reading(path: str, at: int = 0) -> list[Message]:
    """Return a call that reads a file."""
    return did(at, prose(1_000), "Read", {"file_path": path})


def test_a_map_leaves_out_what_calls_read(shop: Path) -> None:
    """Whatever the path of the machine it was read on; `mentioned` brings a name to the front."""
    repo_map = RepoMap(shop)
    dialog = dialog_of(UserMessage(content="go"), *reading("/elsewhere/shop/money.py"))
    assert "shop/money.py" in repo_map.draw(model="gpt-4o").files
    assert "shop/money.py" not in repo_map.draw(dialog, model="gpt-4o").files
    small = repo_map.draw(max_tokens=70, mentioned=["shelf.py"], model="gpt-4o")
    assert "lonely" in small.text
    assert small.tokens <= 70


def test_a_model_asks_with_the_tool(shop: Path) -> None:
    """What it gets is at most as long as it may ask for; numbers out of range are not errors."""
    (tool,) = repo_map_tools(RepoMap(shop), max_tokens=500)
    assert (tool.name, sorted(tool.properties)) == ("repo_map", ["mentioned", "tokens"])
    assert tool.function is not None
    context = CallContext(dialog=dialog_of(UserMessage(content="go")))
    for tokens, says in ((300, "class Money"), (-5, "too few"), (10**9, "class Money")):
        assert says in str(tool.function(context, tokens=tokens)), tokens


def session(count: int) -> list[Message]:
    """Return a session that reads files, and then begins something new."""
    messages: list[Message] = [UserMessage(content="Tidy up.")]
    for at in range(count):
        messages += reading(f"shop/{('money', 'till')[at % 2]}.py", at)
    return [*messages, UserMessage(content="Now something else.")]


def test_aider_shows_a_map_with_its_fold(shop: Path) -> None:
    """After the record, for the files that left, within its tokens and the budget; without a fold there is none."""
    by: dict[str, Any] = {"type": "aider", "repo_map": str(shop), "history": 3_000, "map_tokens": 900}
    assert shape(composed(session(2), by, 20_000).view) == "...."
    found = composed(session(12), by, 20_000)
    assert shape(found.view).startswith("RN")
    assert found.after.total <= 20_000
    assert text(found.view, 1).startswith("[Map of 6 files")
    assert METER.text(text(found.view, 1)) <= 900


def test_a_map_stays_as_it_was_drawn(shop: Path) -> None:
    """The same plan has the same map, whatever happened to the disk; a later fold has a new one."""
    by = Aider(repo_map=RepoMap(shop), history=3_000)
    first = composed(session(12), by, 20_000).view
    written(shop, {"shop/other.py": "class Brand_new_thing: pass\n"})
    assert composed(session(12), by, 20_000).view == first
    later = composed([*session(12), *session(20)], by, 20_000).view
    assert "Brand_new_thing" in text(later, 1)


def test_what_cannot_be_mapped_is_named(tmp_path: Path) -> None:
    """A missing folder, and something that is not a map."""
    with pytest.raises(InvalidInput, match="is not a folder"):
        RepoMap(tmp_path / "none")
    with pytest.raises(InvalidInput, match="repo_map is 5"):
        Aider(repo_map=5)  # type: ignore[arg-type]
