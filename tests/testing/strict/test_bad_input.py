"""Bad input of every API: nothing of it is lost from the log, the next request is accepted, and the report says what was left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import pytest

from palaver.errors import AgentFailure, ProviderError
from palaver.messages import AssistantMessage, TextContent, ThinkingContent, UnknownContent
from palaver.providers import profile
from palaver.session.refusals import blamed
from palaver.testing import strict
from palaver.tokens import UnknownModelWarning
from tests.testing.strict.ways import DialogWay, FitWay, Json, Way, accepted, made, ways

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession", "ignore:The window of")


class BadSide(NamedTuple):
    """An API: its stand-in, a model, and how its answers say things."""

    server: Callable[[], strict.StrictServer]
    model: str
    thought: Json
    call: Json
    said: Callable[..., Json | str]
    novel: Json
    profile: str


_GOOGLE: Final = "gemini-3.6-flash"
APIS: Final[Mapping[str, BadSide]] = {
    "anthropic": BadSide(
        strict.anthropic,
        "claude-fable-5-1",
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "bash", "input": {"command": "ls"}},
        lambda text, **more: {"type": "text", "text": text, **more},
        {"type": "thinking_v2", "tag": "x"},
        "anthropic",
    ),
    "openai-responses": BadSide(
        strict.openai_responses,
        "gpt-6.2-sol",
        {"type": "reasoning"},
        {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}'},
        lambda text, **more: {"type": "message", "content": text, **more},
        {"type": "reasoning_v2", "tag": "x"},
        "openai-responses",
    ),
    "openai": BadSide(
        strict.openai_chat,
        "gpt-4o",
        {"type": "reasoning", "text": "hm"},
        {"type": "function", "name": "bash", "arguments": '{"command": "ls"}'},
        lambda text, **_: text,
        {},
        "openai-chat",
    ),
    "google": BadSide(
        strict.gemini,
        _GOOGLE,
        {"text": "hm", "thought": True},
        {"functionCall": {"name": "bash", "args": {"command": "ls"}}},
        lambda text, **more: {"text": text, **more},
        {"thinking_v2": {"tag": "x"}},
        "gemini",
    ),
    "google-interactions": BadSide(
        strict.interactions,
        _GOOGLE,
        {"type": "thought", "summary": [{"type": "text", "text": "hm"}]},
        {"type": "function_call", "name": "bash", "arguments": {"command": "ls"}},
        lambda text, **more: {"type": "model_output", "content": [{"type": "text", "text": text, **more}]},
        {"type": "thought_v2", "tag": "x"},
        "gemini-interactions",
    ),
}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Return the name of an API."""
    return str(request.param)


@pytest.fixture
def side(api: str) -> BadSide:
    """Return an API."""
    return APIS[api]


@pytest.fixture
def way(request: pytest.FixtureRequest, api: str, side: BadSide) -> Iterator[Way]:
    """Return a conversation with a running stand-in in one of the ways."""
    with side.server() as server:
        fields: Json = {}
        if request.param == "fit" and api == "openai-responses":
            fields = {"include": ["reasoning.encrypted_content"]}
        if request.param == "fit" and api == "anthropic":
            fields = {"betas": ["compact-2026-01-12"]}
        yield made(request.param, server, api, side.model, **fields)


def only(*names: str) -> pytest.MarkDecorator:
    """Run a test with these APIs."""
    return pytest.mark.parametrize("api", names, indirect=True)


def kept(way: Way) -> str:
    """Return all that is kept: the bodies of the log, or the caller's list."""
    if isinstance(way, DialogWay):
        return str([body for _, body in way.dialog.store.bodies(way.dialog.dialog_id)])
    assert isinstance(way, FitWay)
    return json.dumps(way.messages)


def sent(body: Json) -> str:
    """Return a request as text."""
    return json.dumps(body)


