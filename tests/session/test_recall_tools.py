"""The recall tools of a program's own loop over a dialog: the same as those of `fit` and of agents."""

import json
import re
from typing import Any

import pytest

from palaver import Session, fit
from palaver.errors import InvalidInput, NotFound
from palaver.store import MemoryStore

MODEL = "gpt-5"
PAGE = "\n".join(f"line {number}: disk {number % 7} is full" for number in range(1_000))
LIST: list[dict[str, Any]] = [
    {"role": "user", "content": "What broke?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "tail", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": PAGE},
    {"role": "assistant", "content": "A disk is full."},
    {"role": "user", "content": "Which disk was it in line 500?"},
]  # fmt: skip
TAIL = {"type": "function", "function": {"name": "tail", "description": "Read.", "parameters": {"type": "object"}}}


def names(tools: list[dict[str, Any]]) -> list[str]:
    """Return the names of tools as OpenAI's interface writes them."""
    return [tool["function"]["name"] for tool in tools]


def model(request: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping for the provider's SDK
    """Recall what a note names, as its words ask for; then answer with what came."""
    *_, last = request["messages"]
    if last["role"] == "tool":
        return {"role": "assistant", "content": str("line 500: disk 3 is full" in last["content"])}
    assert "recall" in names(request["tools"])
    (handle,) = set(re.findall(r"recall (?:with )?([0-9a-f]{12}:[0-9:]+)", json.dumps(request["messages"])))
    function = {"name": "recall", "arguments": json.dumps({"handle": handle, "limit": 40_000})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "r1", "type": "function", "function": function}],
    }


def test_recall_of_an_unknown_span_says_so() -> None:
    """A span of no dialog, or after the end, is answered as a single handle is; a span that ends after the end has what there is."""
    dialog = Session.create().root
    dialog.append(LIST[:1])
    for handle in ("0123456789ab:0", "0123456789ab:0-3", f"{dialog.dialog_id[:12]}:7-9"):
        answer = dialog.call_tool("recall", {"handle": handle})
        assert "nothing there" not in answer, handle
        assert handle.partition("-")[0] in answer
    assert "What broke?" in dialog.call_tool("recall", {"handle": f"{dialog.dialog_id[:12]}:0-99"})


def test_recall_survives_the_way_from_fit_to_a_dialog() -> None:
    """A list that `fit` shortens, then a dialog with the same list: both offer the same tools, and the model gets the original."""
    fitted = fit(LIST, budget=3_000, model=MODEL, tools=[TAIL])
    dialog = Session.create().root
    dialog.append(LIST)
    request = dialog.request("openai", MODEL, tools=[TAIL], recall=True, budget=3_000)
    assert "line 500" not in json.dumps(request["messages"][:-1])
    assert names(request["tools"]) == ["tail", *names(fitted.tools)] == ["tail", "recall", "search_history"]
    answer = dialog.append(model(request))
    while calls := answer.tool_calls():
        for call in calls:
            dialog.append({"role": "tool", "tool_call_id": call.id, "content": dialog.call_tool(call.name, call.args)})
        request = dialog.request("openai", MODEL, recall=True, budget=40_000)
        answer = dialog.append(model(request))
    assert PAGE in dialog.messages[-2].text_content()
    assert answer.content == "True"
    kinds = [header.kind for header in dialog.store.headers(dialog.dialog_id)]
    assert kinds.count("toolset") == 1, "tools are recorded when they change"
    assert "(tool)" in dialog.call_tool("search_history", {"query": "line 500"})


def test_recall_tools_say_what_is_wrong() -> None:
    """Arguments that are no object are told to the model, in the same words as by `fit`; a call of another tool is the program's to answer."""
    fitted = fit(LIST, budget=3_000, model=MODEL)
    dialog = Session.create().root
    for name, args in (("recall", "{"), ("search_history", "[]")):
        assert fitted.call_tool(name, args) == dialog.call_tool(name, args) != ""
    for holder in (fitted, dialog):
        with pytest.raises(NotFound, match="search_history"):
            holder.call_tool("tail", {})


def test_recall_declares_no_name_twice() -> None:
    """A tool of the caller's with such a name keeps it; an earlier view has the tools of its time."""
    dialog = Session.create().root
    dialog.append({"role": "user", "content": "Hi"})
    own = {"type": "function", "function": {"name": "recall", "description": "Mine.", "parameters": {"type": "object"}}}
    request = dialog.request("openai", MODEL, tools=[own], recall=True)
    assert names(request["tools"]) == ["recall", "search_history"]
    assert request["tools"][0]["function"]["description"] == "Mine."
    with pytest.raises(InvalidInput, match="earlier view"):
        dialog.request("openai", MODEL, recall=True, at=0)


def test_recall_tools_are_left_out_when_refused() -> None:
    """They are the dialog's from the request on that declares them until a request refuses them; a tool of the caller's of that name stays."""
    dialog = Session.create().root
    dialog.append({"role": "user", "content": "Hi"})
    own = {"type": "function", "function": {"name": "recall", "description": "Mine.", "parameters": {"type": "object"}}}

    def offered(**words: Any) -> list[str]:  # noqa: ANN401 - what a request takes
        return names(dialog.request("openai", MODEL, **words).get("tools", []))

    assert offered(recall=False) == []
    assert offered(tools=[TAIL], recall=True) == offered() == ["tail", "recall", "search_history"]
    assert offered(recall=False) == offered() == ["tail"]
    assert offered(tools=[own], recall=True) == ["recall", "search_history"]
    assert offered(recall=False) == offered(recall=None) == ["recall"]
    with pytest.raises(InvalidInput, match="earlier view"):
        dialog.request("openai", MODEL, recall=False, at=0)


def test_a_span_is_recalled_around_what_was_erased() -> None:
    """Law 9: a record lists spans. What was erased of one is said in its place, and the rest is quoted; its handle alone is an error that says so."""
    session = Session.create(MemoryStore(), "spans")
    for number in range(4):
        session.root.put_text(f"message {number}")
    session.erase(entries=[session.root.messages.handle(1)])
    start = session.root.messages.handle(0)
    text = session.root.call_tool("recall", {"handle": f"{start}-{start.seq + 3}"})
    assert [number for number in range(4) if f"message {number}" in text] == [0, 2, 3]
    assert f"[{start.dialog[:12]}:{start.seq + 1}]" in text
    assert "was erased" in text
    assert "was erased" in session.root.call_tool("recall", {"handle": f"{session.root.messages.handle(1)}"})
