"""What OpenAI's Responses API would refuse.

Sources: the API reference and specification, and the API's own answers as quoted in the threads beside the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from palaver.wire.check import answers, calls, examine, media, tools, turns
from palaver.wire.check.calls import Round
from palaver.wire.check.examine import Subject
from palaver.wire.check.media import Attachment
from palaver.wire.check.openai_chat import formatted, json_asked
from palaver.wire.check.shape import show
from palaver.wire.check.shapes.openai_responses import REQUEST
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "validate"]

# «Expected an ID that begins with 'fc'»: continuedev/continue#11494; 'msg': openai/codex#33176; 'rs':
# jlcodes99/cockpit-tools#2090; 'ctc': Alishahryar1/free-claude-code#1826.
_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "message": "msg",
        "function_call": "fc",
        "custom_tool_call": "ctc",
        "reasoning": "rs",
    }
)
# «Expected an ID that contains letters, numbers, underscores, or dashes»: anomalyco/opencode#25065. The length is that of
# every id the API gives: maxLength 64 in the specification.
_ITEM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Give everything in a Responses request that the API would refuse; nothing when it would take it."""
    return examine.run(request, profile, REQUEST, _CHECKS, as_history=as_history)


# --- where things stand ------------------------------------------------------------------------------------------------


def _kind(item: Place) -> str:
    return item["type"].text if "type" in item else "message"


def _items(body: Place, *kinds: str) -> Iterator[Place]:
    for item in body["input"]:
        if not kinds or _kind(item) in kinds:
            yield item


def _parts(body: Place, *kinds: str) -> Iterator[Place]:
    """Give the parts of these kinds in messages and in what tools gave back."""
    for item in _items(body, "message", *_OUTPUTS):
        for part in item["content" if _kind(item) == "message" else "output"]:
            if part["type"].text in kinds:
                yield part


def _texts(body: Place) -> Iterator[Place]:
    yield from (body["input"], body["instructions"])
    yield from (item["content"] for item in _items(body, "message"))
    yield from (item["output"] for item in _items(body, *_OUTPUTS))
    yield from (part["text"] for part in _parts(body, "input_text", "output_text"))


# --- items -------------------------------------------------------------------------------------------------------------


def _identity(subject: Subject) -> Iterator[Violation]:
    """Check the ids of items: their form, the beginning that tells their kind, and that no two are the same."""
    seen: set[str] = set()
    for item in _items(subject.body):
        identity, prefix = item["id"], _PREFIXES.get(_kind(item), "")
        if not isinstance(identity.value, str):
            continue
        if not _ITEM_ID.fullmatch(identity.text):
            yield identity.breaks(Rule.ITEM_ID, f"{show(identity.text)} does not match {_ITEM_ID.pattern}")
        elif not identity.text.startswith(prefix):
            yield identity.breaks(Rule.ITEM_ID, f"the id of a {_kind(item)} begins with {prefix}")
        if identity.text in seen:  # «Duplicate item found with id»: continuedev/continue#10723
            yield identity.breaks(Rule.ITEM_DUPLICATE, f"{show(identity.text)} is the id of an earlier item")
        seen.add(identity.text)


def _reasoning(subject: Subject) -> Iterator[Violation]:
    """Check that each reasoning item is followed by what it led to, at once.

    «Item 'rs_…' of type 'reasoning' was provided without its required following item»: vercel/ai#7099. What follows is the
    model's own: its message or a call, or a reference, of which only the provider knows to what. Several in a row are refused too
    (UKGovernmentBEIS/inspect_ai#1990).
    """
    items = list(_items(subject.body))
    for item, after in zip(items, [*items[1:], Place(None)], strict=False):
        if _kind(item) != "reasoning":
            continue
        spoken = _kind(after) == "message" and after["role"].text == "assistant"
        if not spoken and not _kind(after).endswith(("_call", "item_reference")):
            yield item["type"].breaks(Rule.REASONING_FOLLOW, "reasoning must be followed by what it led to")


def _stored(subject: Subject) -> Iterator[Violation]:
    """Check that nothing refers to what the provider was told not to keep.

    «Item with id 'rs_…' not found. Items are not persisted when `store` is set to false»: vercel/ai#7543.
    """
    if subject.body["store"].value is not False:
        return
    for item in _items(subject.body, "reasoning", "item_reference"):
        if not item["encrypted_content"].text:
            yield item["id"].breaks(Rule.ITEM_UNSTORED, "store is false: the item must bring its encrypted content")


