"""Plain message lists: the messages of an API or a page, written as JSON.

Each has four shapes: an array of messages; an object with `messages`, or what else the API calls them (and its instructions and tools, the answer as
`response` or `choices`); an array, or JSON lines, of such objects; JSON lines of messages. The dialect is found from the messages, as `palaver.dialects` does.
A message of chat completions or Anthropic's with keys of neither is another program's record, and a list of such messages is not a plain list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from palaver.dialects import dialect_of, item_reader
from palaver.errors import PalaverError, UnsupportedTranscript
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, answer_fields, clean, declare, digest_of, instructs, kept, numbered, torn, word
from palaver.formats.sources import Member, Opening, SourceFile
from palaver.formats.unread import Unread, has_text
from palaver.log import Instructions, Section
from palaver.messages import Message, from_anthropic_dict, from_chat_dict

CHAT, ANTHROPIC = "chat-completions", "anthropic-messages"
OWNER = "agent"
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_ANSWERS = ("response", "choices")  # the first that a log line has is read
_TIMES = ("timestamp", "created_at")  # the first that is a time is read
_LONGEST = 200  # characters of a value in the metadata
_PLAIN = 0.6  # any other format that matches has a higher confidence
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_KEYS = frozenset(
    {
        # chat completions, request and answer (platform.openai.com/docs/api-reference/chat), with what LiteLLM and DeepSeek add
        *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"),
        *("weight", "reasoning_content", "reasoning", "thinking_blocks", "provider_specific_fields", "cache_control"),
        # Anthropic's Messages, request and answer (docs.anthropic.com/en/api/messages)
        *("id", "type", "model", "stop_reason", "stop_sequence", "usage", "container", "context_management"),
        "providerOptions",  # Vercel's AI SDK (ai-sdk.dev/docs/reference/ai-sdk-core/model-message)
        # keys that people add to a message
        *("timestamp", "created_at", "metadata"),
    }
)
# The names next to the messages whose text is no content: parameters of a request and fields of an answer, from the same references
_PARAMETERS = frozenset(
    {
        *("id", "object", "type", "role", "model", "stop", "user", "tool_choice", "function_call", "response_format"),
        *("reasoning_effort", "service_tier", "modalities", "verbosity", "prompt_cache_key", "prompt_cache_retention"),
        *("safety_identifier", "system_fingerprint", "web_search_options", "usage"),
        *("stop_sequences", "stop_sequence", "stop_reason", "output_config", "inference_geo", "speed"),
        *("anthropic_version", "anthropic_beta", "betas", "container", "context_management", "cache_control"),
        *("created", "timestamp", "created_at", "metadata"),
    }
)


NO_KEYS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class PlainMessages:
    """Lists of messages of one dialect.

    Attributes:
        dialect: The dialect, as `palaver.dialects` calls it.
        keys: The keys beside which an object has its other fields; what they have is one list, in this order.
        told: The keys of the instructions.
        inner: The keys of the objects in a message and of the instructions that its reader reads, as `Unread` takes them.
        held: The keys of a message that its reader reads; others go into the message's metadata. None: the reader keeps all keys.
    """

    name: str
    title: str
    signs: str
    dialect: str
    keys: tuple[str, ...] = ("messages",)
    told: tuple[str, ...] = ("system",)
    held: frozenset[str] | None = None
    inner: Mapping[str, str] = field(default_factory=lambda: NO_KEYS)
    series: ClassVar[bool] = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a list, from 0.0 to 1.0."""
        about, messages = _shown(source.opening, self.keys)
        if len(messages) > 1 and not source.opening.complete:
            messages = messages[:-1]  # the last one may be cut off
        readable = _plain if self.dialect in _OWN else self._is_item
        if 2 * sum(map(readable, messages)) <= len(messages):  # a few malformed ones are reported when they are read
            return 0.0
        return _PLAIN if self.dialect == _dialect(about, messages) else 0.0

    def _is_item(self, message: object) -> bool:
        try:
            return isinstance(message, dict) and bool(item_reader(self.dialect)(message))
        except PalaverError:
            return False

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        own = _OWN.get(self.dialect)
        return item_reader(self.dialect) if own is None else _one(own)

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every list as a conversation. The keys next to the messages that are not read are reported at the end, once a file."""
        ordinal, unread = 0, _KeysBeside()
        for member in source.members:
            for listed in _lists(member, self.keys):
                if isinstance(listed, Loss):
                    yield listed
                else:
                    yield from _conversation(listed, self, ordinal, unread)
                    ordinal += 1
        yield from unread.losses()


_OWN: Mapping[str, Callable[..., Message]] = {"openai-chat": from_chat_dict, "anthropic": from_anthropic_dict}
PLAIN = (
    PlainMessages(
        CHAT,
        "chat completions",
        "messages with role and content, or objects with messages, in JSON or JSON lines",
        "openai-chat",
    ),
    PlainMessages(
        ANTHROPIC,
        "Anthropic messages",
        "messages of user and assistant with blocks such as tool_use, or an object with system and messages",
        "anthropic",
    ),
    PlainMessages(
        "openai-responses",
        "Responses items",
        "items with a type such as function_call, or an object with input and output",
        "openai-responses",
        ("input", "output"),
        ("instructions",),
        frozenset(
            [
                "type",
                "role",
                "content",
                "call_id",
                "name",
                "arguments",
                "input",
                "output",
                "summary",
                "encrypted_content",
            ]
        ),
    ),
    PlainMessages(
        "gemini",
        "Gemini contents",
        "contents with role and parts, or an object with contents",
        "gemini",
        ("contents",),
        ("systemInstruction", "system_instruction"),
        frozenset({"role", "parts"}),
        {
            "": "*",
            "systemInstruction": "parts role",
            "system_instruction": "parts role",
            "tools": "functionDeclarations function_declarations",
            "message": "*",
            "message.parts": "codeExecutionResult code_execution_result executableCode executable_code fileData file_data functionCall function_call "
            "functionResponse function_response inlineData inline_data text thought thoughtSignature thought_signature videoMetadata video_metadata",
            "message.parts.functionCall": "args id name",
            "message.parts.function_call": "args id name",
            "message.parts.functionResponse": "id name parts response scheduling willContinue",
            "message.parts.function_response": "id name parts response scheduling will_continue",
        },
    ),
    PlainMessages(
        "gemini-interactions",
        "Gemini Interactions",
        "steps with a type such as model_output, or an object with input and steps",
        "gemini-interactions",
        ("input", "steps", "outputs"),
        ("system_instruction",),
        frozenset(
            ["type", "content", "id", "call_id", "name", "arguments", "result", "is_error", "signature", "summary"]
        ),
        {"message": "*", "message.content": "annotations data mime_type resolution text type uri"},
    ),
    PlainMessages(
        "vercel-ui", "Vercel AI SDK", "messages with id, role and parts, or an object with messages", "vercel-ui"
    ),
)


# --- recognising ------------------------------------------------------------------------------------------------------------


def _shown(opening: Opening, keys: Sequence[str]) -> tuple[Mapping[str, object], Sequence[object]]:
    """Return the first conversation in an opening: its other fields, and its first messages."""
    first = next(iter(opening.elements or opening.records[:1]), opening.fields)
    if any(isinstance(first.get(key), list) for key in keys):
        return first, [message for key in keys for message in fields.items(first, key)]
    return NOTHING, opening.elements or opening.records


def _plain(message: object) -> bool:
    if not isinstance(message, dict) or fields.text(message, "role") not in _ROLES or not message.keys() <= _KEYS:
        return False
    said = "content" in message or "tool_calls" in message or "function_call" in message
    content = message.get("content")
    return said and message.get("type", "message") == "message" and (content is None or isinstance(content, str | list))


def _dialect(about: Mapping[str, object], messages: Sequence[object]) -> str:
    """Return the dialect of the messages. Default: chat completions, which more programs use, unless there is a system beside them."""
    items = [message for message in messages if isinstance(message, dict)]
    usual = "openai-chat" if about.get("system") is None else "anthropic"
    return dialect_of(items, fields.objects(about, "tools")) or usual


# --- shapes -------------------------------------------------------------------------------------------------------------------


class _List(NamedTuple):
    """A list of messages, and its other fields.

    Attributes:
        place: Its place.
        about: The other fields of its object.
        items: Returns the messages, from the start each time.
        losses: Content that could not be read.
    """

    place: str
    about: Mapping[str, object]
    items: Callable[[], Iterator[Item]]
    losses: Sequence[Loss] = ()


_Streamed = Iterator[Item | Loss | tuple[str, object]]


def _lists(member: Member, keys: Sequence[str]) -> Iterator[_List | Loss]:
    try:
        opening = member.opening
    except UnsupportedTranscript as error:  # a file of an archive whose first file is such a list
        yield Loss(place=member.place("whole file"), reason=f"Not read: {error.why}.", code="skipped", severity="note")
        return
    if opening.elements and _has_list(opening.elements[0], keys):
        for element in member.elements():
            if isinstance(element, Loss):
                yield element
            else:
                place = member.place(element.path)
                yield _nested(element.value, place, keys, tuple(torn(element, place)))
    elif opening.document is None and opening.records and _has_list(opening.records[0], keys):
        for record in member.records():
            yield record if isinstance(record, Loss) else _nested(record.value, record.place, keys)
    else:
        yield _whole(member, _lines if opening.document is None and opening.records else partial(_elements, keys=keys))


def _has_list(value: Mapping[str, object], keys: Sequence[str]) -> bool:
    return any(key in value for key in keys)


def _nested(value: object, place: str, keys: Sequence[str], losses: Sequence[Loss] = ()) -> _List:
    about = value if isinstance(value, dict) else NOTHING
    if not any(isinstance(about.get(key), list) for key in keys):
        losses = (*losses, bad_record(f"{place}.{keys[0]}", "it is not a list of messages"))

    def items() -> Iterator[Item]:
        listed = (item for key in keys for item in numbered(about.get(key), f"{place}.{key}"))
        return (item._replace(ordinal=number) for number, item in enumerate(listed))

    return _List(
        place,
        {key: value for key, value in about.items() if not isinstance(value, list) or key not in keys},
        items,
        losses,
    )


def _whole(member: Member, stream: Callable[[Member], _Streamed]) -> _List:
    """Return a document that is one list. It is read twice, and not kept in memory."""
    losses: list[Loss] = []
    about: dict[str, object] = {}
    for part in stream(member):
        if isinstance(part, Loss):
            losses.append(part)
        elif not isinstance(part, Item):
            about[part[0]] = part[1]

    def items() -> Iterator[Item]:
        return (part for part in stream(member) if isinstance(part, Item))

    return _List(member.place("whole file"), about, items, losses)


def _elements(member: Member, keys: Sequence[str]) -> _Streamed:
    """Yield the other values of a document, and the messages of each key in turn, in whatever order the file has the keys."""
    count = 0
    for turn, key in enumerate(keys):
        for element in member.elements(keys):
            if isinstance(element, Loss):
                yield from () if turn else (element,)
                continue
            place = member.place(element.path)
            if element.nth < 0:
                not_a_list = element.key in keys and len(keys) == 1
                own = bad_record(place, "it is not a list of messages") if not_a_list else (element.key, element.value)
                yield from () if turn else (own,)
            elif element.whole and (element.key == key or not (element.key or turn)):
                yield from torn(element, place)
                yield Item(count, place, element.value)
                count += 1


def _lines(member: Member) -> _Streamed:
    for record in member.records():
        yield record if isinstance(record, Loss) else Item(record.ordinal, record.place, record.value)


# --- a conversation -----------------------------------------------------------------------------------------------------------


def _conversation(listed: _List, plain: PlainMessages, ordinal: int, unread: _KeysBeside) -> Iterator[Event]:
    name, system = plain.name, next(filter(None, (listed.about.get(key) for key in plain.told)), None)
    started_at, model, led = 0.0, fields.text(listed.about, "model"), bool(system)
    for item in listed.items():
        led = led or instructs(item.value)
        if isinstance(item.value, dict):
            started_at = started_at or _when(item.value)
            model = model or fields.text(item.value, "model")
    answers = _ANSWERS if plain.dialect in _OWN else ()
    answer = next((key for key in answers if listed.about.get(key) is not None), "")
    known = {*plain.told, "tools", answer, *(plain.keys if plain.dialect in _OWN else ())}
    others = {key: value for key, value in listed.about.items() if key not in known and value is not None}
    long = {key for key, value in others.items() if len(str(value)) > _LONGEST}
    short = {word(key): clean(value) for key, value in others.items() if key not in long}
    yield Conversation(key="", ordinal=ordinal, model=model, started_at=started_at, metadata=short)
    writer = DialogWriter("main", name)
    yield writer.branch(OWNER)
    yield from listed.losses
    unread.see(others, long, listed.place)
    yield from guarded(listed.place, _preamble(listed, system, writer, started_at))
    if not led:
        yield no_instructions(listed.place)
    read = plain.reader()
    inner = Unread(plain.inner)
    inner.see(listed.about, listed.place)
    at, count = started_at, 0
    for item in listed.items():
        count += 1
        at = (_when(item.value) if isinstance(item.value, dict) else 0.0) or at
        yield from guarded(item.place, _message(item, writer, read, f"{name}:{ordinal}:{item.ordinal}", at, plain))
        inner.see(item.value, item.place, "message")
    yield from inner.losses()
    if answer:
        item = Item(count, f"{listed.place}, response", listed.about.get("response"))
        if answer == "choices":  # the fields of a chat completion, next to its messages
            completion = {key: listed.about[key] for key in ("choices", "model", "usage") if key in listed.about}
            item = Item(count, listed.place, completion)
        yield from guarded(item.place, _response(item, writer, read, f"{name}:{ordinal}:{count}", at))


class _KeysBeside:
    """Counts the conversations of a file that have a key next to their messages which is not read."""

    def __init__(self) -> None:
        self._conversations: Counter[tuple[str, str, str]] = Counter()
        self._first: dict[tuple[str, str, str], str] = {}

    def see(self, others: Mapping[str, object], long: Collection[str], place: str) -> None:
        """Count the keys of one conversation. Text may be a part of it, and so may what is too long for the metadata: a loss."""
        for key, value in sorted(others.items()):
            lost = key in long or (key not in _PARAMETERS and has_text(value))
            row = (word(key), "source" if key in long else "metadata", "loss" if lost else "note")
            if key != "model":
                self._conversations[row] += 1
                self._first.setdefault(row, place)

    def losses(self) -> Iterator[Loss]:
        """Report each key once, at the place of the first conversation that has it."""
        for row, count in self._conversations.items():
            key, owner, severity = row
            where = f" of {count:,} conversations" if count > 1 else ""
            reason = f"The key {key!r} next to the messages{where} is not read; only the {owner} has it."
            code = "unread" if severity == "loss" else "skipped"
            yield Loss(place=self._first[row], reason=reason, code=code, severity=severity)


def _response(
    item: Item, writer: DialogWriter, read: Callable[..., Sequence[Message]], key: str, at: float
) -> Iterator[Event]:
    """Read the answer that a log stores next to the messages: a text, a message, or the response of either interface."""
    answer = item.value
    if isinstance(answer, dict) and "choices" in answer:
        choices = fields.items(answer, "choices")
        about = {name: value for name, value in answer_fields(answer, None).items() if value}
        answer, read = _first_message(answer, choices), _one(partial(from_chat_dict, **about))
        for number in range(1, len(choices) if answer else 0):
            yield bad_record(f"{item.place}.choices[{number}]", "a conversation continues with one answer")
    elif isinstance(answer, dict) and answer.get("type") == "message":
        read = _one(from_anthropic_dict)
    elif isinstance(answer, str):
        answer = {"role": "assistant", "content": answer}
    if not isinstance(answer, dict) or fields.text(answer, "role") != "assistant":
        yield bad_record(item.place, "no answer of chat completions or Anthropic's Messages is in it")
        return
    yield from _message(item._replace(value=answer), writer, read, key, at)


def _first_message(completion: Mapping[str, object], choices: Sequence[object]) -> Mapping[str, object]:
    """Return the message of the first choice, with what its choice and its completion say besides; empty if there is none."""
    choice = choices[0] if choices and isinstance(choices[0], dict) else NOTHING
    message = fields.mapping(choice, "message")
    around = {key: value for key, value in {**completion, **choice}.items() if key not in {"id", "choices", "message"}}
    return {**around, **message} if message else NOTHING


def _preamble(listed: _List, system: object, writer: DialogWriter, at: float) -> Iterator[Event]:
    tools = listed.about.get("tools")
    if isinstance(tools, list):
        tools = [declared for tool in tools for declared in _declared(tool)]
    if isinstance(system, dict) and "parts" in system:  # Gemini's instructions are a content
        system = system["parts"]
    place, losses = f"{listed.place}, system", list[Loss]()
    if sections := tuple(without_losses(_sections(system, place), losses)):
        yield writer.put(Instructions(sections=sections, at=at), Origin("system", 0, digest_of(system), place))
    yield from losses
    yield from declare(writer, tools, at, Origin("tools", 0, digest_of(tools), f"{listed.place}, tools"))


def _sections(system: object, place: str) -> Iterator[Section | Loss]:
    """Read Anthropic's `system`: a text, or blocks of text."""
    if isinstance(system, str) and system:
        yield Section(name="system", text=system)
        return
    for number, block in enumerate(system if isinstance(system, list) else (system,) if system else ()):
        about = block if isinstance(block, dict) else NOTHING
        if text := fields.text(about, "text"):
            rest: dict[str, Any] = {key: value for key, value in about.items() if key not in {"text", "type", "name"}}
            yield Section.model_validate({**rest, "name": f"system {number + 1}", "text": text})
        elif about.get("text") != "":
            yield bad_record(f"{place}[{number}]", "it is not a block of text")


