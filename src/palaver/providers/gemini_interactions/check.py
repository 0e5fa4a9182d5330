"""Gemini's Interactions API (POST /v1beta/interactions): its fields, and the rules by which it refuses a request.

After ai.google.dev/gemini-api/docs/interactions-overview and the types of the ``google-genai`` package 3.6 (`interactions`). Steps of kinds that are not
known here pass: the model may have said them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from palaver.wire import rules
from palaver.wire.place import ANY, OPEN, Breach, Items, Kinds, Number, Shape, Spot, Violation, one
from palaver.wire.rules import Attachment, Round, Subject

_MEDIA: dict[str, Shape] = {"data?": str, "uri?": str, "mime_type?": str, **OPEN}
_CONTENT: Final[dict[str, Shape]] = {
    "text": {"text": str, "annotations?": [OPEN]},
    **dict.fromkeys(("image", "audio", "video", "document"), _MEDIA),
}
_SIGNED: dict[str, Shape] = {"signature?": str, **OPEN}
_CALL, _RESULT, _THOUGHT, _USER, _OUTPUT = "function_call", "function_result", "thought", "user_input", "model_output"
SERVED: Final = frozenset(
    f"{name}_{half}"
    for name in (
        "google_search", "code_execution", "url_context", "file_search", "google_maps", "mcp_server_tool", "retrieval",
        "tool_search", "processing",
    )
    for half in ("call", "result")
)  # fmt: skip
"""The kinds of steps that Google's own tools leave."""
_STEPS: Final[dict[str, Shape]] = {
    _USER: {"content": Items(Kinds(_CONTENT), 1)},
    _OUTPUT: {"content?": [Kinds(_CONTENT, others=True)], "error?": OPEN},
    _THOUGHT: {"signature": str, "summary?": [Kinds({"text": {"text": str, **OPEN}}, others=True)], **OPEN},
    _CALL: {"id": str, "name": str, "arguments": OPEN, "signature?": str},
    _RESULT: {
        "call_id": str,
        "name": str,
        "result": (str, [Kinds({**_CONTENT, "function": OPEN})], OPEN),
        "is_error?": bool,
    },
    **dict.fromkeys(SERVED, _SIGNED),
}
_TOOL = Kinds(
    {"function": {"name": str, "description?": str, "parameters?": OPEN, "defer_loading?": bool, "short_description?": str}},
    others=True,
)  # fmt: skip
_CHOICE = one("auto", "any", "none", "validated")
REQUEST: Final[Shape] = {
    "model": str,
    "input": Items(Kinds(_STEPS, others=True), 1),
    "background?": bool,
    "cached_content?": str,
    "continuation_token?": str,
    "generation_config?": {
        "max_output_tokens?": Number(1, whole=True),
        "temperature?": Number(0, 2),
        "top_p?": Number(),
        "seed?": Number(whole=True),
        "stop_sequences?": Items(str, 0, 5),
        "thinking_level?": str,
        "thinking_summaries?": one("auto", "none"),
        "tool_choice?": (_CHOICE, {"allowed_tools": {"mode?": _CHOICE, "tools?": [str]}}),
        **OPEN,
    },
    "response_format?": ANY,
    "store?": bool,
    "stream?": bool,
    "system_instruction?": str,
    "tools?": [_TOOL],
    **OPEN,
}
_OF_USER = frozenset({_USER, _RESULT})


# --- places --------------------------------------------------------------------------------------------------------------


def _kind(step: Spot) -> str:
    return step["type"].text


def _steps(body: Spot, *kinds: str) -> Iterator[Spot]:
    return (step for step in body["input"] if _kind(step) in kinds)


def _pieces(body: Spot, kind: str) -> Iterator[Spot]:
    """Return the pieces of one kind in what is said and in what functions returned."""
    for step in _steps(body, _USER, _OUTPUT, _RESULT):
        for piece in step["result" if _kind(step) == _RESULT else "content"]:
            if piece["type"].text == kind:
                yield piece


# --- turns ---------------------------------------------------------------------------------------------------------------


def _order(subject: Subject) -> Iterator[Violation]:
    """Check who speaks first and last. A function call must follow the user, as in generateContent, so the user begins."""
    steps = list(subject.body["input"])
    if steps and _kind(steps[0]) not in {_USER, ""}:
        yield steps[0]["type"].breaks(Breach.ROLE_FIRST, "the first step must be the user's")
    if steps and _kind(steps[-1]) not in _OF_USER and _kind(steps[-1]) != _CALL and not subject.as_history:
        yield steps[-1]["type"].breaks(Breach.ROLE_LAST, "a request may not end on a step of the model")


