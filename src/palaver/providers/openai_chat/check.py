"""OpenAI's Chat Completions API (POST /v1/chat/completions): its fields, and the rules by which it refuses a request.

After the specification in github.com/openai/openai-openapi, ``completion_create_params`` of the ``openai`` package, and the API's own answers, quoted in the
threads that the rules name. The fields that tools replaced (``functions``, ``function_call``, role ``function``) are left out:
palaver writes none. A tool message may have a name, as the provider's older examples write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, NamedTuple

from palaver.wire import rules
from palaver.wire.place import OPEN, Breach, Items, Kinds, Number, Shape, Spot, Violation, one
from palaver.wire.rules import Attachment, Round, Subject
from palaver.wire.table import API, Profile

# A cache breakpoint, on any part of content (guides/prompt-caching).
MARKED: Final[dict[str, Shape]] = {"prompt_cache_breakpoint?": {"mode": one("explicit"), "ttl?": one("30m", "12h")}}
_PARTS: Final[dict[str, Shape]] = {
    "text": {"text": str, **MARKED},
    "image_url": {"image_url": {"url": str, "detail?": one("auto", "low", "high", "original")}, **MARKED},
    "input_audio": {"input_audio": {"data": str, "format": str}, **MARKED},
    "file": {"file": {"file_data?": str, "file_id?": str, "filename?": str}, **MARKED},
    "refusal": {"refusal": str},
}


def _content(*kinds: str) -> tuple[Shape, ...]:
    """Return the shape of content: a string, or a list of parts of these kinds, at least one."""
    parts = Kinds({kind: _PARTS[kind] for kind in kinds}, elsewhere=frozenset(_PARTS) - set(kinds))
    return (str, Items(parts, 1))


_CALLED: dict[str, Shape] = {"id": str, "function": {"name": str, "arguments": str}}
_CUSTOM: dict[str, Shape] = {"id": str, "custom": {"name": str, "input": str}}
_ASSISTANT: Final[dict[str, Shape]] = {
    "content?": (None, *_content("text", "refusal")),
    "name?": str,
    "refusal?": (None, str),
    "audio?": (None, {"id": str}),
    "tool_calls?": Items(Kinds({"function": _CALLED, "custom": _CUSTOM}), 1),
    "function_call?": (None,),  # clients write out the empty fields of answers
}


def _messages(assistant: dict[str, Shape]) -> Items:
    kinds: dict[str, Shape] = {
        "system": {"content": _content("text"), "name?": str},
        "developer": {"content": _content("text"), "name?": str},
        "user": {"content": _content("text", "image_url", "input_audio", "file"), "name?": str},
        "assistant": assistant,
        "tool": {"tool_call_id": str, "content": _content("text"), "name?": str},
    }
    return Items(Kinds(kinds, key="role", rule=Breach.ROLE_UNKNOWN), 1)


_TOOL = Kinds(
    {
        "function": {"function": {"name": str, "description?": str, "parameters?": OPEN, "strict?": (None, bool)}},
        "custom": {"custom": {"name": str, "description?": str, "format?": OPEN}},
    }
)
_TOOL_CHOICE = (
    one("none", "auto", "required"),
    Kinds(
        {
            "function": {"function": {"name": str}},
            "custom": {"custom": {"name": str}},
            "allowed_tools": {"allowed_tools": {"mode": one("auto", "required"), "tools": [OPEN]}},
        }
    ),
)
RESPONSE_FORMAT: Final[dict[str, Shape]] = {
    "name": str, "description?": str, "schema?": OPEN, "strict?": (None, bool),
}  # fmt: skip

# Fields of both of OpenAI's APIs; other fields pass as they are.
SHARED: Final[dict[str, Shape]] = {
    "store?": (None, bool),
    "stream?": (None, bool),
    "stream_options?": (None, {"include_obfuscation?": bool, "include_usage?": bool}),
    "temperature?": (None, Number(0, 2)),
    "top_logprobs?": (None, Number(0, 20, whole=True)),
    "top_p?": (None, Number(0, 1)),
    **OPEN,
}
EFFORTS: Final = one("none", "minimal", "low", "medium", "high", "xhigh", "max")
REQUEST: Final[dict[str, Shape]] = {
    **SHARED,
    "model": str,
    "messages": _messages(_ASSISTANT),
    "logprobs?": (None, bool),
    "max_completion_tokens?": (None, Number(1, whole=True)),
    "max_tokens?": (None, Number(1, whole=True)),
    "n?": (None, Number(1, 128, whole=True)),
    "reasoning_effort?": (None, EFFORTS),
    "response_format?": Kinds({"text": {}, "json_object": {}, "json_schema": {"json_schema": RESPONSE_FORMAT}}),
    "stop?": (None, str, Items(str, 1, 4)),
    "tool_choice?": _TOOL_CHOICE,
    "tools?": Items(_TOOL, 1),
    "verbosity?": (None, one("low", "medium", "high")),
    "web_search_options?": OPEN,
}


# --- places ------------------------------------------------------------------------------------------------


class _ExaminedChat(NamedTuple):
    """A request under examination, its messages and their parts read once for all checks."""

    body: Spot
    profile: Profile
    messages: tuple[Spot, ...]
    parts: tuple[Spot, ...]

    def everywhere(self, kind: str) -> Iterator[Spot]:
        """Return what the parts of a kind say, in all messages."""
        return (part[kind] for part in self.parts if part["type"].text == kind)


def _kind(one: Spot) -> str:
    return "custom" if one["type"].text == "custom" else "function"


def _tools(body: Spot) -> list[Spot]:
    """Return each tool's definition."""
    return [tool[_kind(tool)] for tool in body["tools"]]


