"""Trajectories in ATIF: steps, and compactions from which the context of later steps can be rebuilt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palaver import Session
from palaver.log import ToolSpec
from palaver.log.entries import Toolset
from palaver.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
)
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts import export
from palaver.view import View, fold
from tests.formats.reading import imported, shown
from tests.formats.reading import written as written_file
from tests.formats.samples import GOLDEN
from tests.transcripts.test_exporting import PIXEL


def written(log: Log, *, whole: bool = True) -> dict[str, Any]:
    """Return a dialog as a trajectory."""
    log.store.update_session(log.session, root=log.dialog)
    body: dict[str, Any] = json.loads(b"".join(export(log.store, log.session, "atif", whole=whole).pieces))
    assert [step["step_id"] for step in body["steps"]] == list(range(1, len(body["steps"]) + 1))
    return body


def words(step: dict[str, Any]) -> str:
    """Return what a step says and its results."""
    said = [step["message"], *(result["content"] for result in step.get("observation", {}).get("results", ()))]
    return "|".join(text for text in said if text)


def context(steps: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the model saw after the last step, by the rule of section VII: the content of the newest boundary, and the steps after it."""
    bounds = [index for index, step in enumerate(steps) if "context_management" in step.get("extra", {})]
    if not bounds:
        return [words(step) for step in steps]
    at = bounds[-1]
    before = [result["content"] for result in steps[at]["observation"]["results"]]
    return [*before, *(words(step) for step in steps[at + 1 :])]


def test_answer_is_a_step_with_its_calls_and_results() -> None:
    """Each answer has its model, thinking, calls, results and tokens; the results name the calls; totals are sums of the steps."""
    log = Log()
    usage = Usage(input_tokens=100, output_tokens=7, cached_tokens=60)
    call = ToolCallContent(id="a", name="shell", args={"cmd": "ls"})
    said = (ThinkingContent(content="Hm."), TextContent("I look."), call)
    log.put(system("Be brief."), Toolset(tools=(ToolSpec(name="shell"),)), user("go"))
    log.put(AssistantMessage(contents=said, model="gpt-5", usage=usage), result("a"), model("Done.", "b"))
    body = written(log)
    first, second, third, fourth = body["steps"]
    assert (first["source"], first["message"]) == ("system", "Be brief.")
    assert (second["source"], second["message"]) == ("user", "go")
    assert (third["source"], third["message"], third["reasoning_content"]) == ("agent", "I look.", "Hm.")
    assert third["tool_calls"] == [{"tool_call_id": "a", "function_name": "shell", "arguments": {"cmd": "ls"}}]
    assert third["observation"]["results"] == [{"source_call_id": "a", "content": "done"}]
    assert third["metrics"]["prompt_tokens"] == body["final_metrics"]["total_prompt_tokens"] == 100
    assert "observation" not in fourth, "no result is recorded"
    assert body["agent"]["tool_definitions"][0]["function"]["name"] == "shell"
    assert body["schema_version"] == "ATIF-v1.7"


def test_images_are_parts() -> None:
    """An image is a part of its message, its bytes in a data: address."""
    log = Log()
    log.put(UserMessage.with_images("look", [PIXEL]))
    (step,) = written(log)["steps"]
    source = {"media_type": "image/png", "path": f"data:image/png;base64,{PIXEL}"}
    assert step["message"] == [{"type": "text", "text": "look"}, {"type": "image", "source": source}]


def test_context_after_a_compaction_can_be_rebuilt() -> None:
    """After each compaction, the content of the boundary and the steps after it are what the model saw, and the whole log before it stays.

    Copies name the steps that they repeat (meridianlabs-ai/inspect_scout#486).
    """
    session = Session.create()
    dialog = session.root
    dialog.append({"role": "system", "content": "Be brief."})
    for number in range(40):
        dialog.append(
            [user(f"go {number} " + "word " * 40), model("", f"c{number}"), result(f"c{number}"), model("ok")]
        )
        if number in {20, 35}:
            assert dialog.compaction.preview(budget=1_500, model="gpt-5").approve()
    done = export(session.store, session.session_id, "atif")
    steps = json.loads(b"".join(done.pieces))["steps"]
    bounds = [index for index, step in enumerate(steps) if "context_management" in step.get("extra", {})]
    assert len(bounds) == 2
    saw = dialog.view()
    assert context(steps) == _flat(saw)
    copies = [step for step in steps if step.get("is_copied_context") and step["source"] == "agent"]
    assert copies
    for copy in copies:
        own = steps[copy["extra"]["palaver"]["copied_from"] - 1]
        assert (own["message"], own.get("tool_calls")) == (copy["message"], copy.get("tool_calls"))
    fresh = [step for step in steps if not step.get("is_copied_context") and step["source"] == "user"]
    assert [step["message"].split()[1] for step in fresh] == [str(number) for number in range(40)]


