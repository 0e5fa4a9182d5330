"""What OpenAI's Chat Completions API would refuse.

Sources: the API reference and specification, and the API's own answers as quoted in the threads beside the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.wire.check import answers, calls, examine, media, tools, turns
from palaver.wire.check.calls import Round
from palaver.wire.check.examine import Subject
from palaver.wire.check.media import Attachment
from palaver.wire.check.shapes.openai_chat import REQUEST
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "formatted", "json_asked", "validate"]

_AUDIO = {"wav": "audio/wav", "mp3": "audio/mp3"}  # input_audio.format


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Give everything in a chat completion request that the API would refuse; nothing when it would take it."""
    return examine.run(request, profile, REQUEST, _CHECKS, as_history=as_history)


# --- where things stand ------------------------------------------------------------------------------------------------


def _calls(message: Place) -> Iterator[tuple[Place, Place, Place]]:
    """Give id, name and arguments of each call of a message."""
    for call in message["tool_calls"]:
        kind = "custom" if call["type"].text == "custom" else "function"
        yield call["id"], call[kind]["name"], call[kind]["input" if kind == "custom" else "arguments"]


def _parts(body: Place, kind: str) -> Iterator[Place]:
    for message in body["messages"]:
        for part in message["content"]:
            if part["type"].text == kind:
                yield part[kind]


def _tools(body: Place) -> Iterator[Place]:
    """Give each tool's definition proper."""
    for tool in body["tools"]:
        yield tool["custom" if tool["type"].text == "custom" else "function"]


# --- turns and calls ---------------------------------------------------------------------------------------------------


def _speech(subject: Subject) -> Iterator[Violation]:
    """Check order, names and texts, and that an assistant says or does something."""
    messages, rules = list(subject.body["messages"]), subject.profile.turns
    yield from turns.ordered([each for each in messages if each["role"].text in ("user", "assistant")], rules)
    yield from turns.named((each["name"] for each in messages), rules)
    yield from turns.worded((each["content"] for each in messages), rules)
    yield from turns.worded(_parts(subject.body, "text"), rules)
    for message in messages:
        said = any(message[name] for name in ("content", "tool_calls", "refusal", "audio"))
        if message["role"].text == "assistant" and not said:
            # «content: required unless tool_calls is specified», API reference
            yield message["content"].breaks(Rule.MESSAGE_EMPTY, "an assistant message needs content or tool calls")


def _rounds(body: Place) -> Iterator[Round]:
    """Give each assistant's calls with the tool messages that follow without a break.

    «An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'»:
    agno-agi/agno#3105. «Messages with role 'tool' must be a response to a preceding message with 'tool_calls'»:
    FoundationAgents/OpenManus#744.
    """
    made: tuple[Place, ...] = ()
    results: tuple[Place, ...] = ()
    for message in body["messages"]:
        if message["role"].text == "tool":
            results = (*results, message["tool_call_id"])
            continue
        yield Round(made, results)
        made, results = tuple(call for call, _, _ in _calls(message)), ()
    yield Round(made, results)


def _pairing(subject: Subject) -> Iterator[Violation]:
    rounds = list(_rounds(subject.body))
    yield from calls.identified(rounds, subject.profile.calls)
    yield from calls.paired(rounds)
    for message in subject.body["messages"]:
        yield from calls.strings(arguments for _, _, arguments in _calls(message))


# --- media, tools, parameters ------------------------------------------------------------------------------------------


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    for image in _parts(subject.body, "image_url"):
        yield from media.linked("image", image["url"], subject.profile.media, data_urls=True)
    for sound in _parts(subject.body, "input_audio"):
        name = sound["format"].text
        yield media.inline("audio", sound["data"], _AUDIO.get(name, f"audio/{name}"))
    for file in _parts(subject.body, "file"):
        if file["file_data"]:
            yield from media.linked("document", file["file_data"], subject.profile.media, data_urls=True)


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from media.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check definitions, calls in the history and the choice between tools."""
    body, rules = subject.body, subject.profile.tools
    names = [tool["name"] for tool in _tools(body)]
    yield from tools.defined(names, rules)
    for message in body["messages"]:
        yield from tools.called((name for _, name, _ in _calls(message)), rules)
    for tool in _tools(body):
        yield from tools.parameters(tool["parameters"], rules, strict=tool["strict"].value is True)
    choice = body["tool_choice"]
    listed = (each[each["type"].text]["name"] for each in choice["allowed_tools"]["tools"])
    yield from tools.chosen([choice["function"]["name"], choice["custom"]["name"], *listed], names)
    for name in ("tool_choice", "parallel_tool_calls"):
        if body[name] and not names and body[name].value != "none":
            # «'tool_choice' is only allowed when 'tools' are specified», and the same for the other
            yield body[name].breaks(Rule.TOOL_CHOICE, f"{name} is taken only with tools")


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body = subject.body
    # «Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported»: langchain-ai/langgraph#5943
    yield from examine.conflicting(body, ("max_tokens", "max_completion_tokens"))
    if body["stream_options"] and body["stream"].value is not True:  # «only set this when you set stream: true»
        yield body["stream_options"].breaks(Rule.PARAMETER_CONFLICT, "stream_options is taken only with stream")
    if body["top_logprobs"] and body["logprobs"].value is not True:  # «logprobs must be set to true if … used»
        yield body["top_logprobs"].breaks(Rule.PARAMETER_CONFLICT, "top_logprobs is taken only with logprobs")
    texts = [*(each["content"] for each in body["messages"]), *_parts(body, "text")]
    yield from json_asked(body["response_format"], texts)


def _format(subject: Subject) -> Iterator[Violation]:
    """Check the structure that is asked of the answer."""
    yield from formatted(subject.body["response_format"]["json_schema"], subject)


def formatted(wanted: Place, subject: Subject) -> Iterator[Violation]:
    """Check a format as both of OpenAI's APIs have it."""
    yield from answers.named(wanted["name"])
    yield from answers.held(wanted["schema"], subject.profile.answers, strict=wanted["strict"].value is True)


def json_asked(wanted: Place, texts: list[Place]) -> Iterator[Violation]:
    """Check that a request for any JSON says so in its texts.

    «'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'»:
    StefanBratanov/jvm-openai#15. The Responses API answers the same.
    """
    if wanted["type"].text == "json_object" and not any("json" in each.text.lower() for each in texts):
        yield wanted["type"].breaks(Rule.JSON_WORD, "no text says JSON, which this format asks for")


_CHECKS = (_speech, _pairing, _payloads, _toolset, _parameters, _format)

RULES = (
    examine.RULES
    | turns.RULES
    | calls.RULES
    | media.RULES
    | tools.RULES
    | answers.RULES
    | {Rule.ANSWER_NAME, Rule.MESSAGE_EMPTY, Rule.PARTICIPANT_NAME, Rule.JSON_WORD}
)