# --- turns and calls ---------------------------------------------------------------------------------------------------


def _speech(subject: _ExaminedChat) -> Iterator[Violation]:
    """Check order, names and texts, and that an assistant says or does something."""
    messages, limits = subject.messages, subject.profile.turns
    yield from rules.ordered([each for each in messages if each["role"].text in ("user", "assistant")], limits)
    for before, message in pairwise(messages):
        others = before["role"].text == "tool" and message["role"].text not in ("tool", "assistant")
        if limits.answered and others:
            yield message["role"].breaks(Breach.ROLE_ALTERNATION, "the assistant speaks after results")
    yield from rules.named((each["name"] for each in messages), limits)
    yield from rules.worded((each["content"] for each in messages), limits)
    yield from rules.worded(subject.everywhere("text"), limits)
    for message in messages:
        said = any(message[name] for name in ("content", "tool_calls", "refusal", "audio"))
        if message["role"].text == "assistant" and not said:
            # «content: required unless tool_calls is specified», API reference
            yield message["content"].breaks(Breach.MESSAGE_EMPTY, "an assistant message needs content or tool calls")


def _rounds(messages: Iterable[Spot]) -> Iterator[Round]:
    """Return each assistant's calls with the tool messages that follow without a break.

    «An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'»:
    agno-agi/agno#3105. «Messages with role 'tool' must be a response to a preceding message with 'tool_calls'»:
    FoundationAgents/OpenManus#744.
    """
    made: tuple[Spot, ...] = ()
    results: tuple[Spot, ...] = ()
    for message in messages:
        if message["role"].text == "tool":
            results = (*results, message["tool_call_id"])
            continue
        yield Round(made, results)
        made, results = tuple(call["id"] for call in message["tool_calls"]), ()
    yield Round(made, results)


def _pairing(subject: _ExaminedChat) -> Iterator[Violation]:
    rounds = list(_rounds(subject.messages))
    yield from rules.identified(rounds, subject.profile.calls)
    yield from rules.paired(rounds)
    calls = [call for message in subject.messages for call in message["tool_calls"]]
    yield from rules.json_arguments(call["function"]["arguments"] for call in calls)
    yield from rules.called((call[_kind(call)]["name"] for call in calls), subject.profile.tools)


# --- media, tools, parameters ------------------------------------------------------------------------------------------


def _attachments(subject: _ExaminedChat) -> Iterator[Violation | Attachment]:
    limits = subject.profile.media
    for image in subject.everywhere("image_url"):
        yield from rules.linked("image", image["url"], limits, data_urls=True)
    for sound in subject.everywhere("input_audio"):
        yield rules.inline("audio", sound["data"], f"audio/{sound['format'].text}")
    for file in subject.everywhere("file"):
        yield from rules.linked("document", file["file_data"], limits, data_urls=True)


