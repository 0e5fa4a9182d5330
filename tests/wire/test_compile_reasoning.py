"""What models thought goes back to the model that thought it, unchanged, or not at all."""

import pytest

from palaver.log import BlockEdit, ContextEdit, Place
from palaver.messages import (
    Content,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    thaw,
)
from palaver.testing.logs import Log, model, result, user
from palaver.view import Plan, Reason, Rewrite, apply, fold
from palaver.wire import How
from tests.wire.scenes import BASH, MODELS, Scene, at, call

NAMES = tuple(MODELS)
SIGNED = ThinkingContent(content="I should look.", signature="c2lnbmVk", provider="anthropic")
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "gAAAA",
    "status": "completed",
    "turn_id": "x",
}
ENCRYPTED = ThinkingContent(provider="openai", artefact=REASONING)
CLAUDE = ("anthropic", "claude-opus-4-6")
CODEX = ("openai", "gpt-5.2")
GEMINI = ("google", "gemini-3-pro")


def test_a34_r241_the_signature_is_present_and_thinking_stands_before_the_call() -> None:
    """Anthropic gets its thinking back whole, before the call it led to; others do not get it, and the report says so."""
    scene = (
        Scene(tools=[BASH])
        .user("list it")
        .model_says(SIGNED, "Looking.", call(command="ls"), results=["a.py"], by=CLAUDE)
    )
    said = scene.request("anthropic").body["messages"][1]["content"]
    assert thaw(said[0]) == {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
    assert [block["type"] for block in said] == ["thinking", "text", "tool_use"]
    for name in NAMES:
        if name != "anthropic":
            assert [change.how for change in scene.request(name).report.about(at(1, 0))] == [How.DROPPED]


def test_thinking_goes_back_to_its_family_of_models_only() -> None:
    """A dated name and a seller's prefix are the same model; another version is another."""
    scene = Scene().user("go").model_says(SIGNED, "Done.", by=("anthropic", "claude-opus-4-6-20260101")).user("and?")
    for name, kept in (
        ("claude-opus-4-6", True),
        ("us.anthropic.claude-opus-4-6-v1:0", True),
        ("claude-opus-4-5", False),
    ):
        assert ("c2lnbmVk" in scene.request("anthropic", model=name).data.decode()) is kept


def test_gemini_gets_its_signatures_back_and_a_dummy_for_foreign_calls() -> None:
    """A call that Gemini made keeps its signature; one that another model made gets the placeholder that Google names."""
    own = ToolCallContent(id="a", name="bash", args={}, artefact={"thoughtSignature": "AAAA"})
    scene = (
        Scene(tools=[BASH])
        .user("go")
        .model_says(own, results=["x"], by=GEMINI)
        .model_says(call("b"), results=["y"], by=CODEX)
    )
    parts = [
        part
        for content in scene.request("gemini").body["contents"]
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert [part["thoughtSignature"] for part in parts] == ["AAAA", "skip_thought_signature_validator"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([call("a"), SIGNED, "Done."], "it stands after a tool call of its turn"),
        (["Well.", SIGNED], "its turn breaks off after it"),
        ([SIGNED, ThinkingContent(content="more", provider="anthropic"), "Done."], "not signed"),
        ([SIGNED, ThinkingContent(provider="openai", artefact=REASONING), "Done."], "another provider's"),
    ],
)
def test_thinking_of_a_turn_goes_back_whole_or_not_at_all(said: list[Content | str], why: str) -> None:
    """Where one block of a turn's thinking cannot go back, none does, and each is reported."""
    scene = Scene(tools=[BASH]).user("go").model_says(*said, results=["x"], by=CLAUDE).user("and?")
    request = scene.request("anthropic")
    assert "c2lnbmVk" not in request.data.decode()
    dropped = [change for change in request.report if change.what == "thinking"]
    assert len(dropped) == sum(isinstance(each, ThinkingContent) for each in said)
    assert {change.why for change in dropped} == {why}


def test_reasoning_items_go_out_once_and_before_what_they_led_to() -> None:
    """An item that two turns hold goes with the first; two items in a row, or one without a whole record, stay here."""
    other = ThinkingContent(provider="openai", artefact=REASONING | {"id": "rs_2"})
    bare = ThinkingContent(provider="openai", artefact={"type": "reasoning", "id": "rs_3", "summary": []})
    scene = Scene().user("go").model_says(ENCRYPTED, "one", by=CODEX).model_says(ENCRYPTED, "two", by=CODEX)
    scene.model_says(other, other, "three", by=CODEX).model_says(bare, "four", by=CODEX).user("and?")
    request = scene.request("openai-responses")
    assert [item["id"] for item in request.body["input"] if item["type"] == "reasoning"] == ["rs_1"]
    assert [change.handle for change in request.report] == [at(2), at(3, 0), at(3, 1), at(4)]


def test_a_signature_on_a_text_of_geminis_stays_on_it() -> None:
    """A text that carries a thought signature goes back with it to its model, without it to another, which the report says."""
    signed = TextContent.from_dict({"content": "Done.", "thoughtSignature": "AAAA"})
    scene = Scene().user("go").model_says(signed, by=GEMINI).user("and?")
    assert scene.request("gemini").body["contents"][1]["parts"][0]["thoughtSignature"] == "AAAA"
    other = scene.request("gemini", model="gemini-3-flash")
    assert "thoughtSignature" not in other.body["contents"][1]["parts"][0]
    assert [change.what for change in other.report] == ["thought signature"]


def test_d18_a_kept_tail_with_signed_reasoning() -> None:
    """After an edit, thinking signed before it is wholly left out and that said after it wholly kept, byte for byte, in every request."""
    scene = Scene(tools=[BASH]).derived("what happened before", "summary")
    old: list[Content | str] = [SIGNED, "Looking.", call("a", command="ls")]
    new: list[Content | str] = [
        ThinkingContent(content="", signature="bmV3", provider="anthropic"),
        ThinkingContent(redacted="b3BhcXVl", provider="anthropic"),
        call("b"),
    ]
    scene.model_says(*old, results=["a.py"], stale=True, by=CLAUDE).model_says(*new, results=["b.py"], by=CLAUDE)
    for _ in range(2):
        request = scene.request("anthropic")
        assert "c2lnbmVk" not in request.data.decode()
        kept = [
            block for message in request.body["messages"] for block in message["content"] if "thinking" in block["type"]
        ]
        assert thaw(kept) == [
            {"type": "thinking", "thinking": "", "signature": "bmV3"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
        ]
        scene.user("and?")


def test_d18_the_view_knows_what_was_edited_under_it() -> None:
    """A shortened result outdates what was said after it, not the words that called for it: by a plan, and by an edit in the log."""
    log = Log()
    log.put(user("go"), model("one", "a"), result("a", "long " * 50), model("two", "b"), result("b"), user("more"))
    view = fold(log.store, log.dialog)
    target = view.exchanges[1].turns[1].blocks[0].origin
    assert target is not None
    edited = apply(view, Plan(policy="p", rewrites=(Rewrite(target=target, text="short", reason=Reason.OFFLOADED),)))
    assert [each.stale for each in edited.exchanges] == [False, False, True, True]
    place = Place(dialog=target.dialog, seq=target.seq, block=target.block)
    log.put(ContextEdit(base=5, edits=(BlockEdit(target=place, text="short", reason="offloaded"),)), model("three"))
    assert [each.stale for each in fold(log.store, log.dialog).exchanges] == [False, False, True, True, False]


def test_thinking_is_switched_off_for_a_turn_that_did_not_begin_with_it() -> None:
    """Results go back in a turn that another model began: the thinking parameter is dropped and reported, and comes back next turn."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    scene = Scene(tools=[BASH]).user("go").model_says(call("a"), results=["x"], by=CODEX)
    inside = scene.request("anthropic", parameters=thinking)
    assert "thinking" not in inside.body
    assert [change.what for change in inside.report] == ["parameter"]
    after = scene.model_says("Done.", by=CODEX).user("next").request("anthropic", parameters=thinking)
    assert after.body["thinking"]["type"] == "enabled"
    assert after.body["max_tokens"] > 2048