def _declared(tool: object) -> Sequence[object]:
    """Return the declarations in a tool: Gemini's have several."""
    about = tool if isinstance(tool, dict) else NOTHING
    return next(filter(None, (fields.items(about, key) for key in _DECLARATIONS)), (tool,))


def _one(read: Callable[..., Message]) -> Callable[..., Sequence[Message]]:
    return lambda said, **about: (read(said, **about),)


def _message(
    item: Item,
    writer: DialogWriter,
    read: Callable[..., Sequence[Message]],
    key: str,
    at: float,
    plain: PlainMessages | None = None,
) -> Iterator[Event]:
    if not isinstance(item.value, dict):
        yield bad_record(item.place, "it is not a message")
        return
    when = _when(item.value)
    own = plain is None or plain.dialect in _OWN  # the other readers read what a message says of itself
    about = fields.mapping(item.value, "metadata") if own else NOTHING
    used = {key for key in _TIMES if when and fields.moment(item.value.get(key)) == when} | (
        {"metadata"} if about else set()
    )
    said = {name: value for name, value in item.value.items() if name not in used}
    rest = {} if plain is None or plain.held is None else kept(said, plain.held)
    messages = read(said, id=key, timestamp=at, metadata={**rest, **kept(about, ())})
    for number, message in enumerate(messages):
        named = message if not number else message.model_copy(update={"id": f"{messages[0].id}.{number}"})
        yield from writer.say(named, item.origin(f"{item.ordinal}.{number}" if number else ""), counted=int(not number))


def _when(value: Mapping[str, object]) -> float:
    return next(filter(None, (fields.moment(value.get(key)) for key in _TIMES)), 0.0)
