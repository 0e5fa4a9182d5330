"""What callers pass: messages, lists and their dialect, dicts in place of SDK objects, whole answers, and tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from reprlib import repr as shortened
from typing import Any, Protocol

from palaver import wire
from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import Message
from palaver.messages.value import Value
from palaver.plurals import a_type
from palaver.providers.dialect import Dialect, Item
from palaver.providers.registry import APIS, ApiRow

_WANTED = "Pass dicts of chat completions, OpenAI's Responses, Anthropic's Messages, Gemini or its Interactions, or the message objects of their SDKs."
_TOOLS_WANTED = "Pass a list of the dicts that the provider gets."

_DEEPEST = 200
"""Most levels of an item: twice what a message may have, and fewer than the interpreter can follow."""


# --- messages -----------------------------------------------------------------------------------------------------------


class SdkObject(Protocol):
    """An object of a provider's SDK: an answer or a message."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as JSON values."""


def messages_of(given: object, request: wire.Request | None) -> Iterator[tuple[Message, bool]]:
    """Yield the messages that a caller appends, each with whether it is a provider's whole answer.

    Args:
        given: A `Message`, a dict of any dialect, an object of a provider's SDK, or several of them.
        request: The request of an answer, if known. Its tool names are mapped back.

    Raises:
        InvalidMessage: An item is not a message of its dialect.
        ProviderError: An answer reports a failure, or stops before its end.
        TypeError: The value has none of these types, such as a stream; nothing of it was read.
    """
    if isinstance(given, Iterator | AsyncIterator):
        raise TypeError(
            f"A dialog contains whole messages, and {a_type(given)} gives pieces one by one: append the answer once it is whole, "
            'such as `stream.get_final_completion()` or {"role": "assistant", "content": text}. Of messages, pass a list.'
        )
    if isinstance(given, Message):
        yield given, False
        return
    items = [given] if not isinstance(given, Iterable) or is_one(given) else list(given)
    read = _reader([item for item in items if not isinstance(item, Message)], request)
    for item in items:
        yield (item, False) if isinstance(item, Message) else read(item)


def is_one(given: object) -> bool:
    """Return whether a value is one message rather than several."""
    return isinstance(given, str | bytes | Mapping) or _is_sdk_object(given) or not isinstance(given, Iterable)


def _is_sdk_object(given: object) -> bool:
    return callable(getattr(given, "model_dump", None)) and not isinstance(given, type)


def _reader(items: list[Any], request: wire.Request | None) -> Callable[[Any], tuple[Message, bool]]:
    """Return a reader of items in order. Answers are read with their request, the other items in their common dialect."""
    for item in items:
        if not isinstance(item, Mapping) and not _is_sdk_object(item):
            raise TypeError(
                f"A dialog contains messages, not {a_type(item)}: append a Message, a dict such as "
                '{"role": "user", "content": "hi"} or a provider\'s answer, or use put_text() for a text.'
            )
    answers = {id(item): answer for item in items if (answer := answer_json(item)) is not None}
    _, plain = items_of([item for item in items if id(item) not in answers])
    read = dialect(None, plain, (), request.model if request else "").reader()
    left = iter(plain)

    def of(item: object) -> tuple[Message, bool]:
        answer = answers.get(id(item))
        return (read(next(left)), False) if answer is None else (read_answer(answer, request), True)

    return of


# --- lists --------------------------------------------------------------------------------------------------------------


@cache
def _dialect(api: str) -> Dialect:
    return APIS[api].dialect


def items_of(messages: object) -> tuple[tuple[Any, ...], tuple[Item, ...]]:
    """Return the caller's items, and each of them as a JSON object: the same object where it is one.

    Raises:
        InvalidMessage: It is not a list, or an item is not a message.
    """
    single = isinstance(messages, str | bytes | Mapping) or hasattr(messages, "model_dump")
    if single or not isinstance(messages, Iterable):
        raise InvalidMessage(
            f"The messages are {a_type(messages)}, not a list.",
            hint='Pass a list of dicts, such as [{"role": "user", "content": "hi"}].',
        )
    given = tuple(messages)
    for index, item in enumerate(given):
        _require_finite(item, f"Item {index} of the messages")
    return given, tuple(_item(each, index) for index, each in enumerate(given))