def _worded(subject: Subject) -> Iterator[Violation]:
    texts = [piece["text"] for piece in _pieces(subject.body, "text")]
    yield from rules.worded([subject.body["system_instruction"], *texts], subject.profile.turns)


def _pairing(subject: Subject) -> Iterator[Violation]:
    """Check ids, and that the calls of the model have their results, by id and name, before it or the user speaks again."""
    rounds: list[tuple[list[Spot], list[Spot]]] = [([], [])]
    for step in subject.body["input"]:
        calls, results = rounds[-1]
        if _kind(step) == _RESULT:
            results.append(step)
        elif results or (_kind(step) == _USER and calls):
            rounds.append(([step] if _kind(step) == _CALL else [], []))
        elif _kind(step) == _CALL:
            calls.append(step)
    made = [
        Round(tuple(call["id"] for call in calls), tuple(result["call_id"] for result in results))
        for calls, results in rounds
    ]
    yield from rules.identified(made, subject.profile.calls)
    yield from rules.paired(made)
    for calls, results in rounds:
        names = {call["id"].text: call["name"].text for call in calls}
        for result in results:
            if names.get(result["call_id"].text, result["name"].text) != result["name"].text:
                yield result["name"].breaks(Breach.RESULT_NAME, "the call has another name")


def _thoughts(subject: Subject) -> Iterator[Violation]:
    """Check that thoughts are signed, and that one comes before the function calls of the model.

    An unsigned thought is refused (googleapis/js-genai#1735), and so is a call without one: `missing_thought_signature`
    (ai.google.dev/gemini-api/docs/api-errors). A trace of another model has the placeholder of ai.google.dev/gemini-api/docs/thought-signatures.
    """
    thought = False
    for step in subject.body["input"]:
        if _kind(step) in _OF_USER:
            thought = False
        elif _kind(step) == _THOUGHT:
            thought = True
            if step["signature"].value == "":
                yield step["signature"].breaks(Breach.THINKING_SIGNATURE, "a thought goes back with its signature only")
        elif _kind(step) == _CALL and not thought and subject.profile.reasoning.signed_calls:
            yield step.breaks(Breach.THINKING_SIGNATURE, "no thought of the model comes before the call")
            thought = True


# --- media, tools, parameters ----------------------------------------------------------------------------------------------


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    for kind in ("image", "audio", "document"):
        for piece in _pieces(subject.body, kind):
            if piece["data"]:
                yield rules.inline(kind, piece["data"], piece["mime_type"].text)
            elif not piece["uri"]:
                yield piece["data"].breaks(Breach.FIELD_MISSING, f"the {kind} needs data or uri")
            yield from rules.linked(kind, piece["uri"], subject.profile.media, data_urls=False)


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from rules.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check declarations, calls in the history, the choice between functions, and functions together with the provider's own tools."""
    body, limits = subject.body, subject.profile.tools
    own = [tool for tool in body["tools"] if tool["type"].text == "function"]
    names = [tool["name"] for tool in own]
    yield from rules.defined(names, limits)
    yield from rules.called((call["name"] for call in _steps(body, _CALL)), limits)
    for tool in own:
        yield from rules.parameters(tool["parameters"], subject.profile.dialect)
    yield from rules.chosen(body["generation_config"]["tool_choice"]["allowed_tools"]["tools"], names)
    others = [tool for tool in body["tools"] if tool["type"].text != "function"]
    if own and others and not limits.mixed:  # «Tool use with function calling is unsupported»: symfony/ai#803
        yield others[0].breaks(Breach.PARAMETER_CONFLICT, "this model takes tools of its own only without functions")


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body = subject.body
    # «CachedContent can not be used with … setting system_instruction, tools or tool_config»: langchain-ai/langchain-google#978
    yield from rules.conflicting(body, *((name, "cached_content") for name in ("system_instruction", "tools")))
    config = body["generation_config"]
    yield from rules.efforts(config["thinking_level"], subject.profile.reasoning.efforts)
    yield from rules.unsampled(config, ("temperature", "top_p", "top_k"), subject.profile)
    wanted = body["response_format"]
    if isinstance(wanted.value, Mapping) and wanted["mime_type"].text == "application/json":
        yield from rules.held(wanted["schema"], "gemini")
        if len(body["tools"]) and not subject.profile.answers.beside_tools:
            yield wanted.breaks(Breach.PARAMETER_CONFLICT, "this model answers in JSON only without tools")


CHECKS: Final = (_order, _worded, _pairing, _thoughts, _payloads, _toolset, _parameters)
