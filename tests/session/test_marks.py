"""Quarantine: what a provider refuses is set aside, the session goes on, and nothing is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidInput, NotFound
from palaver.log import BranchSummary, Handle, Instructions, MessageEntry, Place, Quarantine, Section
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.session import Dialog, Session
from palaver.session.refusals import blamed
from palaver.store import MemoryStore
from palaver.testing.logs import Log, model, user
from palaver.testing.strategies import sayings
from palaver.view import Reason, View, apply, checkpoint, fold, held
from palaver.wire import PROFILES, Request, validate
from tests.view.plans import plans

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001"
)
POISON = "poison-in-here"
MODEL = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}


def conversation(dialog: Dialog) -> Iterator[tuple[str, Handle]]:
    """Say something of every kind, and give the handle of each block with its name."""
    (at,) = dialog.record(Instructions(sections=(Section(name="role", text=f"Be brief. {POISON}"),)))
    yield "section", at._replace(block=0)
    said: list[tuple[str, Message]] = [
        ("text", UserMessage.text(f"Look. {POISON}")),
        ("image", UserMessage(contents=(TextContent(content="This one."), ImageContent(images=[PNG])))),
        ("thought call", _call()),
        ("result", ToolMessage.from_result(ToolResultContent(id="c1", name="look", content=f"seen {POISON}"))),
        ("answer", AssistantMessage(content=f"A cat. {POISON}")),
    ]
    places = dialog.record(*(MessageEntry(message=message) for _, message in said))
    blocks = {"image": [("image", 1)], "thought call": [("thought", 0), ("call", 2)]}
    for (name, _), place in zip(said, places, strict=True):
        for kind, block in blocks.get(name, [(name, 0)]):
            yield kind, place._replace(block=block)
    yield "summary", dialog.record(BranchSummary(summary=f"Elsewhere: {POISON}"), beside=True)[0]
    dialog.put_text("Go on.")


def _call() -> Message:
    thought = ThinkingContent(content=f"hm {POISON}", signature=POISON, provider="anthropic", model="claude-sonnet-4-5")
    call = ToolCallContent(id="c1", name="look", args={"at": POISON})
    said = {"role": "assistant", "model": "claude-sonnet-4-5", "provider": "anthropic"}
    return Message.from_dict({**said, "contents": [thought, TextContent(content="I look."), call]})


KINDS = ("section", "text", "image", "thought", "call", "result", "answer", "summary")


def begun() -> tuple[Dialog, dict[str, Handle]]:
    """Return a dialog with a block of every kind, and their handles."""
    dialog = Dialog(owner="a", session_name="s")
    return dialog, dict(conversation(dialog))


def requests(dialog: Dialog) -> dict[str, Request]:
    """Compile for every provider; each request is checked."""
    return {name: dialog.request(name, MODEL[name]) for name in PROFILES}


@pytest.mark.parametrize("kind", KINDS)
def test_quarantine_is_a_placeholder_everywhere(kind: str) -> None:
    """The handle stands in each request, which is valid; the original is recalled by it; lifted, the view is what it was.

    What Anthropic signed after the block stays out of its requests: it was signed for words that were edited meanwhile.
    """
    dialog, places = begun()
    seen = dialog.view()
    before = {name: request.data for name, request in requests(dialog).items()}
    original = dialog.recall(places[kind])
    dialog.marks.quarantine(places[kind], "refused")

    assert dict(dialog.marks.quarantined) == {places[kind]: "refused"}
    for name, request in requests(dialog).items():
        told = request.data.decode()
        assert f"recall {places[kind]}]" in told, name
        assert told.count(POISON) < before[name].decode().count(POISON) or kind in {"image", "thought"}
    assert dialog.recall(places[kind]) == original

    dialog.marks.lift(places[kind])
    assert not dialog.marks.quarantined
    assert (dialog.view().system, dialog.view().exchanges) == (seen.system, seen.exchanges)
    after = {name: request.data for name, request in requests(dialog).items()}
    assert after | {"anthropic": b""} == before | {"anthropic": b""}


def test_a_whole_entry_is_set_aside_with_all_its_blocks() -> None:
    """An entry's handle sets each of its blocks aside; a call of it keeps its name and its result."""
    dialog, places = begun()
    whole = places["call"]._replace(block=None)
    dialog.marks.quarantine(whole)
    body = dialog.request("anthropic", MODEL["anthropic"]).body
    (said,) = [one for one in body["messages"] if "'tool_use'" in str(one)]
    blocks = {block["type"]: block for block in said["content"]}
    assert blocks["tool_use"]["name"] == "look"
    assert POISON not in json.dumps(dialog.request("openai-chat", "gpt-4o").body["messages"][3])
    with pytest.raises(InvalidInput, match="not in quarantine") as refused:
        dialog.marks.lift(places["call"])
    assert str(whole) in refused.value.hint
    dialog.marks.lift(whole)


