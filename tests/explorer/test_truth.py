"""What is drawn of a call, in a browser, is what the library says that the model saw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from palaver import Session, SqliteStore
from palaver.browsing.calls import call_at, calls, is_recorded, saw
from palaver.browsing.differences import requested
from palaver.browsing.seen import omissions
from palaver.messages import (
    AssistantMessage,
    Content,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    words_of,
)
from palaver.session import Dialog
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at, story

PANE = """(() => {
  document.querySelectorAll(".body details").forEach((one) => (one.open = true));
  return [...document.querySelectorAll(".body pre")].map((one) => one.textContent);
})()"""


def _stocked(store: SqliteStore) -> tuple[Dialog, Dialog]:
    imported = Session.create(store, "imported").root
    imported.put_text("question")
    called = ToolCallContent(id="1", name="look", args={"at": "it", "times": [1, 2]})
    imported.append(AssistantMessage(contents=(ThinkingContent(content="thought"), called), model="claude-opus-4-6"))
    imported.append(ToolMessage.from_result(ToolResultContent(id=called.id, content="found")))
    imported.append(AssistantMessage(content="answer", model="claude-opus-4-6"))
    return story(store), imported


def _text(content: Content) -> str:
    return content.arguments if isinstance(content, ToolCallContent) else words_of(content)


def test_every_text_of_a_call_is_drawn_in_order(tmp_path: Path) -> None:
    """Each block by itself, the request as it was sent, the originals of all that left, and whether the call was recorded."""
    with looked_at(tmp_path, _stocked) as (_, tab, known), SqliteStore(tmp_path / "store.db") as store:
        for dialog in (Session.open(store, one.session_id).root for one in known):
            for number in (1, 2):
                call, address = call_at(calls(dialog), number), f"#/s/{dialog.session_id}/call/{number}"
                tab.go(address)
                assert tab.text(".told") == ("recorded" if is_recorded(call) else "reconstructed")
                view = saw(dialog, call)
                blocks = [*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())]
                gone = [row for row in omissions(view) if "shown" not in row]
                rows = list(_rows(tab))
                drawn = iter([text for said, texts in rows if "not shown" not in said for text in texts])
                for block in blocks:
                    assert _squeezed(_text(block.content)) in drawn, (number, block)  # an iterator: in this order
                left = [texts for said, texts in rows if "not shown" in said]
                assert len(left) == len(gone)
                assert all(left)
                tab.go(f"{address}?wire=1")
                (wire,) = tab.ask(PANE)
                assert json.loads(wire) == json.loads(requested(dialog, call).data)


def _rows(tab: Tab) -> Iterator[tuple[str, list[str]]]:
    """Walk the rows of a call by keyboard, and yield the words of each and the texts beside it."""
    tab.tab_to("#blocks")
    tab.press("Home")
    for _ in range(tab.ask("document.querySelectorAll('#blocks .row').length")):
        tab.settle()
        yield tab.text("#blocks [aria-selected=true]"), [*map(_squeezed, tab.ask(PANE))]
        tab.press("ArrowDown")


def _squeezed(text: str) -> str:
    return "".join(text.split())