def _payloads(subject: _ExaminedChat) -> Iterator[Violation]:
    yield from rules.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: _ExaminedChat) -> Iterator[Violation]:
    """Check definitions and the choice between tools."""
    body, profile = subject.body, subject.profile
    names = [tool["name"] for tool in _tools(body)]
    yield from rules.defined(names, profile.tools)
    for tool in _tools(body):
        yield from rules.parameters(tool["parameters"], profile.dialect, strict=tool["strict"].value is True)
    choice = body["tool_choice"]
    listed = (each[each["type"].text]["name"] for each in choice["allowed_tools"]["tools"])
    yield from rules.chosen([choice["function"]["name"], choice["custom"]["name"], *listed], names)
    for name in ("tool_choice", "parallel_tool_calls"):
        if body[name] and not names and body[name].value != "none":
            # «'tool_choice' is only allowed when 'tools' are specified», and the same for the other
            yield body[name].breaks(Breach.TOOL_CHOICE, f"{name} is taken only with tools")


def _parameters(subject: _ExaminedChat) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body = subject.body
    # «Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported»: langchain-ai/langgraph#5943
    yield from rules.conflicting(body, ("max_tokens", "max_completion_tokens"))
    if body["stream_options"] and body["stream"].value is not True:  # «only set this when you set stream: true»
        yield body["stream_options"].breaks(Breach.PARAMETER_CONFLICT, "stream_options is taken only with stream")
    if body["top_logprobs"] and body["logprobs"].value is not True:  # «logprobs must be set to true if … used»
        yield body["top_logprobs"].breaks(Breach.PARAMETER_CONFLICT, "top_logprobs is taken only with logprobs")
    texts = chain((message["content"] for message in subject.messages), subject.everywhere("text"))
    yield from json_asked(body["response_format"], texts)
    wanted = body["response_format"]["json_schema"]
    yield from rules.held(wanted["schema"], "openai", wanted["name"], strict=wanted["strict"].value is True)
    yield from rules.efforts(body["reasoning_effort"], subject.profile.reasoning.efforts)
    fields = ("temperature", "top_p", "logprobs", "top_logprobs")
    yield from rules.unsampled(body, fields, subject.profile, body["reasoning_effort"].value)


def _functions(subject: _ExaminedChat) -> Iterator[Violation]:
    """Check that the model takes functions here.

    «Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. To use function tools, use /v1/responses or
    set reasoning_effort to 'none'»: goruck/home-generative-agent. The effort that is not set counts, too.
    """
    body, profile = subject.body, subject.profile
    if len(body["tools"]) and not profile.tools.functions and body["reasoning_effort"].text != "none":
        way = " or with reasoning_effort 'none'" if "none" in profile.reasoning.efforts else ""
        why = f"this model takes tools in the Responses API only{way}: ask it as openai-responses"
        yield body["tools"].breaks(Breach.PARAMETER_REFUSED, why)


def json_asked(wanted: Spot, texts: Iterable[Spot]) -> Iterator[Violation]:
    """Check that a request for any JSON says so in its texts.

    «'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'»:
    StefanBratanov/jvm-openai#15. The Responses API answers the same.
    """
    if wanted["type"].text == "json_object" and not any("json" in each.text.lower() for each in texts):
        yield wanted["type"].breaks(Breach.JSON_WORD, "no text says JSON, which this format asks for")


# --- other servers -----------------------------------------------------------------------------------------------------


def for_server(api: API, field: str, *, signed: bool = False) -> API:
    """Return the API as a server has it whose messages may have reasoning in a field, or calls with signatures of Google's."""
    assistant = dict(_ASSISTANT)
    if field == "content":
        thinking: Shape = {"thinking": [OPEN], "closed?": (None, bool), **OPEN}
        assistant["content?"] = (None, str, Items(Kinds({"text": _PARTS["text"], "thinking": thinking}), 1))
    elif field == "reasoning_details":
        assistant |= {"reasoning_details?": (None, [OPEN]), "reasoning?": (None, str)}
    elif field:
        assistant |= {"reasoning_content?": (None, str), "reasoning?": (None, str)}
    if signed:
        called = {"function": {**_CALLED, "extra_content?": (None, OPEN)}, "custom": _CUSTOM}
        assistant["tool_calls?"] = Items(Kinds(called), 1)
    shape: Shape = {**REQUEST, "messages": _messages(assistant)}
    return replace(api, shape=shape)


_CHECKS: Final = (_speech, _pairing, _payloads, _toolset, _functions, _parameters)


def _checked(subject: Subject) -> Iterator[Violation]:
    """Check a request against every rule."""
    messages = tuple(subject.body["messages"])
    parts = tuple(part for message in messages for part in message["content"])
    read = _ExaminedChat(subject.body, subject.profile, messages, parts)
    return chain.from_iterable(check(read) for check in _CHECKS)


CHECKS: Final = (_checked,)