@ways()
def test_blocks_of_an_unknown_version_go_back(way: Way, api: str, side: BadSide) -> None:
    """«a block of an unknown version»: it goes back to its maker as it came; where it may not, the report says so."""
    if not side.novel:
        pytest.skip("its messages have no blocks")
    way.turn("One.", [side.thought, side.said("Well."), side.novel, side.said("Done.")])
    assert "_v2" in kept(way)
    (body,) = way.turn("Two.", [side.said("Yes.")])
    assert "_v2" in sent(body) or way.notes
    assert "_v2" in sent(body) or api == "google"
    accepted(way.server)
    if isinstance(way, DialogWay):
        other = way.dialog.request(
            "anthropic" if api != "anthropic" else "openai-responses",
            "claude-opus-5" if api != "anthropic" else "gpt-6-sol",
            then="And?",
        )
        assert "_v2" not in str(other.body)
        assert other.report.lost()


@ways()
def test_fields_that_nobody_knows_are_kept(way: Way, api: str, side: BadSide) -> None:
    """«a server that returns fields nobody knows»: they are in the log, and not sent back where they would be refused."""
    if isinstance(way, FitWay) and api == "google":
        pytest.skip("Google's client drops them before the caller sees them")
    answer = [side.thought, side.said("Done.", novelty=1)]
    way.turn("One.", strict.NextAnswer(answer, fields={"novelty": {"seen": True}}))
    if isinstance(way, DialogWay):
        assert kept(way).count("novelty") == sent(way.server.served[-1].body).count("novelty")
    (body,) = way.turn("Two.", [side.said("Yes.")])
    assert "novelty" not in sent(body)
    accepted(way.server)


@ways()
def test_equal_ids_of_calls_stay_apart(way: Way, api: str, side: BadSide) -> None:
    """«two equal item ids»: each call keeps its own result."""
    call = (
        {"functionCall": {**side.call["functionCall"], "id": "same1"}}
        if api == "google"
        else {**side.call, "call_id" if api == "openai-responses" else "id": "same1"}
    )
    for number in range(2):
        way.turn(f"{number}", [side.thought, call], [side.said("Done.")])
    (body,) = way.turn("Two.", [side.said("Yes.")])
    assert sent(body).count("ls") >= 2
    assert sent(body).count("same1") == 4 or way.notes
    accepted(way.server)


@only("openai-responses")
@ways()
def test_equal_ids_of_items_are_sent_once(way: Way, side: BadSide) -> None:
    """«two equal item ids»: the second item leaves, or its id, and the report says so."""
    for number in range(2):
        way.turn(
            f"{number}",
            [{"type": "reasoning", "id": "rs_same"}, {"type": "message", "content": "Done.", "id": "msg_same"}],
        )
    (body,) = way.turn("Two.", [side.said("Yes.")])
    assert sent(body).count("rs_same") == 1
    assert way.notes
    accepted(way.server)


@only("anthropic", "openai-responses")
@ways()
def test_a_compaction_that_says_nothing_is_none(way: Way, api: str, side: BadSide) -> None:
    """«a `compaction` without content»: the conversation goes on from all messages, and the log keeps it."""
    way.turn("One.", [side.thought, side.said("Well.")])
    block: Json = {"type": "compaction", "content": ""} if api == "anthropic" else {"type": "compaction", "id": "cmp_1"}
    if isinstance(way, FitWay):
        question = {"role": "user", "content": "Two."}
        text = {"type": "text", "text": "Hm."}
        answer = [{"role": "assistant", "content": [block, text]}]
        items = [block, {"type": "message", "role": "assistant", "content": "Hm."}]
        way.messages += [question, *(answer if api == "anthropic" else items)]
    else:
        assert isinstance(way, DialogWay)
        way.dialog.put_text("Two.")
        contents = (UnknownContent.from_dict(block), TextContent("Hm."))
        way.dialog.append(AssistantMessage(contents=contents, provider=api.partition("-")[0], model=way.model))
    (body,) = way.turn("Three.", [side.said("Yes.")])
    assert "compaction" not in sent(body)
    assert "One." in sent(body)
    assert "Hm." in sent(body)
    assert "compaction" in kept(way)
    assert way.notes
    accepted(way.server)