def test_quarantine_wins_over_a_shortened_form() -> None:
    """A form that a policy showed may hold just what was refused: the placeholder stands in its place, too."""
    dialog, places = begun()
    dialog.put_text("word " * 3_000)
    dialog.put_text("Yes?")
    dialog.compaction.commit(dialog.compaction.compose("palaver", 900))
    dialog.marks.quarantine(places["answer"])
    view = dialog.view()
    shown = {block.origin: block for exchange in view.exchanges for block in exchange.blocks()}
    assert places["answer"] not in shown or shown[places["answer"]].reason is Reason.QUARANTINED


@pytest.mark.parametrize("kind", ["section", "image", "call"])
def test_it_survives_a_compaction(kind: str) -> None:
    """A commit after it, and one before it: the placeholder stands, and the poison does not come back."""
    dialog, places = begun()
    dialog.marks.quarantine(places[kind])
    for number in range(12):
        dialog.put_text(f"question {number} " + "word " * 300)
        dialog.append(AssistantMessage(content="answer " * 200))
    dialog.marks.pin(places[kind]._replace(block=None)) if kind != "section" else None
    dialog.compaction.commit(dialog.compaction.compose("palaver", 3_000))
    told = requests(dialog)["anthropic"].data.decode()
    assert f"recall {places[kind]}]" in told
    assert list(dialog.marks.quarantined) == [places[kind]]


def test_it_holds_in_later_forks() -> None:
    """A fork inherits it; a fork made before shows the block, until the session sets it aside for all."""
    store = MemoryStore()
    session = Session.create(store=store)
    dialog = session.new_dialog("a")
    places = dict(conversation(dialog))
    earlier = dialog.fork()
    dialog.marks.quarantine(places["text"])
    later = dialog.fork()

    assert (places["text"] in later.marks.quarantined, places["text"] in earlier.marks.quarantined) == (True, False)
    made = session.quarantine(places["text"], "refused")
    assert {one.dialog for one in made} == {earlier.dialog_id}
    assert session.quarantine(places["text"]) == ()
    for one in (dialog, earlier.reload(), later):
        assert f"recall {places['text']}]" in one.request("gemini", MODEL["gemini"]).data.decode()
    assert len(session.lift(places["text"])) == 3
    with pytest.raises(InvalidInput):
        session.lift(places["text"])


def test_what_cannot_be_quarantined() -> None:
    """No such entry, no such block, an entry no view shows, and what is not in quarantine: a typed error, and nothing is written."""
    dialog, places = begun()
    label = dialog.marks.label(places["text"], "here")
    length = dialog.store.last(dialog.dialog_id).seq
    for wrong, error in (
        (Handle(dialog.dialog_id, 999, 0), NotFound),
        (places["text"]._replace(block=7), NotFound),
        (label, InvalidInput),
        ("nonsense", InvalidInput),
    ):
        with pytest.raises(error):
            dialog.marks.quarantine(wrong)
    with pytest.raises(InvalidInput):
        dialog.marks.lift(places["text"])
    assert dialog.store.last(dialog.dialog_id).seq == length


@settings(max_examples=60)
@given(data=st.data())
def test_any_quarantine_of_any_log_gives_valid_requests(data: st.DataObject) -> None:
    """Law 1: whatever is set aside and lifted, in any log, also after a checkpoint, every provider's request is valid."""
    log = Log()
    log.put(*data.draw(sayings()))
    for _ in range(data.draw(st.integers(1, 4))):
        places = [block.origin for one in _seen(log).exchanges for block in one.blocks() if block.origin is not None]
        if not places:
            return
        target = data.draw(st.sampled_from(sorted(places)))
        place = Place(dialog=target.dialog, seq=target.seq, block=data.draw(st.sampled_from([target.block, None])))
        log.put(Quarantine(target=place, lifted=data.draw(st.booleans())))
        if data.draw(st.booleans()):
            view = apply(_seen(log), data.draw(plans(_seen(log))))
            spans = held(log.store, log.dialog, view.at)
            log.put(checkpoint(view, spans, policy="p", tokens_before=2, tokens_after=1))
            again = _seen(log)
            assert (again.system, again.exchanges) == (view.system, view.exchanges)
        log.put(user("And?"), model("So."))
    dialog = Session.open(log.session, log.store).dialog(log.dialog)
    for name in PROFILES:
        request = dialog.request(name, MODEL[name], then="Go on.")
        assert not validate(request.body, PROFILES[name], as_history=request.history)


