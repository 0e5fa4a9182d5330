"""Plain message lists: the messages of an API or a page, written as JSON.

Each has four shapes: an array of messages; an object with `messages`, or what else the API calls them (and its instructions and tools, the answer as
`response` or `choices`); an array, or JSON lines, of such objects; JSON lines of messages. The dialect is found from the messages, as `palaver.dialects` does.
A message of chat completions or Anthropic's with keys of neither is another program's record, and a list of such messages is not a plain list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from palaver.dialects import dialect_of, item_reader
from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, answer_fields, declare, digest_of, instruct, instructs, kept
from palaver.formats.message_lists import MessageList, message_lists
from palaver.formats.sources import Opening, SourceFile
from palaver.formats.unread import Unread, has_text
from palaver.messages import Message

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


@dataclass(frozen=True)
class PlainMessages:
    """Lists of messages of one dialect.

    Attributes:
        dialect: The dialect, as `palaver.dialects` calls it.
        keys: The keys beside which an object has its other fields; what they have is one list, in this order.
        told: The keys of the instructions.
        asked: The fields of the message that a text in place of the first list is; empty where the API takes no text there.
        inner: The keys of the objects in a message and of the instructions that its reader reads, as `Unread` takes them.
        held: The keys of a message that its reader reads, separated by spaces; others go into the message's metadata. Empty: the reader keeps all keys.
    """

    name: str
    title: str
    signs: str
    dialect: str
    keys: tuple[str, ...] = ("messages",)
    told: tuple[str, ...] = ("system",)
    asked: Mapping[str, object] = field(default_factory=dict)
    held: str = ""
    inner: Mapping[str, str] = field(default_factory=dict)
    series: ClassVar[bool] = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a list, from 0.0 to 1.0."""
        about, messages = _shown(source.opening, self.keys)
        if len(messages) > 1 and not source.opening.complete:
            messages = messages[:-1]  # the last one may be cut off
        if self.dialect != _dialect(about, messages):
            return 0.0
        readable = _plain if self.dialect in _CHATS else self._is_item
        # a few malformed ones are reported when they are read
        return _PLAIN if 2 * sum(map(readable, messages)) > len(messages) else 0.0

    def _is_item(self, message: object) -> bool:
        try:
            return isinstance(message, dict) and bool(item_reader(self.dialect)(message))
        except PalaverError:
            return False

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every list as a conversation. The keys that are not read are reported at the end, once a file."""
        ordinal, unread = 0, Unread(self.inner)
        for found in message_lists(source.member, self.keys, self.asked):
            if isinstance(found, Loss):
                yield found
            else:
                yield from _conversation(found, self, ordinal, unread)
                ordinal += 1
        yield from unread.losses()


PARTS: Mapping[str, str] = MappingProxyType(
    {
        "message.parts": "codeExecutionResult code_execution_result executableCode executable_code fileData file_data functionCall function_call "
        "functionResponse function_response inlineData inline_data text thought thoughtSignature thought_signature videoMetadata video_metadata",
        "message.parts.inlineData": "data displayName mimeType",
        "message.parts.inline_data": "data display_name mime_type",
        "message.parts.functionCall": "args id name",
        "message.parts.function_call": "args id name",
        "message.parts.functionResponse": "id name parts response scheduling willContinue",
        "message.parts.function_response": "id name parts response scheduling will_continue",
    }
)
"""The keys of a part of one of Gemini's contents that its reader reads, below the path `message`."""

