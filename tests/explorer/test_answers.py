"""The answers: what the page shows of a call equals what the library says that the model saw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from palaver.browsing.calls import call_at, calls, saw
from palaver.browsing.differences import requested
from palaver.explorer.answers import ROUTES
from palaver.explorer.api import Raw, Source
from palaver.messages import words_of
from palaver.session import Dialog
from tests.browsing.test_seen import talk


def asked(dialog: Dialog, path: str, **words: str) -> Any:  # noqa: ANN401 - JSON values
    """Return the answer to a GET as the page reads it."""
    source, parts = Source(store=dialog.store, url="", name="test"), path.split("/")[1:]
    for route in ROUTES:
        pattern = route.pattern.split("/")[1:]
        fits = [one[1:-1] if one.startswith("{") else one == part for one, part in zip(pattern, parts, strict=False)]
        if len(pattern) == len(parts) and all(fits):
            given = {name: part for name, part in zip(fits, parts, strict=True) if isinstance(name, str)}
            answer = route.function(source, **given, **words)
            if isinstance(answer, Raw):
                return answer
            return json.loads(json.dumps(list(answer) if isinstance(answer, Iterator) else answer))
    raise AssertionError(path)


def test_a_call_shows_every_text_of_its_view_in_order() -> None:
    """Originals by their handles, other texts as they are; omissions stand between them, and lead to originals."""
    for recorded in (True, False):
        dialog = talk(recorded=recorded)
        for number in (1, 2):
            path = f"/api/dialogs/{dialog.dialog_id}/calls/{number}"
            found, call = asked(dialog, path), call_at(calls(dialog), number)
            assert (found["recorded"], found["proved"]) == (recorded, True if recorded else None)
            texts = [text for item in found["items"] if item["what"] != "omission" for text in _texts(dialog, item)]
            assert texts == [words_of(block.content) for block in _blocks(dialog, number)]
            for item in found["items"]:
                if item["what"] == "omission":
                    assert asked(dialog, f"/api/entries/{item['handle']}")["found"]
            words = asked(dialog, f"{path}/labels", start="0", stop="200")
            assert len(words) == len(found["items"])
            assert words[-1]["label"] == " ".join(texts[-1].split())[:200]
            assert asked(dialog, f"{path}/request").data == requested(dialog, call).data


def _blocks(dialog: Dialog, number: int) -> list[Any]:
    view = saw(dialog, call_at(calls(dialog), number))
    return [*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())]


def _texts(dialog: Dialog, item: dict[str, Any]) -> list[str]:
    """Return the texts of a row as the page shows them."""
    if "text" in item:
        return [item["text"]]
    changed = {change["handle"]: change["text"] for change in item.get("changes", ())}
    original = asked(dialog, f"/api/entries/{item['handle']}")["found"]
    blocks = original["message"]["contents"] if "message" in original else [original]
    return [changed.get(f"{item['handle']}:{index}", block["content"]) for index, block in enumerate(blocks)]


def test_lists_count_what_the_library_counts() -> None:
    """Entries, first words, marks, calls, windows and branches of a session add up."""
    dialog = talk(recorded=True)
    base = f"/api/dialogs/{dialog.dialog_id}"
    head, *parts = asked(dialog, f"{base}/entries")
    rows = [row for part in parts for row in part]
    assert [row["index"] for row in rows] == list(range(head["total"])) == list(range(len(rows)))
    words = asked(dialog, f"{base}/labels", start="0", stop="200")
    assert [one["label"] for one, row in zip(words, rows, strict=True) if row["role"] == "user"][-1] == "And now?"
    marks = asked(dialog, f"{base}/marks")
    assert [rows[index]["role"] for index in marks["prompts"]] == ["user", "user"]
    windows = asked(dialog, f"{base}/composition")
    calls = asked(dialog, f"{base}/calls")
    assert [row["call"] for row in windows["calls"]] == [row["call"] for row in calls] == [1, 2]
    assert all(sum(row["tokens"].values()) in range(5, 10) for row in windows["calls"]), (
        "7 as reported, rounded by part"
    )
    (last,) = asked(dialog, f"{base}/seen", handle=rows[-1]["handle"])["calls"] or [None]
    assert last is None, "the answer to the last call was in no call's view"
    session = asked(dialog, f"/api/sessions/{dialog.session_id}")
    assert [(one["dialog"], one["main"]) for one in session["dialogs"]] == [(dialog.dialog_id, True)]
    assert asked(dialog, f"/api/sessions/{dialog.session_id}/whole") == {"damaged": []}
    branch = dialog.fork()
    places = [asked(dialog, f"/api/dialogs/{each.dialog_id}/marks")["branches"] for each in (dialog, branch)]
    assert places == [[len(rows) - 1]] * 2, "both sides leave each other"
    assert [row["branches"] for row in asked(dialog, "/api/sessions")["rows"]] == [2]