def _item(given: object, index: int) -> Item:
    if isinstance(given, Message):
        name = type(given).__name__
        raise InvalidMessage(f"Item {index} of the messages is palaver's own {name}.", hint="Pass its to_api_dict().")
    plain = _plain(given)
    if not isinstance(plain, Mapping):
        raise InvalidMessage(f"Item {index} of the messages is {a_type(given)}, not a message.", hint=_WANTED)
    item: Item = plain
    if item.get("id", "") is None:  # no id: OpenAI's schema of a call wants a text where there is one
        item = {key: value for key, value in item.items() if key != "id"}
    api = next((_KEYS[key] for key in item if key in _KEYS), None)
    return item if api is None else _dialect(api).spelled(item)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a message
    """Return a value with dicts in place of SDK objects; the same object if it has none."""
    if isinstance(value, Mapping):
        inner_values = {key: _plain(value[key]) for key in ("content", "tool_calls", "parts") if key in value}
        changed = {key: plain for key, plain in inner_values.items() if plain is not value[key]}
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return value if all(part is given for part, given in zip(parts, value, strict=True)) else parts
    dump = None if isinstance(value, Value | type) else getattr(value, "model_dump", None)
    return dump(exclude_unset=True) if callable(dump) else value  # what the API said, as the clients send it


def _require_finite(value: object, what: str) -> None:
    """Raise InvalidInput if a value contains itself or is too deep."""
    left = [(value, 0)]
    while left:
        each, depth = left.pop()
        if depth > _DEEPEST:
            raise InvalidInput(
                f"{what} contains itself, or has more than {_DEEPEST} levels.", hint="Pass what can be written as JSON."
            )
        if isinstance(each, Mapping):
            left.extend((inner, depth + 1) for inner in each.values())
        elif isinstance(each, list | tuple):
            left.extend((inner, depth + 1) for inner in each)


# --- answers ------------------------------------------------------------------------------------------------------------


def api_of(answer: Item) -> ApiRow | None:
    """Return the API whose key an answer has."""
    signs = ((row, *row.answer) for row in APIS.values())
    return next((row for row, key, value in signs if key in answer and (not value or answer[key] == value)), None)