def _pairing(subject: Subject) -> Iterator[Violation]:
    """Check ids, arguments, and that each call has one output, somewhere after it.

    «No tool output found for function call»: tjardoo/openai-client#124. «No tool call found for function call output»:
    can1357/oh-my-pi#106. Calls of an earlier response that the provider keeps are not here to be looked at.
    """
    body = subject.body
    elsewhere = any(body[name] for name in ("previous_response_id", "conversation")) or any(
        _items(body, "item_reference")
    )
    made = tuple(item["call_id"] for item in _items(body, *_CALLS))
    known = {each.text for each in made}
    results = tuple(
        item["call_id"] for item in _items(body, *_OUTPUTS) if item["call_id"].text in known or not elsewhere
    )
    yield from calls.identified([Round(made)], subject.profile.calls)
    yield from calls.paired([Round(made, results)])
    yield from calls.strings(item[_CALLS[_kind(item)]] for item in _items(body, *_CALLS))
    called: set[str] = set()
    for item in _items(body, *_CALLS, *_OUTPUTS):
        if _kind(item) in _CALLS:
            called.add(item["call_id"].text)
        elif item["call_id"].text in known - called:
            yield item["call_id"].breaks(Rule.RESULT_PLACE, "the output stands before its call")


# --- texts, media, tools, parameters -----------------------------------------------------------------------------------


def _worded(subject: Subject) -> Iterator[Violation]:
    return turns.worded(_texts(subject.body), subject.profile.turns)


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    limits = subject.profile.media
    for part in _parts(subject.body, "input_image"):
        if not part["image_url"] and not part["file_id"]:
            yield part["image_url"].breaks(Rule.FIELD_MISSING, "an image needs image_url or file_id")
        yield from media.linked("image", part["image_url"], limits, data_urls=True)
    for part in _parts(subject.body, "input_file"):
        yield from media.linked("document", part["file_url"], limits, data_urls=False)
        yield from media.linked("document", part["file_data"], limits, data_urls=True)


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from media.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check definitions, calls in the history and the choice between tools."""
    body, rules = subject.body, subject.profile.tools
    own = [tool for tool in body["tools"] if tool["type"].text in ("function", "custom")]
    names = [tool["name"] for tool in own]
    yield from tools.defined(names, rules)
    yield from tools.called((item["name"] for item in _items(body, *_CALLS)), rules)
    for tool in own:
        yield from tools.parameters(tool["parameters"], rules, strict=tool["strict"].value is True)
    choice = body["tool_choice"]
    listed = [each["name"] for each in choice["tools"] if each["type"].text in ("function", "custom")]
    named = [choice["name"]] if choice["type"].text in ("function", "custom") else []
    yield from tools.chosen([*named, *listed], names)
    if choice.value == "required" and not len(body["tools"]):
        yield choice.breaks(Rule.TOOL_CHOICE, "there are no tools to choose from")


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body = subject.body
    yield from examine.conflicting(body, ("previous_response_id", "conversation"))  # «cannot be used in conjunction»
    if body["stream_options"] and body["stream"].value is not True:  # «only set this when you set stream: true»
        yield body["stream_options"].breaks(Rule.PARAMETER_CONFLICT, "stream_options is taken only with stream")
    yield from json_asked(body["text"]["format"], list(_texts(body)))
    if body["text"]["format"]["type"].text == "json_schema":
        yield from formatted(body["text"]["format"], subject)


_CHECKS = (_identity, _reasoning, _stored, _pairing, _worded, _payloads, _toolset, _parameters)

RULES = (
    examine.RULES
    | (turns.RULES - {Rule.ROLE_FIRST, Rule.ROLE_ALTERNATION})  # items have no turns
    | calls.RULES
    | media.RULES
    | tools.RULES
    | answers.RULES
    | {Rule.ANSWER_NAME, Rule.ITEM_ID, Rule.ITEM_DUPLICATE, Rule.ITEM_UNSTORED, Rule.REASONING_FOLLOW, Rule.JSON_WORD}
)
