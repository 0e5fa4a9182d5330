"""The user's own table of models: what vendors list, and what requests make of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver import Session
from palaver.providers import profile
from palaver.providers.models import learned, own_columns, table_path, write_own_table
from palaver.tokens import UnknownModelWarning

ABLE: dict[str, Any] = {
    "thinking": {"supported": True, "types": {"adaptive": {"supported": True}, "enabled": {"supported": False}}},
    "effort": {"supported": True, "low": {"supported": True}, "high": {"supported": True}, "max": {"supported": False}},
    "structured_outputs": {"supported": True},
}
LIST: list[dict[str, Any]] = [
    {"id": "claude-opus-8-20290101", "capabilities": ABLE},
    {"id": "claude-new"},
    {"display_name": "?"},
]


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


def test_listed_capabilities_are_known_of_the_model() -> None:
    """A model that palaver's table does not have is asked as its vendor's list says, in any spelling, without a warning."""
    write_own_table({"anthropic": learned("anthropic", LIST)})
    for name in ("claude-opus-8", "claude-opus-8-20290101", "anthropic/claude-opus-8"):
        known = profile("anthropic", name).reasoning
        assert (known.thinking, known.thinks, known.efforts) == (("adaptive",), "always", ("low", "high"))
    with pytest.warns(UnknownModelWarning, match="claude-opus-9"):
        profile("anthropic", "claude-opus-9")


def test_refreshing_one_maker_keeps_the_others() -> None:
    """What another maker's list said stays."""
    write_own_table({"anthropic": learned("anthropic", LIST)})
    write_own_table({"openai": learned("openai", [{"id": "gpt-9"}])})
    assert own_columns("anthropic", "claude-opus-8")["efforts"] == ("low", "high")
    assert own_columns("openai", "gpt-9") == {}


def test_calls_are_made_again_after_the_table_has_changed() -> None:
    """A call records what its profile was made of besides palaver's tables: the request is the same, byte for byte."""
    dialog = Session.create().root
    dialog.put_text("Hello.")
    older = profile("anthropic", "claude-opus-4-6", {"version": "2023-06-01"})
    first = dialog.request(older, "claude-opus-4-6", temperature=0.5)
    dialog.calls.record(first)
    write_own_table({"anthropic": learned("anthropic", LIST)})
    second = dialog.request(
        "anthropic", "claude-opus-8", parameters={"thinking": {"type": "enabled", "budget_tokens": 2048}}
    )
    dialog.calls.record(second)
    table_path().unlink()
    write_own_table({})
    assert [call.request().digest for call in dialog.calls] == [first.digest, second.digest]
    assert first.body["temperature"] == 0.5


@pytest.mark.parametrize("text", ["{", "[]", '{"models": {"anthropic": ["x"]}}', '{"models": 5}'])
def test_unreadable_table_is_reported_and_left_alone(text: str) -> None:
    """A file that is no table changes nothing."""
    table_path().parent.mkdir(parents=True, exist_ok=True)
    table_path().write_text(text, encoding="utf-8")
    with pytest.warns(UnknownModelWarning, match="not a table of models"):
        assert profile("anthropic", "claude-opus-5-5") == profile("anthropic", "claude-opus-5-5", {})
    assert table_path().read_text(encoding="utf-8") == text


def test_columns_of_another_version_are_passed_over() -> None:
    """Columns that this version does not have, and values of other types, are not read."""
    table_path().parent.mkdir(parents=True, exist_ok=True)
    columns = {"thinking": "adaptive", "efforts": ["low"], "colour": "red", "schema": 1}
    table = {"version": 2, "models": {"anthropic": {"claude-opus-8": columns}}}
    table_path().write_text(json.dumps(table), encoding="utf-8")
    assert own_columns("anthropic", "claude-opus-8") == {"efforts": ("low",)}