def _seen(log: Log) -> View:
    return fold(log.store, log.dialog)


# --- which block is meant ---------------------------------------------------------------------------------------------------------


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield path, value
    elif hasattr(value, "items"):
        for key, inner in value.items():
            yield from _strings(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{path}[{index}]")


def marked(kind: str, place: Handle) -> Content:
    """Return a block of a kind with its place's mark in it."""
    mark = f"mark-{place.seq}-{place.block}."
    if kind == "text":
        return TextContent(content=mark)
    return ToolCallContent(id=f"c{place.seq}-{place.block}", name="look", args={"m": mark})


@pytest.mark.parametrize("name", PROFILES)
def test_the_block_that_a_refusal_names_is_found(name: str) -> None:
    """For each block of a conversation: the place where it stands in the request leads back to its handle, spelt as each provider spells it."""
    dialog = Dialog(owner="a", session_name="s")
    dice = random.Random(7)  # noqa: S311 - a test's choice
    marks: dict[str, Handle] = {}
    for number in range(12):
        seq = dialog.store.last(dialog.dialog_id).seq + 1
        contents: list[Content] = []
        for block in range(dice.randint(1, 3)):
            kind = dice.choice(["text", "call"]) if number % 2 else "text"
            place = Handle(dialog.dialog_id, seq, block)
            contents.append(marked(kind, place))
            marks[f"mark-{seq}-{block}."] = place
        dialog.append(
            AssistantMessage(contents=tuple(contents)) if number % 2 else UserMessage(contents=tuple(contents))
        )
        for call in (one for one in contents if isinstance(one, ToolCallContent)):
            (place,) = dialog.record(
                MessageEntry(message=ToolMessage.from_result(ToolResultContent(id=call.id, content=f"out-{call.id}.")))
            )
            marks[f"out-{call.id}."] = place._replace(block=0)
    dialog.put_text("Go on.")
    request = dialog.request(name, MODEL[name])
    found = {}
    for path, text in _strings(request.body):
        here = [mark for mark in marks if mark in text]
        if len(here) == 1:
            dotted = path.replace("[", ".").replace("]", "")
            for spelt in (path, dotted):
                found[here[0]] = blamed(dialog.store, request, f"400: {spelt}: this is refused")
                assert found[here[0]] == marks[here[0]], (spelt, text)
    assert len(found) > len(marks) * 0.6  # texts that stand joined in one message are told apart by no place


def test_a_signature_that_is_refused_leads_to_the_thought() -> None:
    """Anthropic names the thought by its place: it is found, set aside, and the request is valid without it."""
    dialog, places = begun()
    request = dialog.request("anthropic", "claude-sonnet-4-5")
    (index,) = [at for at, one in enumerate(request.body["messages"]) if "thinking" in str(one)]
    words = f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
    assert blamed(dialog.store, request, words) == places["thought"]
    dialog.marks.quarantine(places["thought"], words)
    assert "signature" not in dialog.request("anthropic", "claude-sonnet-4-5").data.decode()


def test_a_refusal_without_a_place_blames_nobody() -> None:
    """Words that name no block of the log give None, never a guess."""
    dialog, _ = begun()
    request = dialog.request("anthropic", "claude-sonnet-4-5")
    for words in ("", "the request is bad", "messages.99.content.0: no", "tools.0.name: bad", "max_tokens: 5"):
        assert blamed(dialog.store, request, words) is None


def test_a_refusal_about_media_names_the_only_new_one() -> None:
    """«Could not process image» names no place: the one image since the last answer is meant; of two, neither."""
    dialog = Dialog(owner="a")
    words = "messages: Could not process image"
    for number in range(2):
        dialog.put_image(PNG, caption="see")
        new = dialog.messages.handle(-1)._replace(block=1)
        assert blamed(dialog.store, dialog.request("anthropic", "claude-sonnet-4-5"), words) == new, number
        dialog.append(AssistantMessage(content="A dot.", model="claude-sonnet-4-5"))
    dialog.put_image(PNG)
    dialog.put_image(PNG)
    assert blamed(dialog.store, dialog.request("anthropic", "claude-sonnet-4-5"), words) is None
