"""OpenAI's Responses API (POST /v1/responses): its fields, and the rules by which it refuses a request.

After the specification in github.com/openai/openai-openapi, ``response_create_params`` of the ``openai`` package, and the API's own answers, quoted in the
threads that the rules name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from palaver.providers.openai_chat.check import EFFORTS, MARKED, RESPONSE_FORMAT, SHARED, json_asked
from palaver.providers.openai_responses.items import LED_TO, OWN
from palaver.wire import rules
from palaver.wire.place import OPEN, Breach, Kinds, Number, Shape, Spot, Violation, one, show
from palaver.wire.rules import Attachment, Round, Subject

_DETAIL: dict[str, Shape] = {"detail?": one("auto", "low", "high", "original")}
_STATUS: dict[str, Shape] = {"status?": (None, one("in_progress", "completed", "incomplete"))}
_INPUT: Final[dict[str, Shape]] = {
    "input_text": {"text": str, **MARKED},
    "input_image": {"image_url?": (None, str), "file_id?": (None, str), **_DETAIL, **MARKED},
    "input_file": {
        "file_data?": str, "file_id?": (None, str), "file_url?": str, "filename?": str, **_DETAIL, **MARKED,
    },
}  # fmt: skip
_OUTPUT: Final[dict[str, Shape]] = {
    # The reference asks for annotations; the API takes text without them (langchain-ai/langchainjs#11169).
    "output_text": {"text": str, "annotations?": [OPEN], "logprobs?": [OPEN]},
    "refusal": {"refusal": str},
}
_ALL = frozenset(_INPUT | _OUTPUT)


def _parts_of(kinds: dict[str, Shape]) -> tuple[Shape, ...]:
    return (str, [Kinds(kinds, elsewhere=_ALL - kinds.keys())])


_SAID: dict[str, Shape] = {"content": _parts_of(_INPUT), "type?": one("message"), **_STATUS}
_ANSWERED: dict[str, Shape] = {
    **_SAID,
    "content": _parts_of(_OUTPUT),
    "id?": str,
    "phase?": (None, one("commentary", "final_answer")),
}
_MESSAGE = Kinds(
    {"user": _SAID, "system": _SAID, "developer": _SAID, "assistant": _ANSWERED},
    key="role",
    rule=Breach.ROLE_UNKNOWN,
)
_ITEM: dict[str, Shape] = {"id?": (None, str), "caller?": (None, OPEN), **_STATUS}
_FROM: dict[str, Shape] = {"namespace?": str, "async?": bool}
_ITEMS: Final[dict[str, Shape]] = {
    "function_call": {"call_id": str, "name": str, "arguments": str, **_FROM, **_ITEM},
    "function_call_output": {
        "call_id": str, "output": _parts_of(_INPUT), "name?": (None, str), "namespace?": (None, str), **_ITEM,
    },
    "custom_tool_call": {"call_id": str, "name": str, "input": str, **_FROM, **_ITEM},
    "custom_tool_call_output": {"call_id": str, "output": _parts_of(_INPUT), **_ITEM},
    "reasoning": {
        **_ITEM,
        "id": str,
        "summary": [{"type": one("summary_text"), "text": str}],
        "content?": (None, [{"type": one("reasoning_text"), "text": str}]),
        "encrypted_content?": (None, str),
    },
    "item_reference": {"id": str},
    "compaction": {"encrypted_content": str, "id?": (None, str)},
    # What the provider's own tools leave. It goes back unchanged; its inside is theirs.
    **dict.fromkeys(OWN - {"compaction"}, OPEN),
}  # fmt: skip
_TOOL = Kinds({
    "function": {
        "name": str, "parameters?": (None, OPEN), "description?": (None, str), "strict?": (None, bool), "async?": bool,
        "allowed_callers?": (None, [str]), "defer_loading?": bool, "output_schema?": (None, OPEN),
    },
    "custom": {"name": str, "description?": str, "format?": OPEN, **OPEN},
}, others=True)  # fmt: skip
_TOOL_CHOICE = (
    one("none", "auto", "required"),
    Kinds(
        {
            "function": {"name": str},
            "custom": {"name": str},
            "allowed_tools": {"mode": one("auto", "required"), "tools": [OPEN]},
        },
        others=True,
    ),
)


class _Input:
    """An item of the input: a message, recognised by its role, where it names no type."""

    _items = Kinds(_ITEMS, others=True)  # a kind that nobody knows yet is one that the model's provider made

    def _kinds(self, place: Spot) -> Kinds:
        """Choose by the type."""
        return _MESSAGE if _kind(place) == "message" else self._items

    def fits(self, value: object) -> bool:
        """Compare an item without its place."""
        return self._kinds(Spot(value)).fits(value)

    def check(self, place: Spot) -> Iterator[Violation]:
        """Compare an item."""
        return self._kinds(place).check(place)


REQUEST: Final[Shape] = {
    **SHARED,
    "model": str,
    "input": (str, [_Input()]),
    "conversation?": (None, str, {"id": str}),
    "instructions?": (None, str),
    "max_output_tokens?": (None, Number(16, whole=True)),
    "previous_response_id?": (None, str),
    "reasoning?": (None, {"effort?": (None, EFFORTS), **OPEN}),
    "text?": {
        "format?": Kinds({"text": {}, "json_object": {}, "json_schema": RESPONSE_FORMAT | {"schema": OPEN}}),
        **OPEN,
    },
    "tool_choice?": _TOOL_CHOICE,
    "tools?": [_TOOL],
}  # fmt: skip

# «Expected an ID that begins with 'fc'»: continuedev/continue#11494; 'msg': openai/codex#33176; 'rs':
# jlcodes99/cockpit-tools#2090; 'ctc': Alishahryar1/free-claude-code#1826.
_PREFIXES: Mapping[str, str] = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
# «Expected an ID that contains letters, numbers, underscores, or dashes»: anomalyco/opencode#25065. The length is that of
# every id the API gives: maxLength 64 in the specification.
_ITEM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


# --- places ------------------------------------------------------------------------------------------------


def _kind(item: Spot) -> str:
    return item["type"].text if "type" in item else "message"


def _items(body: Spot, *kinds: str) -> Iterator[Spot]:
    for item in body["input"]:
        if not kinds or _kind(item) in kinds:
            yield item


def _parts(body: Spot, *kinds: str) -> Iterator[Spot]:
    """Return the parts of these kinds in messages and in what tools returned."""
    for item in _items(body, "message", *_OUTPUTS):
        for part in item["content" if _kind(item) == "message" else "output"]:
            if part["type"].text in kinds:
                yield part


def _texts(body: Spot) -> Iterator[Spot]:
    yield from (body["input"], body["instructions"])
    yield from (item["content"] for item in _items(body, "message"))
    yield from (item["output"] for item in _items(body, *_OUTPUTS))
    yield from (part["text"] for part in _parts(body, "input_text", "output_text"))


# --- items -------------------------------------------------------------------------------------------------------------


def _identity(subject: Subject) -> Iterator[Violation]:
    """Check the ids of items: their form, the prefix of their kind, and that no two are the same."""
    seen: set[str] = set()
    for item in _items(subject.body):
        identity, prefix = item["id"], _PREFIXES.get(_kind(item), "")
        if not isinstance(identity.value, str):
            continue
        if not _ITEM_ID.fullmatch(identity.text):
            yield identity.breaks(Breach.ITEM_ID, f"{show(identity.text)} does not match {_ITEM_ID.pattern}")
        elif not identity.text.startswith(prefix):
            yield identity.breaks(Breach.ITEM_ID, f"the id of a {_kind(item)} begins with {prefix}")
        if identity.text in seen:  # «Duplicate item found with id»: continuedev/continue#10723
            yield identity.breaks(Breach.ITEM_DUPLICATE, f"{show(identity.text)} is the id of an earlier item")
        seen.add(identity.text)


def _reasoning(subject: Subject) -> Iterator[Violation]:
    """Check that what each reasoning item led to follows it at once, and that nothing refers to what the provider does not store.

    «Item 'rs_…' of type 'reasoning' was provided without its required following item»: vercel/ai#7099. The model's own message or call follows,
    or a reference, of which only the provider knows to what. Several in a row are refused too (UKGovernmentBEIS/inspect_ai#1990).
    «Item with id 'rs_…' not found. Items are not persisted when `store` is set to false»: vercel/ai#7543.
    """
    items = list(_items(subject.body))
    for item, after in zip(items, [*items[1:], Spot(None)], strict=False):
        if _kind(item) == "reasoning":
            spoken = _kind(after) == "message" and after["role"].text == "assistant"
            if not spoken and not (LED_TO.fullmatch(_kind(after)) or _kind(after) == "item_reference"):
                yield item["type"].breaks(Breach.REASONING_FOLLOW, "reasoning must be followed by what it led to")
        stored = subject.body["store"].value is not False or item["encrypted_content"].text
        if _kind(item) in ("reasoning", "item_reference") and not stored:
            yield item["id"].breaks(Breach.ITEM_UNSTORED, "store is false: the item must bring its encrypted content")


def _pairing(subject: Subject) -> Iterator[Violation]:
    """Check ids, arguments, and that each call has one output, somewhere after it.

    «No tool output found for function call»: tjardoo/openai-client#124. «No tool call found for function call output»:
    can1357/oh-my-pi#106. Calls of an earlier response that the provider keeps are not here to be looked at.
    """
    body = subject.body
    stored = any(body[name] for name in ("previous_response_id", "conversation"))
    elsewhere = stored or any(_items(body, "item_reference"))
    made = tuple(item["call_id"] for item in _items(body, *_CALLS))
    known = {call_id.text for call_id in made}
    yield from rules.identified([Round(made)], subject.profile.calls)
    for call, output in zip(_CALLS, _OUTPUTS, strict=True):  # the output of a call is of its kind
        results = [item["call_id"] for item in _items(body, output)]
        calls = tuple(item["call_id"] for item in _items(body, call))
        yield from rules.paired(
            [Round(calls, tuple(call_id for call_id in results if call_id.text in known or not elsewhere))]
        )
    yield from rules.json_arguments(item["arguments"] for item in _items(body, "function_call"))
    seen: set[str] = set()
    for item in _items(body, *_CALLS, *_OUTPUTS):
        if _kind(item) in _CALLS:
            seen.add(item["call_id"].text)
        elif item["call_id"].text in known - seen:
            yield item["call_id"].breaks(Breach.RESULT_PLACE, "the output stands before its call")


# --- texts, media, tools, parameters -----------------------------------------------------------------------------------


def _worded(subject: Subject) -> Iterator[Violation]:
    return rules.worded(_texts(subject.body), subject.profile.turns)


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    limits = subject.profile.media
    for part in _parts(subject.body, "input_image"):
        if not part["image_url"] and not part["file_id"]:
            yield part["image_url"].breaks(Breach.FIELD_MISSING, "an image needs image_url or file_id")
        yield from rules.linked("image", part["image_url"], limits, data_urls=True)
    for part in _parts(subject.body, "input_file"):
        yield from rules.linked("document", part["file_url"], limits, data_urls=False)
        yield from rules.linked("document", part["file_data"], limits, data_urls=True)


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from rules.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check definitions, calls in the history and the choice between tools."""
    body, profile = subject.body, subject.profile
    added = [tool for item in _items(body, "additional_tools") for tool in item["tools"]]
    listed = (*body["tools"], *added)
    grouped = (tool for group in listed if group["type"].text == "namespace" for tool in group["tools"])
    own = [tool for tool in (*listed, *grouped) if tool["type"].text in ("function", "custom")]
    names = [tool["name"] for tool in own]
    yield from rules.defined(names, profile.tools)
    yield from rules.called((item["name"] for item in _items(body, *_CALLS)), profile.tools)
    for tool in own:
        yield from rules.parameters(tool["parameters"], profile.dialect, strict=tool["strict"].value is True)
    choice = body["tool_choice"]
    chosen = [
        choice_of["name"]
        for choice_of in (choice, *choice["tools"])
        if choice_of["type"].text in ("function", "custom")
    ]
    yield from rules.chosen(chosen, names)
    if choice.value == "required" and not len(body["tools"]):
        yield choice.breaks(Breach.TOOL_CHOICE, "there are no tools to choose from")


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body = subject.body
    yield from rules.conflicting(body, ("previous_response_id", "conversation"))  # «cannot be used in conjunction»
    if body["stream_options"] and body["stream"].value is not True:  # «only set this when you set stream: true»
        yield body["stream_options"].breaks(Breach.PARAMETER_CONFLICT, "stream_options is taken only with stream")
    wanted = body["text"]["format"]
    yield from json_asked(wanted, list(_texts(body)))
    if wanted["type"].text == "json_schema":
        yield from rules.held(wanted["schema"], "openai", wanted["name"], strict=wanted["strict"].value is True)
    yield from rules.efforts(body["reasoning"]["effort"], subject.profile.reasoning.efforts)
    fields, effort = ("temperature", "top_p", "top_logprobs"), body["reasoning"]["effort"].value
    yield from rules.unsampled(body, fields, subject.profile, effort)


CHECKS: Final = (_identity, _reasoning, _pairing, _worded, _payloads, _toolset, _parameters)
