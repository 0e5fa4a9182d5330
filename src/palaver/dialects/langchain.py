"""Messages of LangChain: the JSON of `messages_to_dict` and of `dumpd`, and `BaseMessage` objects.

Contents are LangChain's standard blocks of version 1, those of the providers, and the older forms. Source: `langchain_core.messages`,
python.langchain.com/docs/concepts/messages. The package itself is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from palaver.dialects.frames import Part, PartFrames, PartPlace, changed, difference
from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.plurals import a_type
from palaver.wire.script import ChangeNotes, How

NAME = "langchain"

_ROLES = {"human": Role.USER, "ai": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL, "function": Role.TOOL}
_TYPES = {Role.ASSISTANT: "ai", Role.TOOL_CALL: "ai", Role.SYSTEM: "system", Role.TOOL: "tool"}
_SPOKEN = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
"""The roles of LangChain's `ChatMessage`, which has a field for it."""

_FRAMES = PartFrames(
    NAME,
    "type",
    (
        PartPlace("text", ("text",), TextContent),
        PartPlace("refusal", ("refusal",), TextContent),
        PartPlace("reasoning", ("reasoning",), ThinkingContent),
        PartPlace("thinking", ("thinking",), ThinkingContent),
        PartPlace("redacted_thinking", ("data",), ThinkingContent, "redacted"),
        PartPlace("image", ("base64",), ImageContent),
        PartPlace("image", ("url",), ImageContent),
        PartPlace("image", ("data",), ImageContent),
        PartPlace("image", ("source", "data"), ImageContent),
        PartPlace("image", ("source", "url"), ImageContent),
        PartPlace("image_url", ("image_url", "url"), ImageContent),
        PartPlace("image_url", ("image_url",), ImageContent),
        PartPlace("input_image", ("image_url",), ImageContent),
        PartPlace("audio", ("base64",), AudioContent),
        PartPlace("audio", ("url",), AudioContent),
        PartPlace("audio", ("data",), AudioContent),
        PartPlace("input_audio", ("input_audio", "data"), AudioContent),
    ),
    media_type="mime_type",
)

_PROVIDERS = {"google_genai": "google", "google_vertexai": "google"}
"""LangChain's names of providers that palaver calls otherwise."""


class _CallKeys(NamedTuple):
    """The keys with the id, and with the arguments, of a block that repeats a tool call."""

    id: str
    args: str
    text: bool = False


_CALLS = {
    "tool_call": _CallKeys("id", "args"),
    "tool_use": _CallKeys("id", "input"),
    "function_call": _CallKeys("call_id", "arguments", text=True),
    "invalid_tool_call": _CallKeys("id", "args"),
    "tool_call_chunk": _CallKeys("id", "args"),
}

_LISTS = ("tool_calls", "invalid_tool_calls")
_HAS = (*_LISTS, "tool_call_id", "status")
_OURS = frozenset({"index", "extras"})
"""Keys that LangChain adds to the items of OpenAI's Responses."""

_READ = frozenset({*_HAS, "content", "type", "id", "name"})
"""The fields of a message that are read; the others stay in its metadata, under the dialect's name."""


class LangChain:
    """Messages of LangChain and LangGraph."""

    name = NAME

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        return _read

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages: one item each, and one for each result."""
        return [item for message in messages for item in _items(message, notes)]

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the schema of a tool, as `bind_tools` takes it."""
        function = {"name": tool.name, "description": tool.description, "parameters": thaw(tool.parameters)}
        return {"type": "function", "function": function}


# --- reading ------------------------------------------------------------------------------------------------------------


def _read(item: Any, **fields: Any) -> Sequence[Message]:  # noqa: ANN401 - JSON or an object, and fields of messages
    around, data = _opened(item)
    kind = str(data.get("type") or around.get("type"))
    if "lc" in around and isinstance(path := around.get("id"), list | tuple) and path:
        kind = str(path[-1])
    name = kind.removesuffix("Chunk").removesuffix("Message").lower()
    role = _SPOKEN.get(str(data.get("role")).lower(), Role.USER) if name == "chat" else _ROLES.get(name)
    if role is None:
        known = ", ".join(_ROLES)
        raise InvalidMessage(f"The type is {kind!r}, and no model is sent that.", hint=f"Types of messages: {known}.")
    rest = {key: value for key, value in data.items() if key not in _READ}
    own = {key: data[key] for key in ("type", "id", "name") if key in data}
    about: Part = {"around": around, "rest": rest, "own": own, "has": [key for key in _HAS if key in data]}
    if role is not Role.TOOL and not isinstance(data.get("content"), str):
        about["parts"] = True
    made: Part = {**fields, "role": role, "metadata": {NAME: about}, "contents": tuple(_contents(role, data))}
    if isinstance(rest.get("usage_metadata"), Mapping):
        made["usage"] = rest.pop("usage_metadata")
    reported = rest.get("response_metadata")
    model = (reported.get("model_name") or reported.get("model")) if isinstance(reported, Mapping) else None
    said = {"id": data.get("id"), "name": data.get("name"), "model": model}
    return (Message.from_dict(made | {key: value for key, value in said.items() if isinstance(value, str) and value}),)