def _flat(view: View) -> list[str]:
    """Return the texts that a view shows, derived ones first, as the boundary has them."""
    texts = [
        "|".join(words_of_block for words_of_block in map(_words, exchange.blocks()) if words_of_block)
        for exchange in view.exchanges
    ]
    first = next(index for index, exchange in enumerate(view.exchanges) if not exchange.derived)
    return [*texts[:first], *(_words(block) for block in view.system), *texts[first:]]


def _words(block: Any) -> str:  # noqa: ANN401 - a block
    content = block.content
    return content.text() if content.type == "tool_result" else getattr(content, "content", "")


def test_exported_trajectory_comes_back(tmp_path: Path) -> None:
    """What palaver exports imports as the same session: each message once, images and failures, and after each compaction what the model saw."""
    session = Session.create()
    dialog = session.root
    dialog.append([{"role": "system", "content": "Be brief."}, UserMessage.with_images("look", [PIXEL])])
    failed = ToolMessage(contents=(ToolResultContent(id="f", content="no", is_error=True),))
    dialog.append([model("", "f"), failed, UserMessage("Hm.", speaker="harness")])
    for number in range(40):
        dialog.append(
            [
                user(f"go {number} " + "word " * 40),
                model("", f"c{number}"),
                result(f"c{number}", "row " * 300),
                model("ok"),
            ]
        )
        if number in {20, 35}:
            assert dialog.compaction.preview(budget=6_000, model="gpt-5").approve()
    done = export(session.store, session.session_id, "atif")
    store = MemoryStore()
    (one,) = imported(store, written_file(tmp_path, b"".join(done.pieces)))
    assert (one.dialogs, one.losses, done.report.lost()) == (1, (), ())
    assert one.main is not None
    views = [
        (fold(store, one.main, whole=whole), fold(session.store, dialog.dialog_id, whole=whole))
        for whole in (True, False)
    ]
    assert all(shown(got) == shown(had) for got, had in views)
    failed_one = views[0][0].exchanges[1].turns[1].blocks[0].content
    assert isinstance(failed_one, ToolResultContent)
    assert failed_one.is_error
    assert views[0][0].exchanges[2].speaker == "harness"


def test_subagents_are_trajectories_in_it(tmp_path: Path) -> None:
    """The dialogs of sub-agents, and those in them, are written and come back with their owners."""
    first, second = MemoryStore(), MemoryStore()
    (one,) = imported(first, GOLDEN / "atif.file")
    done = export(first, one.session_id, "atif")
    (other,) = imported(second, written_file(tmp_path, b"".join(done.pieces)))
    assert not [change for change in done.report if change.what == "other dialog"]
    stores = (first, one.session_id), (second, other.session_id)
    inner = [
        [(node.owner, shown(fold(store, node.dialog_id))) for node in store.nodes(session)][1:]
        for store, session in stores
    ]
    assert inner[0] == inner[1] == [("asker", ["user: Which tree?", "assistant: An oak."]), ("inner", ["user: Why?"])]


def test_current_view_begins_with_the_boundary() -> None:
    """Without the whole log, a trajectory begins with the record, as the content of a boundary."""
    session = Session.create()
    dialog = session.root
    for number in range(40):
        dialog.append([user(f"go {number} " + "word " * 40), model("ok")])
    assert dialog.compaction.preview(budget=1_500, model="gpt-5").approve()
    done = export(session.store, session.session_id, "atif", whole=False)
    first, *rest = json.loads(b"".join(done.pieces))["steps"]
    assert first["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert first["observation"]["results"][0]["content"] == _flat(fold(session.store, dialog.dialog_id))[0]
    assert not any(step.get("is_copied_context") for step in rest)
