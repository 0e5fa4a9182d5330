"""Values in a notebook: they show themselves, short and escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import MemoryStore, Session, fit
from palaver.lab import LabRun, PolicyRow, Score, Table
from palaver.notebook import MOST, html_table

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"&"
LARGEST = 20_000
"""The most characters that a value shows."""


class Tags(HTMLParser):
    """Collects the tags and attributes of a text, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Note words."""
        self.words += f" {data}"


def require_harmless(html: str) -> Tags:
    """Return the parts of a text that has only a table's tags, and is short."""
    read = Tags(html)
    assert read.tags <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert read.attributes <= {"style"}
    assert len(html) < LARGEST
    return read


def values() -> dict[str, Any]:
    """Return one of each value that shows itself, of a long conversation with hostile words."""
    dialog = Session.create(MemoryStore(), "notes", owner=HOSTILE).root
    dialog.put_text(HOSTILE, role="system")
    for number in range(40):
        dialog.put_text(f"question {number} {HOSTILE} " + "long " * 2_000)
        dialog.put_text(f"answer {number} {HOSTILE}", role="assistant")
    dialog.put_text("last")
    messages = [{"role": "user", "content": HOSTILE * 50}, {"role": "assistant", "content": HOSTILE}] * 20
    run = LabRun(
        key="",
        sources=(),
        policies=(),
        stand_ins=(),
        model=HOSTILE,
        window=1,
        budget=None,
        prices={},
        currency="USD",
        assumptions=(),
    )
    row = PolicyRow(policy=HOSTILE, stand_in="fold", scores={"bill": Score(value=1.25)})
    return {
        "dialog": dialog,
        "view": dialog.view(),
        "request": dialog.request("openai-chat", "gpt-4o"),
        "fit": fit([*messages, {"role": "user", "content": "go on"}], model="gpt-4o", budget=2_000),
        "lab": Table(run=run, sessions=1, rows=(row,) * 40),
    }


@pytest.mark.parametrize("name", ["dialog", "view", "request", "fit", "lab"])
def test_a_value_shows_itself_short_and_escaped(name: str) -> None:
    """Whatever a user, a model or a tool said, it is text of a table with a few rows."""
    shown = require_harmless(values()[name]._repr_html_())
    expected = {
        "dialog": ["last", "earlier"],
        "view": ["last", "earlier"],
        "request": ["last", "earlier"],
        "fit": ["37 omitted", "omitted: folded"],
        "lab": ["1.25", "more"],
    }
    assert all(words in shown.words for words in expected[name])


def test_a_table_of_policies_prints_itself() -> None:
    """Text and HTML have the same titles, and a line for each policy."""
    table = values()["lab"]
    lines = repr(table).splitlines()
    assert len(lines) == 2 + 40
    assert lines[1].split("  ")[0] == "policy"
    assert all("1.25" in line for line in lines[2:])
    assert "in view" in lines[1]
    assert "in view" in table._repr_html_()


@given(st.text(), st.lists(st.lists(st.text(), max_size=3), max_size=40))
def test_any_text_stays_text(title: str, rows: list[list[str]]) -> None:
    """No text becomes a tag, and at most so many rows are shown."""
    html = html_table(title, ("a",), rows)
    require_harmless(html)
    assert html.count("<tr>") <= MOST + 1


def test_an_empty_dialog_shows_itself() -> None:
    """Nothing was said yet."""
    require_harmless(Session.create(MemoryStore(), "new").root._repr_html_())