def _opened(item: object) -> tuple[Part, Mapping[str, Any]]:
    """Return what is written around the fields of a message, and the fields."""
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        fields = dump(mode="json", fallback=repr, serialize_as_any=True)
        return {"type": fields.get("type")}, fields
    if isinstance(item, Mapping):
        inside = item.get(key := _inside(item))
        if isinstance(inside, Mapping):
            return {name: value for name, value in item.items() if name != key}, inside
    raise InvalidMessage(
        f"A message of LangChain is a BaseMessage or its JSON, not {a_type(item)}.",
        hint="Pass what messages_to_dict() or dumpd() returns.",
    )


def _inside(around: Mapping[str, Any]) -> str:
    return "kwargs" if "lc" in around else "data"


def _contents(role: Role, data: Mapping[str, Any]) -> Iterator[Content]:
    content = data.get("content")
    thinking = _thinker(data.get("response_metadata"))
    if role is Role.TOOL:
        said = content if isinstance(content, str) else tuple(_in_result(part) for part in _listed(content))
        fields = {"id": str(data.get("tool_call_id") or ""), "content": said, "is_error": data.get("status") == "error"}
        yield ToolResultContent.from_dict({**fields, "name": data.get("name")})
        return
    calls: list[tuple[Any, str]] = [(call, key) for key in _LISTS for call in _listed(data.get(key))]
    if wrong := [call for call, _ in calls if not isinstance(call, Mapping)]:
        raise InvalidMessage(f"A tool call is an object, not {a_type(wrong[0])}.")
    if isinstance(content, str):
        yield from (TextContent(said) for said in (content,) if said)
    else:
        for part in _listed(content):
            yield _block(part, calls, thinking)
    for call, key in calls:
        yield _call(call, key)


def _listed(value: object) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InvalidMessage(f"A message of LangChain has a list where this one has {a_type(value)}.")
    return value


def _in_result(part: object) -> Content:
    block = _block(part, [], {})
    if isinstance(part, Mapping) and isinstance(block, ThinkingContent | ToolCallContent | ToolResultContent):
        return _FRAMES.keep(part)
    return block


def _thinker(reported: object) -> Mapping[str, str]:
    """Return whose thinking a message has."""
    found = reported.get("model_provider") if isinstance(reported, Mapping) else None
    return {"provider": _PROVIDERS.get(found, found)} if isinstance(found, str) else {}


def _block(part: object, calls: list[tuple[Any, str]], thinking: Mapping[str, str]) -> Content:
    if isinstance(part, str):
        return TextContent.from_dict({"content": part, NAME: {"bare": True}})
    if not isinstance(part, Mapping):
        raise InvalidMessage(f"A block of a message is a text or an object, not {a_type(part)}.")
    kind = str(part.get("type"))
    if kind in _CALLS:
        known = next((call for call in calls if call[0].get("id") == part.get(_CALLS[kind].id)), None)
        if known is not None:
            calls.remove(known)
            return _call(*known, part)
    if kind == "reasoning" and isinstance(part.get("summary"), list | tuple):
        words = "\n\n".join(
            str(word["text"]) for word in part["summary"] if isinstance(word, Mapping) and word.get("text")
        )
        frame = {key: value for key, value in part.items() if key in _OURS}
        item = {key: value for key, value in part.items() if key not in _OURS}
        said = {"content": words, "artefact": item, "provider": "openai"}
        return ThinkingContent.from_dict({**said, **({NAME: {"item": frame}} if frame else {})})
    extras = part.get("extras")
    signature = part.get("signature") or (extras.get("signature") if isinstance(extras, Mapping) else None)
    signed = {"signature": signature} if isinstance(signature, str) else {}
    return _FRAMES.read(part, **thinking, **signed)


def _call(call: Mapping[str, Any], key: str, part: Mapping[str, Any] | None = None) -> ToolCallContent:
    """Read a call of a list of calls, with the block of the content that repeats it."""
    keys = None if part is None else _CALLS[str(part["type"])]
    written = part.get(keys.args) if part is not None and keys is not None and keys.text else None
    args = written if isinstance(written, str) else call.get("args")
    fields: Part = {"id": str(call.get("id") or ""), "name": str(call.get("name") or "")}
    fields["args"] = args if isinstance(args, str | Mapping) else {}
    made = ToolCallContent.from_dict(fields)
    kept: Part = {} if key == _LISTS[0] else {"list": key}
    if part is not None:
        kept["part"] = {"type": part["type"], **difference(part, _call_part(str(part["type"]), made))}
    if change := difference(call, _listed_call(made, key)):
        kept["call"] = change
    return ToolCallContent.from_dict({**fields, NAME: kept}) if kept else made


