"""The answers: what the page counts is what the library and the command line count."""

from __future__ import annotations

from typing import Any

from palaver import MemoryStore, Session, SqliteStore
from palaver.explorer.api import Explored
from palaver.explorer.page import answered
from palaver.log import MessageEntry
from palaver.messages import AssistantMessage, UserMessage
from palaver.session import Dialog, searchable
from tests.browsing.test_seen import talk
from tests.cli.commands import Palaver
from tests.explorer.running import story


def asked(dialog: Dialog, path: str) -> Any:  # noqa: ANN401 - JSON values
    """Return the answer to a GET as the page reads it."""
    return answered(Explored(store=dialog.store, url="", name="test"), path)


def test_lists_count_what_the_library_counts() -> None:
    """Entries, first words, marks, calls, windows and branches of a session add up."""
    dialog = talk(recorded=True)
    base = f"/api/dialogs/{dialog.dialog_id}"
    head, *parts = asked(dialog, f"{base}/entries")
    rows = [row for part in parts for row in part]
    assert [row["index"] for row in rows] == list(range(head["total"])) == list(range(len(rows)))
    words = asked(dialog, f"{base}/labels?start=0&stop=200")
    assert [one["label"] for one, row in zip(words, rows, strict=True) if row["role"] == "user"][-1] == "And now?"
    marks = asked(dialog, f"{base}/marks")
    assert [rows[index]["role"] for index in marks["prompts"]] == ["user", "user"]
    windows = asked(dialog, f"{base}/composition")
    calls = asked(dialog, f"{base}/calls")
    assert [row["call"] for row in windows["calls"]] == [row["call"] for row in calls] == [1, 2]
    assert all(sum(row["tokens"].values()) in range(5, 10) for row in windows["calls"]), (
        "7 as reported, rounded by part"
    )
    (last,) = asked(dialog, f"{base}/seen?handle={rows[-1]['handle']}")["calls"] or [None]
    assert last is None, "the answer to the last call was in no call's view"
    for number in (1, 2):
        call = asked(dialog, f"{base}/calls/{number}")
        assert call["labels"] == asked(dialog, f"{base}/calls/{number}/labels?start=0&stop=100")
        assert len(call["labels"]) == len(call["items"])
    session = asked(dialog, f"/api/sessions/{dialog.session_id}")
    assert [(one["dialog"], one["main"]) for one in session["dialogs"]] == [(dialog.dialog_id, True)]
    assert asked(dialog, f"/api/sessions/{dialog.session_id}/whole") == {"damaged": []}
    branch = dialog.fork()
    places = [asked(dialog, f"/api/dialogs/{each.dialog_id}/marks")["branches"] for each in (dialog, branch)]
    assert places == [[len(rows) - 1]] * 2, "both sides leave each other"
    assert [row["branches"] for row in asked(dialog, "/api/sessions")["rows"]] == [2]


def test_what_stays_is_counted_once_after_a_compaction() -> None:
    """Words of the system before and after one; and a window is never more than what is in it."""
    dialog = Session.create(MemoryStore(), "talk").root
    dialog.put_text("Be brief. " * 100, role="system")
    for number in range(4):
        asked_for = UserMessage(content="word " * 900, timestamp=float(number))
        dialog.record(MessageEntry(message=asked_for, at=float(number)))  # times of one length: bytes are counted
        dialog.calls.record(dialog.request("anthropic", "claude-opus-4-6"))
        dialog.append(AssistantMessage(content="Done."))
        if number:
            dialog.compaction.commit(dialog.compaction.compose("fold", 1_500))
    rows = asked(dialog, f"/api/dialogs/{dialog.dialog_id}/composition")["calls"]
    assert len({row["tokens"]["system"] for row in rows}) == 1
    assert rows[0]["tokens"]["system"] > 100
    assert [row["compacted"] for row in rows] == [False, False, True, True]
    assert rows[-1]["tokens"]["human"] <= 2 * rows[0]["tokens"]["human"]


def test_answers_are_what_commands_print(palaver: Palaver) -> None:
    """Sessions, calls, a comparison and the view of a call, as `--json` prints them."""
    with SqliteStore(palaver.store) as store:
        dialog = story(store)
        session, base = asked(dialog, f"/api/sessions/{dialog.session_id}"), f"/api/dialogs/{dialog.dialog_id}"
        (row,) = palaver("sessions", "--json").rows()
        assert row.items() <= session["row"].items()
        calls = asked(dialog, f"{base}/calls")
        printed = palaver("calls", dialog.dialog_id, "--json").rows()
        assert [*map(_unpriced, printed)] == [*map(_unpriced, calls)]
        compared = palaver("calls", dialog.dialog_id, 1, 2, "--json").row()
        ours = asked(dialog, f"{base}/compare?a=1&b=2")
        assert [len(ours[name]) for name in ("entered", "left", "changed")] == [
            len(compared[name]) for name in ("entered", "left", "changed")
        ]
        seen = palaver("view", dialog.dialog_id, "--call", 2, "--json").row()
        items = asked(dialog, f"{base}/calls/2")["items"]
        assert asked(dialog, f"{base}/calls/2/request") == seen["request"]
        assert {one["place"] for one in items if one["what"] == "omission"} <= {one["place"] for one in seen["omitted"]}


def _unpriced(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"dollars", "estimated"}}


def test_search_filters_and_marks() -> None:
    """The words of the address filter the hits as the command line's options do, and each hit says where its words are."""
    store = MemoryStore()
    dialog = Session.create(store, "talk", workdir="/srv/lamps").root
    dialog.append([UserMessage("Is the lamp on?"), AssistantMessage("The lamp is off.", model="glm-5.2")])
    store.index(searchable)
    for words, roles in (
        ("", ["assistant", "user"]),
        ("&role=user", ["user"]),
        ("&model=glm", ["assistant"]),
        ("&folder=lamps&since=2020-01-01&role=user", ["user"]),
        ("&until=2020-01-01", []),
        ("&tool=codex", []),
        ("&agent=nobody", []),
    ):
        answer = asked(dialog, f"/api/search?q=lamp{words}")
        assert sorted(hit["role"] for hit in answer["hits"]) == roles, words
        assert all(hit["snippet"][start:stop] == "lamp" for hit in answer["hits"] for start, stop in hit["marks"])