@only("anthropic")
@ways()
def test_a_failed_compaction_binds_nothing(way: Way, side: BadSide) -> None:
    """«a `compaction` without content»: one that failed at the server goes back as it came, and stands for nothing."""
    way.turn("One.", [side.thought, side.said("Well.")])
    way.turn("Two.", [{"type": "compaction", "content": None}, side.thought, side.said("Well.")])
    (body,) = way.turn("Three.", [side.thought, side.said("Yes.")])
    assert "One." in sent(body)
    assert sent(body).count('"signature"') == 2
    accepted(way.server)


@only("anthropic", "openai-responses")
@pytest.mark.parametrize("events", [3, 4])
@ways("request", "agent")
def test_a_stream_cut_inside_a_compaction(way: DialogWay, side: BadSide, events: int) -> None:
    """«a stream cut inside a compaction block»: what came is no answer; what was said before is there, and the next request is accepted."""
    way.turn("One.", [side.thought, side.said("Well.")])
    cut = strict.NextAnswer([{"type": "compaction", "content": "So far."}, side.said("Never.")], cut=events)
    try:
        way.turn("Two.", *[cut] * 9, stream=True)
    except (ProviderError, AgentFailure):
        way.server.script.clear()
    (body,) = way.turn("Three.", [side.said("Yes.")])
    assert "compaction" not in sent(body)
    assert "One." in sent(body)
    accepted(way.server)


@only("openai-responses")
@pytest.mark.parametrize("change", ["content", "organization"])
@ways("request", "agent")
def test_encrypted_content_that_is_refused(way: DialogWay, side: BadSide, change: str) -> None:
    """«a signature tampered with»: OpenAI's refusal names the item; once it is set aside, the next request is accepted."""
    with strict.openai_responses(organizations={"key": "one", "other": "two"}) as server:
        way.server = server
        way.turn("One.", [side.thought, side.call], [side.said("Well.")])
        if change == "organization":
            way.key = "other"
        else:  # models that check what precedes reasoning never get it from answers whose request is not recorded
            way.model = "gpt-6-sol"
            item = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "gAAAAtampered"}
            thought = ThinkingContent(provider="openai", model=way.model, artefact=item)
            contents = (thought, TextContent("Hm."))
            way.dialog.put_text("Two.")
            way.dialog.append(AssistantMessage(contents=contents, provider="openai", model=way.model))
        with pytest.raises((ProviderError, AgentFailure), match="could not be verified") as caught:
            way.turn("Three.")
        place = blamed(way.dialog.store, way.sent, str(caught.value))
        assert place is not None
        way.dialog.marks.quarantine(place, "not verified")
        server.forget()
        server.script.clear()
        way.turn("Four.", [side.said("Yes.")])
        assert "quarantined" in way.notes
        accepted(server)


@pytest.mark.filterwarnings(f"ignore::{UnknownModelWarning.__module__}.{UnknownModelWarning.__qualname__}")
@ways()
def test_a_model_that_nobody_knows(way: Way, api: str, side: BadSide) -> None:
    """«a model name that nobody knows»: what its API says reaches the caller, nothing is lost, and another model goes on."""
    way.turn("One.", [side.thought, side.said("Well.")])
    known, way.model = (
        way.model,
        {"anthropic": "claude-zeta-9", "google": "gemini-9-zeta"}.get(api.partition("-")[0], "gpt-9-zeta"),
    )
    with pytest.raises(Exception, match=r"(?i)not[ _]found|does not (offer|exist)"):
        way.turn("Two.", [side.said("Never.")])
    way.server.forget()
    way.server.script.clear()
    way.model = known
    (body,) = way.turn("Three.", [side.said("Yes.")])
    assert "Two." in sent(body)
    accepted(way.server)


def test_unknown_models_have_the_newest_rules() -> None:
    """«a model name that nobody knows»: it gets the row of its maker's newest model, with a warning."""
    with pytest.warns(UnknownModelWarning):
        unknown = profile("anthropic", "claude-fable-99-7")
    assert unknown.reasoning.bound
    assert not unknown.tools.forced