# --- writing ------------------------------------------------------------------------------------------------------------


def _call_part(kind: str, call: ToolCallContent) -> Part:
    """Return the block of a content that repeats a call."""
    keys = _CALLS[kind]
    return {"type": kind, keys.id: call.id, "name": call.name, keys.args: call.arguments if keys.text else _args(call)}


def _listed_call(call: ToolCallContent, key: str) -> Part:
    fields: Part = {"name": call.name, "args": _args(call), "id": call.id}
    return fields | ({"type": "tool_call"} if key == _LISTS[0] else {"type": "invalid_tool_call", "error": call.error})


def _args(call: ToolCallContent) -> object:
    return thaw(call.args) if call.error is None else call.raw_args


def _items(message: Message, notes: ChangeNotes) -> Iterator[Part]:
    about: Part = thaw(message.metadata.get(NAME) or {})
    results = message.tool_results()
    for number, result in enumerate(results):
        said: Part = {"content": result.content if isinstance(result.content, str) else _parts(result.content, notes)}
        yield _item(message, about, said | _answer(result, about), number)
    contents = [content for content in message.contents if not isinstance(content, ToolResultContent)]
    if contents or not results:
        parts = _parts(contents, notes)
        plain = not about.get("parts") and all(part.keys() == {"type", "text"} for part in parts) and len(parts) <= 1
        content = "".join(part["text"] for part in parts) if plain else parts
        yield _item(message, about, {"content": content} | _lists(message, about), 0)


def _item(message: Message, about: Part, said: Part, number: int) -> Part:
    """Return an item: what is said, with what else was read of the message."""
    kind = "tool" if "status" in said else _TYPES.get(message.role, "human")
    around: Part = about.get("around", {"type": kind})
    if not about:
        said |= {"type": kind, "id": f"{message.id}-{number}" if number else message.id}
        if message.usage:
            figures = {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}
            said["usage_metadata"] = {**figures, "total_tokens": sum(figures.values())}
        if message.model:
            said["response_metadata"] = {"model_name": message.model}
    else:
        said = {**about.get("rest", {}), **about.get("own", {}), **said}
        if message.usage:
            said["usage_metadata"] = thaw(message.usage)
    return {**around, _inside(around): said}


def _answer(result: ToolResultContent, about: Part) -> Part:
    fields: Part = {"tool_call_id": result.id, "status": "error" if result.is_error else "success"}
    if not about:
        return fields | ({"name": result.name} if result.name else {})
    return {key: value for key, value in fields.items() if key in about["has"] or value == "error"}


def _lists(message: Message, about: Part) -> Part:
    """Return the lists of calls of a message."""
    lists: dict[str, list[Part]] = {key: [] for key in _LISTS if key in about.get("has", ())}
    if message.is_assistant_side:
        lists.setdefault(_LISTS[0], [])
    for call in message.tool_calls():
        kept = _FRAMES.frame(call) or {}
        key = kept.get("list", _LISTS[call.error is not None])
        lists.setdefault(key, []).append(changed(_listed_call(call, key), kept.get("call", {})))
    return dict(lists)


def _parts(contents: Sequence[Content], notes: ChangeNotes) -> list[Any]:
    return [part for content in contents for part in _written(content, notes)]


def _written(content: Content, notes: ChangeNotes) -> Sequence[Any]:
    kept = _FRAMES.frame(content) or {}
    if isinstance(content, ToolCallContent):
        part = kept.get("part")
        return [changed(_call_part(part["type"], content), part)] if part else []
    if isinstance(content, TextContent) and kept.get("bare"):
        return [content.content]
    if isinstance(content, ThinkingContent) and "at" not in kept:
        return _thought(content, kept, notes)
    return _FRAMES.write(content)


def _thought(content: ThinkingContent, kept: Mapping[str, Any], notes: ChangeNotes) -> Sequence[Part]:
    if content.artefact.get("type") == "reasoning":
        return [{**thaw(content.artefact), **kept.get("item", {})}]
    if content.redacted:
        return [{"type": "redacted_thinking", "data": content.redacted}]
    if not content.content and not content.signature:
        notes.add(None, "thinking", How.DROPPED, "LangChain has no block for it")
        return []
    signed = {"extras": {"signature": content.signature}} if content.signature else {}
    return [{"type": "reasoning", "reasoning": content.content, **signed}]


DIALECT = LangChain()
