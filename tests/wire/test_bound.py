"""Signed thinking goes back to models that check its prefix only while that prefix is the one it was signed for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from palaver.context.fit import fit
from palaver.log import Instructions, MessageEntry, Section, Source, Toolset, ToolSpec
from palaver.messages import AssistantMessage, TextContent, ThinkingContent
from palaver.providers import profile
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.wire import Request
from tests.context.pencil import Manager
from tests.wire.scenes import BASH

pytestmark = pytest.mark.filterwarnings("ignore::palaver.tokens.names.UnknownModelWarning")
NEWEST, UNKNOWN, OLDER = "claude-fable-5-2", "claude-saga-9", "claude-sonnet-4-5"
LOOK = ToolSpec(name="look", description="Look.")


def thoughts(request: Any) -> int:  # noqa: ANN401 - a request or a list of messages
    """Count the blocks of thinking in a request."""
    messages = request.body["messages"] if isinstance(request, Request) else request
    parts = [part for each in messages if not isinstance(each["content"], str) for part in each["content"]]
    return sum(part["type"] == "thinking" for part in parts)


def answer(dialog: Dialog, model: str, number: int = 0) -> None:
    """Append an answer with signed thinking."""
    thought = ThinkingContent(content="hm", signature="c2ln", provider="anthropic", model=model)
    said = (thought, TextContent(content=f"answer {number} " + "word " * 100))
    dialog.append(AssistantMessage(contents=said, provider="anthropic", model=model))


def begun(model: str, turns: int = 3) -> Dialog:
    """Return a dialog in which each answer was thought about, with instructions and tools."""
    dialog = Session.create(MemoryStore(), "s").root
    dialog.record(Instructions(sections=(Section(name="role", text="Be brief."),)), Toolset(tools=(BASH, LOOK)))
    for number in range(turns):
        dialog.put_text(f"question {number}")
        dialog.request("anthropic", model)
        answer(dialog, model, number)
    dialog.put_text("and?")
    return dialog


def asked(dialog: Dialog, model: str, **fields: Any) -> Request:  # noqa: ANN401 - of a call
    """Compile the next request."""
    return dialog.request("anthropic", model, **fields)


def declared(dialog: Dialog, model: str, *tools: ToolSpec) -> Request:
    """Compile the next request with other tools."""
    dialog.record(Toolset(tools=tools))
    return asked(dialog, model)


def undone(dialog: Dialog, model: str) -> Dialog:
    """Answer once under a compaction, and undo it."""
    dialog.compaction.preview("fold", budget=900, model=OLDER).approve()
    answer(dialog, model)
    dialog.compaction.undo()
    dialog.put_text("and now?")
    return dialog


TOOLS: dict[str, Callable[[Dialog, str], Request]] = {
    "a tool removed": lambda dialog, model: declared(dialog, model, BASH),
    "tools reordered": lambda dialog, model: declared(dialog, model, LOOK, BASH),
}
CHANGES: dict[str, Callable[[Dialog, str], Request]] = {
    "a provider's tool added": lambda dialog, model: asked(dialog, model, provider_tools={"web_search": True}),
    "windowed fork": lambda dialog, model: asked(dialog.fork(last_n=3), model),
    "fork without its beginning": lambda dialog, model: asked(dialog.fork(last_n=3, first_k=0), model),
    "a context manager": lambda dialog, model: asked(
        dialog, model, policy=Manager(lambda dialog: dialog.fork(last_n=3))
    ),
}


def test_unchanged_prefix_keeps_thinking() -> None:
    """While nothing before it changed, all thinking goes back, in full forks too."""
    for model in (NEWEST, UNKNOWN, OLDER):
        dialog, config = (
            begun(model),
            {"type": "adaptive"} if model != OLDER else {"type": "enabled", "budget_tokens": 2048},
        )
        assert thoughts(asked(dialog, model, parameters={"thinking": config})) == 3
        assert thoughts(asked(dialog.fork(), model, parameters={"thinking": config})) == 3


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_changed_prefix_drops_thinking(change: str) -> None:
    """R241: after a change of what comes before it, models that check get none of the older thinking; the report says so."""
    for model in (NEWEST, UNKNOWN):
        request = CHANGES[change](begun(model), model)
        assert thoughts(request) == 0, model
        assert "thinking" in {each.what for each in request.report}, model


@pytest.mark.parametrize("change", sorted(TOOLS))
def test_appended_tools_keep_thinking(change: str) -> None:
    """R241: changed tools are appended where the model takes that; elsewhere the list changes, and thinking leaves."""
    for model in (NEWEST, UNKNOWN):
        dialog = begun(model)
        assert thoughts(TOOLS[change](dialog, model)) == 3
        request = dialog.request(profile("anthropic", model, {"tools_inside": False}), model)
        assert thoughts(request) == 0
        assert "thinking" in {each.what for each in request.report}


def test_older_models_keep_thinking() -> None:
    """A model that does not check what precedes its thinking gets it back after the same changes."""
    for change in ("a tool removed", "tools reordered", "a provider's tool added"):
        assert thoughts({**TOOLS, **CHANGES}[change](begun("claude-opus-4-6"), "claude-opus-4-6")) == 3, change


def test_thinking_after_a_change_goes_back() -> None:
    """What is thought after the change was signed for what is there now; what was left out once stays out."""
    dialog = begun(NEWEST)
    for number in (1, 2):
        assert thoughts(asked(dialog, NEWEST, provider_tools={"web_search": True})) == number - 1
        answer(dialog, NEWEST)
        dialog.put_text("and?")
    assert thoughts(asked(dialog, NEWEST, provider_tools={"web_search": True})) == 2


def test_thinking_comes_back_with_what_it_was_bound_to() -> None:
    """Once tools or a compaction are as they were, what was thought then goes back; what was thought meanwhile does not."""
    dialog = begun(NEWEST)
    asked(dialog, NEWEST, provider_tools={"web_search": True})
    answer(dialog, NEWEST)
    dialog.put_text("and?")
    assert thoughts(asked(dialog, NEWEST)) == 3
    answer(dialog, NEWEST)
    dialog.put_text("and?")
    assert thoughts(asked(dialog, NEWEST)) == 4
    assert thoughts(asked(undone(begun(NEWEST), NEWEST), NEWEST)) == 3


def test_imported_thinking_stays_out() -> None:
    """Another program signed it for its own instructions and tools, which nobody knows here."""
    dialog = Session.create(MemoryStore(), "s").root
    dialog.put_text("go")
    thought = ThinkingContent(content="hm", signature="c2ln", provider="anthropic", model=NEWEST)
    message = AssistantMessage(contents=(thought, TextContent(content="Done.")), provider="anthropic", model=NEWEST)
    dialog.record(MessageEntry(message=message, source=Source(format="claude-code")))
    dialog.put_text("and?")
    request = asked(dialog, NEWEST)
    assert thoughts(request) == 0
    assert "thinking" in {each.what for each in request.report.lost()}


def test_thinking_has_a_safety_net_with_its_header() -> None:
    """Where a model checks and thinks, it is asked to drop what does not fit, under the header that permits the field; not with thinking between tools."""
    dialog = begun(NEWEST)
    net = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    for plain in ({"thinking": {"type": "adaptive"}}, {}):
        request = asked(dialog, NEWEST, parameters=plain)
        assert request.body["thinking"] == net
        assert request["extra_headers"] == {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    for model, parameters in (
        ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
        ("claude-haiku-5-5", {"thinking": {"type": "disabled"}}),
        ("claude-fable-5", {}),
        (OLDER, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ):
        request = asked(dialog, model, parameters=parameters)
        assert "block_binding" not in request.body.get("thinking", {})
        assert not request.headers


def test_what_a_provider_drops_is_recorded_with_the_call() -> None:
    """Thinking that the provider left out by itself is an omission of that call, and what is thought after it does not count on it."""
    dialog = begun(NEWEST)
    asked(dialog, NEWEST)
    dropped = {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    dialog.append(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": NEWEST,
            "content": [thought, {"type": "text", "text": "so"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "input_transformations": [dropped],
        }
    )
    (gone,) = dialog.calls[-1].left_out()
    assert (gone.reason, gone.by) == ("provider", "anthropic: prefix_binding_mismatch")
    assert gone.handle is not None
    assert "hm" in str(dialog.recall(gone.handle))
    dialog.put_text("and?")
    assert thoughts(asked(dialog, NEWEST)) == 2  # the answer, and the one after what was dropped


# --- fit -----------------------------------------------------------------------------------------------------------------


def plain(messages: list[Any]) -> list[Any]:
    """Return a list without its thinking."""
    return [{**each, "content": [part for part in each["content"] if part["type"] != "thinking"]} for each in messages]


def test_fit_in_a_loop_keeps_thinking_that_is_still_bound() -> None:
    """R241: over several cuts of a growing list, thinking stays exactly while what precedes it is what its request had; the rest is listed."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    asked_with: list[list[Any]] = []
    cuts, left = set(), set()
    for number in range(60):
        fitted = fit(messages, model=NEWEST, budget=3_000)
        sent = {
            part["thinking"]: place
            for place, each in enumerate(fitted.messages)
            for part in each["content"]
            if part["type"] == "thinking"
        }
        shown = {
            part["id"]: place
            for place, each in enumerate(fitted.messages)
            for part in each["content"]
            if part["type"] == "tool_use"
        }
        bound = {
            f"hm {made}"
            for made in range(number)
            if (place := shown.get(f"t{made}")) is not None
            and plain(fitted.messages[:place]) == plain(asked_with[made])
        }
        assert set(sent) == bound, number
        gone = [each for each in fitted.omitted if each.reason == "unbound"]
        assert {fitted.recall(each.place).content for each in gone} == {f"hm {name[1:]}" for name in shown} - bound
        assert fitted.tokens <= 3_000
        cuts.add(len(messages) - len(fitted.messages))
        left.add(len(sent))
        asked_with.append(fitted.messages)
        thought = {"type": "thinking", "thinking": f"hm {number}", "signature": "c2ln"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "sh", "input": {"cmd": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}: " + "word " * 100}
        messages += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result]}]
    assert len(cuts) > 3
    assert len(left) > 3


def test_fit_keeps_thinking_for_older_models() -> None:
    """A model that does not check gets the thinking of what is shown."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages: list[Any] = [{"role": "user", "content": "go"}]
    for number in range(60):
        said = {"type": "text", "text": f"{number}: " + "word " * 100}
        messages += [{"role": "assistant", "content": [thought, said]}, {"role": "user", "content": f"ask {number}"}]
    fitted = fit(messages, model=OLDER, budget=3_000)
    assert fitted.omitted
    assert thoughts(fitted.messages) > 0


def test_models_that_check() -> None:
    """Claude from 5.1 on, and names that nobody knows."""
    bound = {NEWEST, UNKNOWN, "claude-opus-5-5", "us.anthropic.claude-haiku-5-5-20261001-v1:0", "claude-mythos-5.1", ""}
    free = {"claude-fable-5", "claude-opus-5-20260301", "claude-opus-4-8", "claude-3-7-sonnet-latest", "claude-2.1"}
    assert {model for model in bound | free if profile("anthropic", model).reasoning.bound} == bound
