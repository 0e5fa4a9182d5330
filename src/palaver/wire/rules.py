"""Strict local checks: what a provider would refuse in a request, found before anything is sent.

``validate(request, profile)`` checks the plain body of a request, as it is sent to the provider's HTTP API, for everything that the provider is
known to refuse. The profile has the figures, and its API a shape (the fields) and a row of checks. Here are the rule of every API, that a body
can be read as JSON, and those that several share: turns, calls and results, tools, the structure of answers, and media.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from palaver.errors import InvalidMessage
from palaver.messages import canonical_json
from palaver.messages.media import pixel_size, sniff
from palaver.wire.place import Breach, Spot, Violation, shaped, show
from palaver.wire.schemas import narrowed, not_strict, sound
from palaver.wire.table import Calls, Dialect, MediaLimits, Profile, Tools, Turns


@dataclass(frozen=True, slots=True)
class Subject:
    """A request under examination.

    Attributes:
        body: The request's body.
        profile: What its provider accepts.
        as_history: Whether the body is the record of a conversation rather than the next request: one that ends on the assistant's words is
            then complete.
    """

    body: Spot
    profile: Profile
    as_history: bool


def validate(
    request: Mapping[str, object], profile: Profile, *, as_history: bool = False, data: bytes | None = None
) -> tuple[Violation, ...]:
    """Return everything in a request that its provider would refuse, in the order found.

    The conversation and the tools are checked whole. Of the body's other fields, only those that palaver writes or a rule concerns are checked. Tools that
    the provider runs itself pass, too.

    Args:
        request: The body as it is sent: JSON's types, or mappings and tuples instead of objects and lists.
        profile: What the provider accepts.
        as_history: Whether the body is the record of a conversation. It may then end on the assistant's words, even if the provider refuses such a request.
        data: Its canonical bytes, where they are known.
    """
    subject = Subject(Spot(request), profile, as_history)
    violations = [*_encoded(subject.body, profile.request_bytes, data), *shaped(subject.body, profile.api.shape)]
    for check in profile.api.checks:
        violations.extend(check(subject))
    return tuple(violations)


def conflicting(body: Spot, *pairs: tuple[str, str]) -> Iterator[Violation]:
    """Check that a body has at most one field of each pair; the violation names the first."""
    for first, other in pairs:
        if body[first] and body[other]:
            yield body[first].breaks(Breach.PARAMETER_CONFLICT, f"{first} and {other} may not both be given")


def efforts(effort: Spot, known: Sequence[str]) -> Iterator[Violation]:
    """Check that a model has an effort, where its efforts are known."""
    if known and effort.text and effort.text.lower() not in known:
        yield effort.breaks(Breach.PARAMETER_REFUSED, f"this model takes {', '.join(known)}")


def no_sampling(profile: Profile, effort: object = None) -> str:
    """Return why a model takes no sampling parameters in a request with this effort, or an empty text."""
    if not profile.reasoning.sampling:
        return "this model takes no sampling parameters"
    idle = not profile.reasoning.idle_sampling or effort in (None, "none")
    return "" if idle else "this model takes no sampling parameters while it reasons"


def unsampled(body: Spot, fields: Iterable[str], profile: Profile, effort: object = None) -> Iterator[Violation]:
    """Check that a model that takes no sampling parameters gets none."""
    why = no_sampling(profile, effort)
    for name in fields if why else ():
        if body[name]:
            yield body[name].breaks(Breach.PARAMETER_REFUSED, why)


# --- the body as JSON text: values that JSON has, strings that every server can read, and its size in bytes ---------------

# Surrogates are no characters: UTF-8 cannot carry them (RFC 3629, section 3) and providers answer 400 «invalid high
# surrogate in string» (anthropics/claude-code#68325).
_SURROGATE = re.compile("[\ud800-\udfff]")

Path: TypeAlias = tuple[str | int, ...]

# As the providers' own clients write a body: no escapes but JSON's own.
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, default=dict)


def _encoded(request: Spot, limit: int, data: bytes | None) -> Iterator[Violation]:
    """Check that the body can be written as JSON, has only readable strings and at most ``limit`` bytes of compact UTF-8 JSON."""
    written = data or _written(request.value)
    faults = list(_walked(request)) if written is None or b"\\u0000" in written else []
    yield from faults
    if not faults:
        size = len(_COMPACT.encode(request.value).encode() if written is None else written)
        if size > limit:
            yield request.breaks(Breach.REQUEST_BYTES, f"the body has {size:,} bytes, {limit:,} are taken")


def _written(body: object) -> bytes | None:
    """Return the compact JSON of a body; None where it may have a fault."""
    with suppress(InvalidMessage):
        return canonical_json(body)
    return None


def _walked(request: Spot) -> Iterator[Violation]:
    """Look at every value."""
    waiting: list[tuple[object, Path]] = [(request.value, request.path)]
    while waiting:  # bare values and paths: this walk visits everything, and places are for faults
        value, path = waiting.pop()
        if isinstance(value, str):
            yield from _string(value, path)
        elif isinstance(value, Mapping):
            for key, member in value.items():
                if isinstance(key, str):
                    yield from _string(key, (*path, key))
                    waiting.append((member, (*path, key)))
                else:
                    yield Spot(key, (*path, repr(key))).breaks(Breach.NOT_JSON, f"the key {show(key)} is no string")
        elif isinstance(value, list | tuple):
            waiting.extend((element, (*path, number)) for number, element in enumerate(value))
        elif not (value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))):
            yield Spot(value, path).breaks(Breach.NOT_JSON, f"JSON has no {show(value)}")


def _string(text: str, path: Path) -> Iterator[Violation]:
    """Refuse surrogates and NUL in a string.

    NUL is legal JSON, but no provider documents that it accepts one, and requests die of it (anthropics/claude-code#94408).
    """
    if "\x00" in text:
        yield Spot(text, path).breaks(Breach.NUL, f"character {text.index(chr(0))} is NUL")
    if not text.isascii() and (surrogate := _SURROGATE.search(text)):
        yield Spot(text, path).breaks(Breach.LONE_SURROGATE, f"character {surrogate.start()} is a lone surrogate")


# --- turns -------------------------------------------------------------------------------------------------------------


def ordered(messages: Sequence[Spot], rules: Turns) -> Iterator[Violation]:
    """Check who speaks first and that the two sides alternate; a missing role is the first side's."""
    roles = [message["role"].text or rules.first for message in messages]
    if roles and rules.first and roles[0] != rules.first:
        yield messages[0]["role"].breaks(Breach.ROLE_FIRST, f"the first message must be the {rules.first}'s")
    for number in range(1, len(roles)):
        if rules.alternate and roles[number] == roles[number - 1]:
            yield messages[number]["role"].breaks(Breach.ROLE_ALTERNATION, "the message before has the same role")


def worded(texts: Iterable[Spot], rules: Turns) -> Iterator[Violation]:
    """Check that texts say something, as far as the provider demands it, and are not too long."""
    for text in texts:
        if isinstance(text.value, str):
            if rules.text != "any" and not text.value:
                yield text.breaks(Breach.TEXT_EMPTY, "the text is empty")
            elif rules.text == "visible" and not text.value.strip():
                yield text.breaks(Breach.TEXT_EMPTY, "the text is only white space")
            if len(text.value) > rules.text_characters:
                message = f"{len(text.value):,} characters, {rules.text_characters:,} are taken"
                yield text.breaks(Breach.TEXT_LENGTH, message)


def named(names: Iterable[Spot], rules: Turns) -> Iterator[Violation]:
    """Check the names of participants, where messages have any."""
    for name in names:
        if rules.name is not None and isinstance(name.value, str) and not rules.name.fullmatch(name.value):
            yield name.breaks(Breach.PARTICIPANT_NAME, f"{show(name.text)} does not match {rules.name.pattern}")


# --- calls and results -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """The calls of one assistant turn and the results where they are expected, each by the place of its id.

    Results at any other place make a round of their own, without calls.
    """

    calls: tuple[Spot, ...] = ()
    results: tuple[Spot, ...] = ()


def _spelled(ids: Iterable[Spot]) -> list[Spot]:
    """Return the ids that are strings; the shapes report missing and mistyped ones."""
    return [each for each in ids if isinstance(each.value, str)]


def identified(rounds: Iterable[Round], rules: Calls) -> Iterator[Violation]:
    """Check the form of every call's id, that no other call has it, and how many calls one turn has."""
    seen: set[str] = set()
    for turn in rounds:
        if rules.unique == "turn":
            seen = set()
        if rules.most is not None and len(turn.calls) > rules.most:
            message = f"{len(turn.calls)} calls in one turn, {rules.most} are taken"
            yield turn.calls[rules.most].breaks(Breach.CALL_COUNT, message)
        for call in _spelled(turn.calls):
            if not rules.id.fullmatch(call.text):
                yield call.breaks(Breach.CALL_ID, f"{show(call.text)} does not match {rules.id.pattern}")
            if call.text in seen:
                yield call.breaks(Breach.CALL_DUPLICATE, f"{show(call.text)} is the id of an earlier call")
            seen.add(call.text)


def paired(rounds: Sequence[Round]) -> Iterator[Violation]:
    """Check that every call has exactly one result in its round and every result a call there.

    A result that is only in the wrong place is reported once, as that, and its call not as unanswered.
    """
    open_calls: list[Spot] = []
    strays: list[Spot] = []
    for turn in rounds:
        calls, results = _spelled(turn.calls), _spelled(turn.results)
        known = {call.text for call in calls}
        answered = Counter[str]()
        for result in results:
            answered[result.text] += 1
            if answered[result.text] > 1 and result.text in known:
                yield result.breaks(Breach.RESULT_DUPLICATE, f"{show(result.text)} has a result already")
        open_calls += [call for call in calls if call.text not in answered]
        strays += [result for result in results if result.text not in known]
    misplaced = {call.text for call in open_calls} & {stray.text for stray in strays}
    for call in open_calls:
        if call.text not in misplaced:
            yield call.breaks(Breach.CALL_UNANSWERED, f"no result for {show(call.text)} where it is looked for")
    for stray in strays:
        if stray.text in misplaced:
            yield stray.breaks(Breach.RESULT_PLACE, f"the result of {show(stray.text)} is not where it is looked for")
        else:
            yield stray.breaks(Breach.RESULT_ORPHAN, f"no call {show(stray.text)} that this could be the result of")


def json_arguments(arguments: Iterable[Spot]) -> Iterator[Violation]:
    """Check that the arguments of calls are the text of a JSON object.

    OpenAI itself accepts any text back; servers of its APIs parse the history and refuse every later request (vllm-project/vllm#43995, #48006,
    sgl-project/sglang#28035).
    """
    for text in arguments:
        if isinstance(text.value, str):
            try:
                read = json.loads(text.value, parse_constant=_refuse)
            except (ValueError, RecursionError):
                read = None
            if not isinstance(read, dict):
                yield text.breaks(Breach.CALL_ARGUMENTS, f"expected the JSON of an object, got {show(text.value)}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # JSON has no NaN and no infinity


# --- tools -------------------------------------------------------------------------------------------------------------


def defined(names: Sequence[Spot], rules: Tools) -> Iterator[Violation]:
    """Check the names of the tools that a request defines, that no two are the same, and how many there are."""
    if rules.most is not None and len(names) > rules.most:
        yield names[rules.most].breaks(Breach.TOOL_COUNT, f"{len(names)} tools, {rules.most} are taken")
    yield from called(names, rules)
    seen: set[str] = set()
    for name in names:
        if name and name.text in seen:
            yield name.breaks(Breach.TOOL_DUPLICATE, f"{show(name.text)} is defined already")
        seen.add(name.text)


def called(names: Iterable[Spot], rules: Tools) -> Iterator[Violation]:
    """Check the names of the tools that calls in the history were made to: they need not be defined any more."""
    for name in names:
        if isinstance(name.value, str) and not rules.name.fullmatch(name.value):
            yield name.breaks(Breach.TOOL_NAME, f"{show(name.text)} does not match {rules.name.pattern}")


def chosen(choices: Iterable[Spot], names: Sequence[Spot]) -> Iterator[Violation]:
    """Check that every tool that a choice names is defined."""
    known = {name.text for name in names}
    for choice in choices:
        if isinstance(choice.value, str) and choice.text not in known:
            yield choice.breaks(Breach.TOOL_CHOICE, f"no tool {show(choice.text)} is defined")


def parameters(schema: Spot, dialect: Dialect, *, strict: bool = False) -> Iterator[Violation]:
    """Check a tool's parameter schema: sound, an object at the top, and nothing but properties there.

    Anthropic: «input_schema does not support oneOf, allOf, or anyOf at the top level» (anthropics/claude-code#27337).
    OpenAI: «must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level»
    (nspady/google-calendar-mcp#39). Gemini: «parameters schema should be of type OBJECT» (diegosouzapw/OmniRoute#3360).
    """
    yield from _sound(schema, Breach.TOOL_SCHEMA)
    for word in ("oneOf", "anyOf", "allOf", *(("enum", "not") if dialect == "openai" else ())):
        if word in schema:
            yield schema[word].breaks(Breach.TOOL_SCHEMA, f"{word} is not taken at the top")
    for array in _arrays(schema) if dialect == "openai" else ():
        if "items" not in array:  # «array schema missing items»: modelscope/ms-agent#610
            yield array["items"].breaks(Breach.TOOL_SCHEMA, "an array must say what its items are")
    if strict and isinstance(schema.value, Mapping) and (why := not_strict(_plain(schema.value))):
        yield schema.breaks(Breach.TOOL_SCHEMA, f"not taken in a strict tool: {why}")


def _sound(schema: Spot, rule: Breach) -> Iterator[Violation]:
    lost: list[str] = []
    if isinstance(schema.value, Mapping):  # the shapes report anything else
        sound(_plain(schema.value), "", lost)
        if schema["type"].text.lower() != "object":
            yield schema["type"].breaks(rule, f"must be object at the top, got {show(schema['type'].value)}")
    for what in lost:
        yield schema.breaks(rule, what)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Copy a value into plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _arrays(schema: Spot) -> Iterator[Spot]:
    waiting = [schema]
    while waiting:
        place = waiting.pop()
        if place["type"].value == "array":
            yield place
        waiting.extend(member for _, member in place.members())
        waiting.extend(place)


# --- answers -----------------------------------------------------------------------------------------------------------

_ANSWER_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # ResponseFormatJSONSchema.name, API reference


def held(schema: Spot, dialect: Dialect, name: Spot | None = None, *, strict: bool = True) -> Iterator[Violation]:
    """Check the name and the schema of a format; a model must follow it when it is ``strict``.

    «'allOf' is not permitted», «'default' is not permitted» and their like are OpenAI's answers to what a strict schema may not have.
    """
    if name is not None and isinstance(name.value, str) and not _ANSWER_NAME.fullmatch(name.value):
        yield name.breaks(Breach.ANSWER_NAME, f"{show(name.text)} does not match {_ANSWER_NAME.pattern}")
    faults = list(_sound(schema, Breach.ANSWER_SCHEMA))
    yield from faults
    if faults or not strict or dialect == "gemini" or not isinstance(schema.value, Mapping):
        return
    given: Any = _plain(schema.value)
    narrow = narrowed(given, dialect)
    listed = [narrow.obstacle] if narrow.obstacle else [f"{place} is not taken" for place in narrow.told]
    listed += [f"{place} must be required" for place in narrow.required]
    if not listed and narrow.schema != given:
        listed = ["an object is open, or a word in it is not taken"]
    for what in listed:
        yield schema.breaks(Breach.ANSWER_SCHEMA, f"answers cannot be held to it: {what}")


# --- images, sound and documents ----------------------------------------------------------------------------------------

# RFC 2397, with the base64 extension that every provider asks for.
_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_SCHEME = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://[^/\s]")
SNIFFED = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The image types that `sniff` recognises."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")

AttachmentKind = Literal["image", "audio", "document"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """One payload in a request.

    Attributes:
        kind: `image`, `audio` or `document`.
        at: Its place.
        media_type: The declared type; empty for an address.
        data: Its base64; None for an address.
    """

    kind: AttachmentKind
    at: Spot
    media_type: str = ""
    data: str | None = None


def inline(kind: AttachmentKind, data: Spot, media_type: str) -> Attachment:
    """Return a payload that is written as bare base64."""
    return Attachment(kind, data, media_type, data.text if isinstance(data.value, str) else None)


def linked(
    kind: AttachmentKind, url: Spot, limits: MediaLimits, *, data_urls: bool
) -> Iterator[Violation | Attachment]:
    """Return the attachment at an address, or the fault of the address. ``data_urls`` permits an address that contains the payload."""
    if not isinstance(url.value, str):
        return  # a missing or mistyped field is the shape's business
    if url.text.startswith("data:"):
        match = _DATA_URL.fullmatch(url.text)
        if not data_urls:
            yield url.breaks(Breach.MEDIA_URL, "a data URL is not fetched; send its base64 as data")
        elif match is None:
            yield url.breaks(Breach.MEDIA_DATA, "not of the form data:TYPE;base64,DATA")
        else:
            yield Attachment(kind, url, match["type"].lower(), match["data"])
        return
    scheme = _SCHEME.match(url.text)
    if scheme is None or scheme["scheme"].lower() not in limits.schemes:
        taken = ", ".join(sorted(limits.schemes)) or "none"
        yield url.breaks(Breach.MEDIA_URL, f"{show(url.text)} is no address that is fetched (schemes: {taken})")
    else:
        yield Attachment(kind, url)


def attached(found: Iterable[Violation | Attachment], limits: MediaLimits) -> Iterator[Violation]:
    """Check every attachment of a request, and count the images; faults of addresses pass through."""
    attachments: list[Attachment] = []
    for attachment in found:
        if isinstance(attachment, Violation):
            yield attachment
        else:
            attachments.append(attachment)
    images = [attachment for attachment in attachments if attachment.kind == "image"]
    if len(images) > limits.count:
        yield images[limits.count].at.breaks(Breach.MEDIA_COUNT, f"{len(images)} images, {limits.count} are taken")
    crowded = limits.crowd is not None and len(images) > limits.crowd
    side = limits.crowd_side if crowded else limits.side
    for attachment in attachments:
        yield from _payload(attachment, limits, side)


def _payload(attachment: Attachment, limits: MediaLimits, side: int | None) -> Iterator[Violation]:
    """Check one payload's type, encoding, bytes and pixels; an address has none."""
    if attachment.data is None:
        return
    kinds = {"image": limits.images, "audio": limits.audio, "document": limits.documents}[attachment.kind]
    if attachment.media_type not in kinds:
        taken = ", ".join(sorted(kinds)) or "none"
        yield attachment.at.breaks(
            Breach.MEDIA_KIND, f"{show(attachment.media_type)} is not taken as {attachment.kind} ({taken})"
        )
        return
    data = decode(attachment.data)
    if not data:
        yield attachment.at.breaks(Breach.MEDIA_DATA, "not base64" if data is None else "no bytes")
        return
    if attachment.kind == "image":
        if len(attachment.data) > limits.image_bytes:
            size = f"{len(attachment.data):,} bytes in base64, {limits.image_bytes:,} are taken"
            yield attachment.at.breaks(Breach.MEDIA_BYTES, size)
        yield from _picture(attachment, data, side)


def _picture(attachment: Attachment, data: bytes, side: int | None) -> Iterator[Violation]:
    """Compare the bytes of an image with its declared type, and its longer side with the limit."""
    if attachment.media_type not in SNIFFED:
        return
    actual = sniff(data, "image")
    if actual != attachment.media_type:
        yield attachment.at.breaks(
            Breach.MEDIA_MISMATCH, f"declared {attachment.media_type}, the bytes are {actual or 'no image'}"
        )
        return
    longer = max(pixel_size(data) or (0,))
    if side is not None and longer > side:
        yield attachment.at.breaks(Breach.MEDIA_SIDE, f"the longer side has {longer} pixels, {side} are taken")


def decode(text: str) -> bytes | None:
    """Decode base64 in either alphabet (RFC 4648, sections 4 and 5), padded and without white space; return None for anything else."""
    try:
        return binascii.a2b_base64(text.encode("ascii").translate(_URL_SAFE), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