_CHATS = frozenset({"openai-chat", "anthropic"})
"""The dialects whose messages keep all keys, and beside which a log writes the answer."""
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
        {"role": "user"},
        "type role content call_id name arguments input output summary encrypted_content",
    ),
    PlainMessages(
        "gemini",
        "Gemini contents",
        "contents with role and parts, or an object with contents",
        "gemini",
        ("contents",),
        ("systemInstruction", "system_instruction"),
        held="role parts",
        inner={
            "": "*",
            "systemInstruction": "parts role",
            "system_instruction": "parts role",
            "tools": "functionDeclarations function_declarations",
            "message": "*",
            **PARTS,
        },
    ),
    PlainMessages(
        "gemini-interactions",
        "Gemini Interactions",
        "steps with a type such as model_output, or an object with input and steps",
        "gemini-interactions",
        ("input", "steps", "outputs"),
        ("system_instruction",),
        {"type": "user_input"},
        "type content id call_id name arguments result is_error signature summary",
        {"message": "*", "message.content": "annotations data mime_type resolution text type uri"},
    ),
    PlainMessages(
        "vercel-ui", "Vercel AI SDK", "messages with id, role and parts, or an object with messages", "vercel-ui"
    ),
    PlainMessages(
        "langchain", "LangChain messages", "messages with type and data, or an object with messages", "langchain"
    ),
    PlainMessages(
        "pydantic-ai", "pydantic-ai messages", "messages with kind and parts, or an object with messages", "pydantic-ai"
    ),
    PlainMessages(
        "agent-framework",
        "Agent Framework messages",
        "messages with role and contents, or an object with messages",
        "agent-framework",
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


# --- a conversation -----------------------------------------------------------------------------------------------------------


def _conversation(found: MessageList, plain: PlainMessages, ordinal: int, unread: Unread) -> Iterator[Event]:
    name, about, chats = plain.name, found.about, plain.dialect in _CHATS
    system = next(filter(None, (about.get(key) for key in plain.told)), None)
    started_at, model, led = 0.0, fields.text(about, "model"), bool(system)
    for item in found.items():
        led = led or instructs(item.value)
        started_at = started_at or _when(item.fields)
        model = model or fields.text(item.fields, "model")
    answer = next((key for key in _ANSWERS if chats and about.get(key) is not None), "")
    known = {*plain.told, "tools", answer, *(plain.keys if chats else ())}
    others = {key: value for key, value in sorted(about.items()) if key not in known and value is not None}
    short = {key: value for key, value in others.items() if len(str(value)) <= _LONGEST}
    yield Conversation(key="", ordinal=ordinal, model=model, started_at=started_at, metadata=kept(short, ()))
    writer = DialogWriter("main", name)
    yield writer.branch(OWNER)
    yield from found.losses
    for key, value in others.items():  # text may be a part of the conversation
        lost = key not in short or (key not in _PARAMETERS and has_text(value))
        if key != "model":
            owner, severity = "metadata" if key in short else "source", "loss" if lost else "note"
            unread.count(key, found.place, owner, severity)
    yield from guarded(found.place, _preamble(found, system, writer, started_at))
    if not led:
        yield no_instructions(found.place)
    unread.see(about, found.place)
    read, at, count = partial(_message, writer, plain, item_reader(plain.dialect)), started_at, 0
    for item in found.items():
        at, count = _when(item.fields) or at, count + 1
        yield from guarded(item.place, read(item, f"{name}:{ordinal}:{item.ordinal}", at))
        unread.see(item.value, item.place, "message")
    if answer:
        item = Item(count, f"{found.place}, response", about.get("response"))
        if answer == "choices":  # the fields of a chat completion, next to its messages
            completion = {key: about[key] for key in ("choices", "model", "usage") if key in about}
            item = Item(count, found.place, completion)
        yield from guarded(item.place, _response(writer, plain, item, f"{name}:{ordinal}:{count}", at))


def _response(writer: DialogWriter, plain: PlainMessages, item: Item, key: str, at: float) -> Iterator[Event]:
    """Read the answer that a log stores next to the messages: a text, a message, or the response of either interface."""
    answer, read = item.value, item_reader(plain.dialect)
    if isinstance(answer, dict) and "choices" in answer:
        choices = fields.items(answer, "choices")
        about = {name: value for name, value in answer_fields(answer, None).items() if value}
        answer, read = _first_message(answer, choices), partial(item_reader("openai-chat"), **about)
        for number in range(1, len(choices) if answer else 0):
            yield bad_record(f"{item.place}.choices[{number}]", "a conversation continues with one answer")
    elif isinstance(answer, dict) and answer.get("type") == "message":
        read = item_reader("anthropic")
    elif isinstance(answer, str):
        answer = {"role": "assistant", "content": answer}
    if not isinstance(answer, dict) or fields.text(answer, "role") != "assistant":
        yield bad_record(item.place, "no answer of chat completions or Anthropic's Messages is in it")
        return
    yield from _message(writer, plain, read, item._replace(value=answer), key, at)


def _first_message(completion: Mapping[str, object], choices: Sequence[object]) -> Mapping[str, object]:
    """Return the message of the first choice, with what its choice and its completion say besides; empty if there is none."""
    choice = choices[0] if choices and isinstance(choices[0], dict) else NOTHING
    message = fields.mapping(choice, "message")
    around = {key: value for key, value in {**completion, **choice}.items() if key not in {"id", "choices", "message"}}
    return {**around, **message} if message else NOTHING


def _preamble(found: MessageList, system: object, writer: DialogWriter, at: float) -> Iterator[Event]:
    tools = found.about.get("tools")
    if isinstance(tools, list):
        tools = [declared for tool in tools for declared in _declared(tool)]
    if isinstance(system, dict) and "parts" in system:  # Gemini's instructions are a content
        system = system["parts"]
    yield from instruct(writer, system, at, Origin("system", 0, digest_of(system), f"{found.place}, system"))
    yield from declare(writer, tools, at, Origin("tools", 0, digest_of(tools), f"{found.place}, tools"))


def _declared(tool: object) -> Sequence[object]:
    """Return the declarations in a tool: Gemini's have several."""
    about = tool if isinstance(tool, dict) else NOTHING
    return next(filter(None, (fields.items(about, key) for key in _DECLARATIONS)), (tool,))


def _message(
    writer: DialogWriter,
    plain: PlainMessages,
    read: Callable[..., Sequence[Message]],
    item: Item,
    key: str,
    at: float,
) -> Iterator[Event]:
    value = item.expect()
    when = _when(value)
    # the other readers read what a message says of itself
    about = fields.mapping(value, "metadata") if plain.dialect in _CHATS else NOTHING
    used = {key for key in _TIMES if when and fields.moment(value.get(key)) == when}
    said = {name: part for name, part in value.items() if name not in used and not (about and name == "metadata")}
    rest = kept(said, plain.held.split()) if plain.held else {}
    messages = read(said, id=key, timestamp=at, metadata={**rest, **kept(about, ())})
    for number, message in enumerate(messages):
        named = message if not number else message.model_copy(update={"id": f"{messages[0].id}.{number}"})
        yield from writer.say(named, item.origin(f"{item.ordinal}.{number}" if number else ""), counted=int(not number))


def _when(value: Mapping[str, object]) -> float:
    return next(filter(None, (fields.moment(value.get(key)) for key in _TIMES)), 0.0)