def answer_json(value: object) -> Item | None:
    """Return the JSON of a provider's answer, passed as JSON or as an SDK's object; None if it is not an answer."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type | Message):
        value = sdk_json(value)
    return value if isinstance(value, Mapping) and api_of(value) is not None else None


def sdk_json(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of any SDK
    """Return an SDK's object in its API's JSON format: Gemini's client has bytes in URL-safe base64, and the headers of the response."""
    data: dict[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    data.pop("sdkHttpResponse", None)
    for candidate in data.get("candidates") or ():
        for part in (candidate.get("content") or {}).get("parts") or ():
            for holder, key in ((part, "thoughtSignature"), (part.get("inlineData", {}), "data")):
                if isinstance(holder.get(key), str):
                    holder[key] = holder[key].replace("-", "+").replace("_", "/")
    return data


def read_answer(answer: Item, request: wire.Request | None = None) -> Message:
    """Read an answer as a message, with its usage, ids and stop reason.

    Args:
        answer: The answer as JSON, of OpenAI's Chat Completions or Responses, Anthropic's Messages, or Gemini's generateContent or Interactions.
        request: The request of the answer; its tool names are mapped back.

    Raises:
        InvalidMessage: The value is not an answer of these APIs.
        ProviderError: It reports a failure, or stops before its end.
    """
    api = api_of(answer)
    if api is None:
        raise InvalidMessage(f"This is not a provider's answer; its keys: {', '.join(map(str, answer)) or 'none'}.")
    known = request or _unknown_request(api.profile(), answer)
    reader = api.reader(known, known.profile.reasoning.maker or api.maker)
    for _ in reader.whole(answer):
        pass
    return reader.end().message


def _unknown_request(profile: wire.Profile, answer: Item) -> wire.Request:
    model = answer.get("model") or answer.get("modelVersion") or ""
    return wire.Request(profile=profile, model=str(model), fields={}, report=wire.Report(), tool_names={})


# --- which dialect ------------------------------------------------------------------------------------------------------


def dialect(name: object, items: Sequence[Item], tools: Sequence[Item], model: str) -> Dialect:
    """Return a dialect by its name, or the one a list is written in.

    A list of texts alone may be in two dialects; its tools or its model decide then.

    Raises:
        InvalidInput: No dialect has this name.
        InvalidMessage: An item is not written in the dialect.
    """
    if name is not None and (not isinstance(name, str) or name not in APIS):
        raise InvalidInput(f"There is no dialect {shortened(name)}.", hint=f"Dialects: {', '.join(APIS)}.")
    usual = "anthropic" if "claude" in model.lower() else "openai-chat"
    if any(item.get("role") in ("system", "developer") for item in items):
        usual = "openai-chat"
    api, why = (name, "") if isinstance(name, str) else next(signs(items, tools), (usual, ""))
    said = _dialect(api)
    for index, item in enumerate(items):
        typed = said.items == "input" and isinstance(item.get("type"), str)
        if not typed and said.content.isdisjoint(item):
            wanted = "content" if "content" in said.content else "parts"
            keys = ", ".join(map(str, item)) or "none"
            because = f" because {why}" if why else ""
            raise InvalidMessage(
                f"Item {index} of the messages has no {wanted}; its keys: {keys}.",
                hint=f"The list is read as {said.name}{because}. {_WANTED}",
            )
    return said


_ROLES = {role: row.name for row in APIS.values() for role in row.signs.roles}
_KEYS = {key: row.name for row in APIS.values() for key in row.signs.keys}
_ITEMS = [(*sign.partition(".")[::2], row.name) for row in APIS.values() for sign in row.signs.items]
_PARTS = {kind: row.name for row in APIS.values() for kind in row.signs.parts}
_CHUNKS = {kind: row.name for row in APIS.values() for kind in row.signs.chunks}
_TOOLS = {key: row.name for row in APIS.values() for key in row.signs.tools}


def signs(items: Sequence[Item], tools: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Yield the dialects that something in a request is a sign of, each with what it is."""
    for index, item in enumerate(items):
        yield from ((sign, f"item {index} is written so") for sign in _item_signs(item))
    for index, tool in enumerate(tools):
        why = f"item {index} of the tools is written so"
        yield from ((_TOOLS[key], why) for key in _TOOLS if key in tool)
        if tool.get("type") in ("function", "custom"):
            yield "openai-responses", why


def _item_signs(item: Item) -> Iterator[str]:
    kind, role, content = item.get("type"), item.get("role"), item.get("content")
    if isinstance(kind, str) and "stop_reason" not in item:
        yield from (api for known, key, api in _ITEMS if kind == known and (not key or key in item))
        if kind.endswith("_call"):
            yield "openai-responses"
    yield from (_KEYS[key] for key in item if key in _KEYS and item[key] is not None)
    if isinstance(role, str) and role in _ROLES:
        yield _ROLES[role]
    for part in content if isinstance(content, list | tuple) else ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and isinstance(part.get(kind), list | tuple) and kind in _CHUNKS:
            yield _CHUNKS[kind]
        elif isinstance(kind, str) and kind in _PARTS:
            yield _PARTS[kind]


# --- tools --------------------------------------------------------------------------------------------------------------


def tool_specs(tools: object) -> tuple[tuple[Item, ...], tuple[ToolSpec, ...]]:
    """Return tool schemas of any dialect as the caller passed them, and read. A tool that the provider runs itself has only a name.

    Raises:
        InvalidInput: They are not a list of schemas.
    """
    if tools is None:
        return (), ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise InvalidInput(f"The tools are {shortened(tools)}, not a list.", hint=_TOOLS_WANTED)
    given = tuple(tools)
    for index, tool in enumerate(given):
        if not isinstance(tool, Mapping):
            raise InvalidInput(f"Item {index} of the tools is {shortened(tool)}, not a schema.", hint=_TOOLS_WANTED)
        _require_finite(tool, f"Item {index} of the tools")
    return given, tuple(spec for tool in given for spec in _specs(tool))


def _specs(tool: Item) -> Iterator[ToolSpec]:
    declared = tool.get("functionDeclarations") or tool.get("function_declarations")
    for declaration in declared if isinstance(declared, list | tuple) else [tool]:
        if not isinstance(declaration, Mapping):
            raise InvalidInput(f"A tool declares {shortened(declaration)}, not a function.", hint=_TOOLS_WANTED)
        inner = (declaration.get(key) for key in ("function", "custom"))
        said: Item = next((value for value in inner if isinstance(value, Mapping)), declaration)
        # the last is a custom tool's, which may hold a grammar
        keys = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema", "format")
        schema = next((said[key] for key in keys if key in said), None)
        yield ToolSpec(
            name=str(said.get("name") or said.get("type") or ""),
            description=str(said.get("description") or ""),
            parameters=schema if isinstance(schema, Mapping) else {},
        )
