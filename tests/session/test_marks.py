"""Quarantine: what a provider refuses is set aside, the session goes on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidInput, NotFound
from palaver.log import BranchSummary, Entry, Handle, Instructions, MessageEntry, Place, Quarantine, Section
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.providers import APIS, profile
from palaver.session import Dialog, Session
from palaver.session.refusals import blamed
from palaver.store import MemoryStore, Store
from palaver.testing.logs import Log, model, user
from palaver.testing.strategies import sayings
from palaver.view import apply
from palaver.wire import Request, validate
from tests.view.growing import commit, seen
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
    "gemini-interactions": "gemini-3.6-flash",
}


def begun(store: Store | None = None) -> tuple[Dialog, dict[str, Handle]]:
    """Return a dialog with a block of every kind, and their handles."""
    dialog = Session.create(store or MemoryStore(), "s").root
    thought = ThinkingContent(content=f"hm {POISON}", signature=POISON, provider="anthropic", model=MODEL["anthropic"])
    call = ToolCallContent(id="c1", name="look", args={"at": POISON})
    said = {"role": "assistant", "model": MODEL["anthropic"], "provider": "anthropic"}
    entries: dict[str, Entry] = {
        "section": Instructions(sections=(Section(name="role", text=f"Be brief. {POISON}"),)),
        "text": MessageEntry(message=UserMessage.text(f"Look. {POISON}")),
        "image": MessageEntry(message=UserMessage(contents=(TextContent(content="This."), ImageContent(images=[PNG])))),
        "call": MessageEntry(message=Message.from_dict({**said, "contents": [thought, TextContent("I look."), call]})),
        "result": MessageEntry(
            message=ToolMessage.from_result(ToolResultContent(id="c1", name="look", content=f"seen {POISON}"))
        ),
        "answer": MessageEntry(message=AssistantMessage(content=f"A cat. {POISON}")),
    }
    places = dict(zip(entries, dialog.record(*entries.values()), strict=True))
    places["summary"] = dialog.record(BranchSummary(summary=f"Elsewhere: {POISON}"), beside=True)[0]
    places["thought"] = places["call"]
    dialog.put_text("Go on.")
    blocks = {"image": 1, "call": 2, "summary": None}
    return dialog, {kind: place._replace(block=blocks.get(kind, 0)) for kind, place in places.items()}


def requests(dialog: Dialog) -> dict[str, Request]:
    """Compile for every provider; each request is checked."""
    return {name: dialog.request(name, MODEL[name]) for name in APIS}


def test_quarantine_is_a_placeholder_everywhere() -> None:
    """The handle stands in each request, which is valid; the original is recalled by it; lifted, the view is what it was.

    What Anthropic signed after the block stays out of its requests: it was signed for words that were edited meanwhile.
    """
    for kind in begun()[1]:
        dialog, places = begun()
        seen = dialog.view()
        before = {name: request.data for name, request in requests(dialog).items()}
        original = dialog.recall(places[kind])
        dialog.marks.quarantine(places[kind], "refused")
        assert dict(dialog.marks.quarantined) == {places[kind]: "refused"}
        for name, request in requests(dialog).items():
            told = request.data.decode()
            assert f"recall {places[kind]}]" in told, (kind, name)
            assert told.count(POISON) < before[name].decode().count(POISON) or kind in {"image", "thought"}
        assert dialog.recall(places[kind]) == original
        dialog.marks.lift(places[kind])
        assert not dialog.marks.quarantined
        assert (dialog.view().system, dialog.view().exchanges) == (seen.system, seen.exchanges)
        after = {name: request.data for name, request in requests(dialog).items()}
        assert after | {"anthropic": b""} == before | {"anthropic": b""}, kind


def test_it_holds_in_later_forks() -> None:
    """A fork inherits it; a fork made before shows the block, until the session sets it aside for all."""
    store = MemoryStore()
    dialog, places = begun(store)
    session = Session.open(store, dialog.session_id)
    place, earlier = places["text"], dialog.fork()
    dialog.marks.quarantine(place)
    later = dialog.fork()
    assert (place in later.marks.quarantined, place in earlier.marks.quarantined) == (True, False)
    made = session.quarantine(place, "refused")
    assert {one.dialog for one in made} == {earlier.dialog_id}
    assert session.quarantine(place) == ()
    for one in (dialog, earlier.reload(), later):
        assert f"recall {place}]" in one.request("gemini", MODEL["gemini"]).data.decode()
    assert len(session.lift(place)) == 3
    with pytest.raises(InvalidInput):
        session.lift(place)


def test_what_cannot_be_quarantined() -> None:
    """No such entry, no such block, and an entry no view shows: a typed error, and nothing is written."""
    dialog, places = begun()
    label = dialog.marks.label(str(places["text"]), "here")
    length = dialog.store.last(dialog.dialog_id).seq
    for wrong, error in (
        (Handle(dialog.dialog_id, 999, 0), NotFound),
        (places["text"]._replace(block=7), NotFound),
        (label, InvalidInput),
        ("nonsense", InvalidInput),
    ):
        with pytest.raises(error):
            dialog.marks.quarantine(wrong)
    assert dialog.store.last(dialog.dialog_id).seq == length


@settings(max_examples=40)
@given(data=st.data())
def test_any_quarantine_of_any_log_gives_valid_requests(data: st.DataObject) -> None:
    """Law 1: whatever is set aside and lifted, in any log, also after a checkpoint, every provider's request is valid."""
    log = Log()
    log.put(*data.draw(sayings()))
    for _ in range(data.draw(st.integers(1, 4))):
        places = [block.origin for one in seen(log).exchanges for block in one.blocks() if block.origin is not None]
        if not places:
            return
        target = data.draw(st.sampled_from(sorted(places)))
        place = Place(dialog=target.dialog, seq=target.seq, block=data.draw(st.sampled_from([target.block, None])))
        log.put(Quarantine(target=place, lifted=data.draw(st.booleans())))
        if data.draw(st.booleans()):
            view = apply(seen(log), data.draw(plans(seen(log))))
            log.put(commit(log, view))
            again = seen(log)
            assert (again.system, again.exchanges) == (view.system, view.exchanges)
        log.put(user("And?"), model("So."))
    dialog = Session.open(log.store, log.session).dialog(log.dialog)
    for name in APIS:
        request = dialog.request(name, MODEL[name], then="Go on.")
        assert not validate(request.body, profile(name), as_history=request.history)


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield path, value
    elif hasattr(value, "items"):
        for key, inner in value.items():
            yield from _strings(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{path}[{index}]")


def test_the_block_that_a_refusal_names_is_found() -> None:
    """The place where a block stands in a request leads back to its handle, spelt as each provider spells it."""
    dialog = Dialog(owner="a", session_name="s")
    marks: dict[str, Handle] = {}
    for number in range(6):
        dialog.put_text(f"ask-{number}.")
        call = ToolCallContent(id=f"c{number}", name="look", args={"m": f"call-{number}."})
        dialog.append(AssistantMessage(contents=(TextContent(f"say-{number}."), call)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=call.id, content=f"out-{number}.")))
        for name, seq, block in (("ask", 0, 0), ("say", 1, 0), ("call", 1, 1), ("out", 2, 0)):
            marks[f"{name}-{number}."] = Handle(dialog.dialog_id, 3 * number + seq, block)
    dialog.put_text("Go on.")
    for name, request in requests(dialog).items():
        found = set()
        for path, text in _strings(request.body):
            here = [mark for mark in marks if mark in text]
            for spelt in (path, path.replace("[", ".").replace("]", "")) if len(here) == 1 else ():
                place = blamed(dialog.store, request, f"400: {spelt}: this is refused")
                assert place == marks[here[0]], (name, spelt, text)
                found.add(here[0])
        assert len(found) > len(marks) * 0.6, name  # texts that stand joined in one message are told apart by no place


def test_a_signature_that_is_refused_leads_to_the_thought() -> None:
    """Anthropic names the thought by its place: it is found, set aside, and the request is valid without it."""
    dialog, places = begun()
    thinking: dict[str, Any] = {
        "parameters": {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
        "max_tokens": 4_000,
    }
    request = dialog.request("anthropic", "claude-sonnet-4-5", **thinking)
    (index,) = [at for at, one in enumerate(request.body["messages"]) if "thinking" in str(one)]
    words = f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
    assert blamed(dialog.store, request, words) == places["thought"]
    dialog.marks.quarantine(places["thought"], words)
    assert "signature" not in dialog.request("anthropic", "claude-sonnet-4-5", **thinking).data.decode()


def test_a_refusal_about_media_or_nothing_blames_no_guess() -> None:
    """«Could not process image» means the one image since the last answer; of two neither; words that name no block, nobody."""
    dialog = Dialog(owner="a")

    def found(words: str) -> Handle | None:
        return blamed(dialog.store, dialog.request("anthropic", MODEL["anthropic"]), words)

    words = "messages: Could not process image"
    for number in range(2):
        dialog.put_image(PNG, caption="see")
        assert found(words) == dialog.messages.handle(-1)._replace(block=1), number
        dialog.append(AssistantMessage(content="A dot.", model=MODEL["anthropic"]))
    dialog.put_image(PNG)
    dialog.put_image(PNG)
    for nobody in (words, "", "the request is bad", "messages.99.content.0: no", "tools.0.name: bad"):
        assert found(nobody) is None
