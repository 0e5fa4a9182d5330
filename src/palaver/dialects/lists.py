"""Reading: what a caller passes, as messages: lists of any dialect, whole answers of providers, and objects of their SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from reprlib import repr as shortened
from typing import Any, NamedTuple, Protocol

from palaver import wire
from palaver.dialects.dialect import MessageDialect
from palaver.errors import InvalidInput, InvalidMessage
from palaver.messages import Message
from palaver.messages.value import Value
from palaver.plurals import a_type
from palaver.providers import APIS
from palaver.providers.dialect import Dialect, Item, sdk_json
from palaver.providers.registry import ApiRow

__all__ = ["SdkObject", "dialect_of", "item_reader", "messages_of", "names", "read_messages"]

ENTRY_POINTS = "palaver.dialects"

_WANTED = "Pass dicts or SDK objects of an API (chat completions, Responses, Anthropic, Gemini, Interactions) or of a framework with a dialect."

_DEEPEST = 200
"""Most levels of an item: twice what a message may have, and fewer than the interpreter can follow."""


class SdkObject(Protocol):
    """An object of a provider's SDK: an answer or a message."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as JSON values."""


def read_messages(items: object, dialect: str | None = None) -> tuple[Message, ...]:
    """Read messages of any dialect.

    Args:
        items: A list of dicts or message objects of one dialect, whole answers of a provider and `Message` values, or one of these alone.
        dialect: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `gemini-interactions`, `vercel-ui`, `langchain`, `pydantic-ai`,
            `agent-framework`, `bedrock`, or one that a package adds. Default: found from the items.

    Returns:
        The messages, in order. An item with the results of several calls is one message; an item of a dialect that joins an answer with its
        results is several.

    Raises:
        TypeError: A value is neither a message nor an item.
        InvalidMessage: An item is not a message of the dialect; the error names its index.
        InvalidInput: No dialect has this name.
        ProviderError: An answer reports a failure, or stops before its end.
    """
    return tuple(message for message, _ in messages_of(items, None, dialect))


def messages_of(
    given: Any,  # noqa: ANN401 - what callers pass
    request: wire.Request | None = None,
    dialect: str | None = None,
) -> Iterator[tuple[Message, bool]]:
    """Yield the messages that a caller passes, each with whether it is a provider's whole answer.

    Args:
        given: As for `read_messages`.
        request: The request of an answer, if known. Its tool names are mapped back.
        dialect: As for `read_messages`.

    Raises:
        InvalidMessage: An item is not a message of its dialect.
        InvalidInput: No dialect has this name.
        ProviderError: An answer reports a failure, or stops before its end.
        TypeError: The value has none of these types, such as a stream; nothing of it was read.
    """
    if isinstance(given, Message) and dialect is None:
        yield given, False
        return
    if isinstance(given, Iterator | AsyncIterator) and dialect is None:
        raise TypeError(
            f"Messages are read whole, and {a_type(given)} gives pieces one by one: pass the answer once it is whole, "
            'such as `stream.get_final_completion()` or {"role": "assistant", "content": text}. Of messages, pass a list.'
        )
    items = [given] if is_one(given) else list(given)
    said = [item for item in items if not isinstance(item, Message)]
    other = other_dialect(dialect, said)
    answers: dict[int, tuple[ApiRow, Item]] = {}
    if other is None and dialect is None:  # in a named dialect, all are its items
        answers = {id(item): answer for item in said if (answer := _answer(item)) is not None}
    if other is not None:
        read = other.reader()
    else:
        left = [item for item in said if id(item) not in answers]
        read = _api_reader(left, dialect, request.model if request else "")
    for index, item in enumerate(items):
        if isinstance(item, Message):
            yield item, False
        elif id(item) in answers:
            yield _read_answer(*answers[id(item)], request), True
        else:
            yield from ((message, False) for message in read_at(index, partial(read, item)))


def _api_reader(items: Sequence[Any], name: str | None, model: str) -> Callable[..., Sequence[Message]]:
    """Return what reads items in order, in the one dialect of an API that they are written in.

    Raises:
        TypeError: A value is neither a dict nor an object of an SDK.
    """
    for item in items:
        if not isinstance(item, Mapping) and not _is_sdk_object(item):
            raise TypeError(
                'A message is a Message, a dict such as {"role": "user", "content": "hi"} or a provider\'s answer, '
                f"not {a_type(item)}. Dialog.put_text() appends a text."
            )
    plain = items_of(items)
    read, left = api_dialect(name, plain, (), model).reader(), iter(plain)
    return lambda _item: (read(next(left)),)


def is_one(given: object) -> bool:
    """Return whether a value is one message rather than several."""
    return isinstance(given, str | bytes | Mapping) or _is_sdk_object(given) or not isinstance(given, Iterable)


def _is_sdk_object(given: object) -> bool:
    return callable(getattr(given, "model_dump", None)) and not isinstance(given, type)


def item_reader(name: str) -> Callable[..., Sequence[Message]]:
    """Return a function that reads the items of one list in order: an item in JSON, and fields for messages to which it gives none.

    Raises:
        InvalidInput: No dialect has this name.
    """
    other = other_dialect(name, ())
    if other is not None:
        return other.reader()
    read = _api(name).reader()
    return lambda item, **about: tuple(read(plain, **about) for plain in items_of([item]))


def read_at(index: int, read: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it reads
    """Return what is read, or name the item that is not a message."""
    try:
        return read()
    except InvalidMessage as error:
        text = f"Item {index} of the messages: {error.message}"
        raise InvalidMessage(text, faults=error.faults, hint=error.hint) from error


# --- items --------------------------------------------------------------------------------------------------------------


def items_of(messages: object) -> tuple[Item, ...]:
    """Return the items of a list as JSON objects: the caller's own object where it is one.

    Raises:
        InvalidMessage: It is not a list, or an item is not a message.
    """
    given = listed(messages)
    for index, item in enumerate(given):
        require_finite(item, f"Item {index} of the messages")
    return tuple(_item(each, index) for index, each in enumerate(given))


def listed(messages: Any) -> tuple[Any, ...]:  # noqa: ANN401 - what callers pass
    """Return the items of a list as they are.

    Raises:
        InvalidMessage: It is not a list.
    """
    if is_one(messages):
        raise InvalidMessage(
            f"The messages are {a_type(messages)}, not a list.",
            hint='Pass a list of dicts, such as [{"role": "user", "content": "hi"}].',
        )
    return tuple(messages)


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
    return item if api is None else _api(api).spelled(item)


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


def require_finite(value: object, what: str) -> None:
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


def _answer(value: object) -> tuple[ApiRow, Item] | None:
    """Return a provider's answer, passed as JSON or as an SDK's object, in JSON and with its API; None if it is not an answer."""
    said = sdk_json(value) if _is_sdk_object(value) and not isinstance(value, Message) else value
    if not isinstance(said, Mapping):
        return None
    signs = ((row, *row.answer) for row in APIS.values())
    api = next((row for row, key, wanted in signs if key in said and (not wanted or said[key] == wanted)), None)
    return None if api is None else (api, said)


def _read_answer(api: ApiRow, answer: Item, request: wire.Request | None) -> Message:
    """Read an answer as a message, with its usage, ids and stop reason.

    Raises:
        ProviderError: It reports a failure, or stops before its end.
    """
    if request is None:
        model = str(answer.get("model") or answer.get("modelVersion") or "")
        request = wire.Request(profile=api.profile(), model=model, fields={}, report=wire.Report(), tool_names={})
    reader = api.reader(request, request.profile.reasoning.maker or api.maker)
    for _ in reader.whole(answer):
        pass
    return reader.end().message


# --- which dialect ------------------------------------------------------------------------------------------------------


class _DialectRow(NamedTuple):
    """A dialect that is not an API's.

    Attributes:
        module: Its module in this package.
        keys: Sets of keys; an item that has all keys of one set is written in the dialect.
        objects: The module of its message objects, or empty.
        key: The key whose value shows the dialect, too; empty if the keys suffice.
        values: The values of this key.
        parts: The keys of which each part of its content has one, and no other; empty if the content shows nothing.
    """

    module: str
    keys: tuple[frozenset[str], ...]
    objects: str = ""
    key: str = ""
    values: frozenset[object] = frozenset()
    parts: frozenset[str] = frozenset()

    def claims(self, item: Mapping[str, Any]) -> bool:
        """Return whether an item is written in the dialect."""
        value = item.get(self.key)
        shown = not self.key or (isinstance(value, str) and value in self.values)
        return shown and any(signs <= item.keys() for signs in self.keys) and (not self.parts or self._has_parts(item))

    def _has_parts(self, item: Mapping[str, Any]) -> bool:
        content = item.get("content")
        return (
            isinstance(content, list | tuple)
            and bool(content)
            and all(isinstance(part, Mapping) and len(part) == 1 and part.keys() <= self.parts for part in content)
        )


_LANGCHAIN = "human ai system tool function chat AIMessageChunk HumanMessageChunk SystemMessageChunk constructor"
"""The types of LangChain's messages."""

_ROWS: Mapping[str, _DialectRow] = {
    "vercel-ui": _DialectRow("vercel_ui", (frozenset({"id", "role", "parts"}),)),
    "langchain": _DialectRow(
        "langchain",
        (frozenset({"type", "data"}), frozenset({"lc", "id", "kwargs"})),
        "langchain_core.messages",
        "type",
        frozenset(_LANGCHAIN.split()),
    ),
    "pydantic-ai": _DialectRow(
        "pydantic_ai",
        (frozenset({"kind", "parts"}),),
        "pydantic_ai.messages",
        "kind",
        frozenset({"request", "response"}),
    ),
    "agent-framework": _DialectRow(
        "agent_framework",
        (frozenset({"type", "role", "contents"}),),
        "agent_framework.",
        "type",
        frozenset({"message", "chat_message"}),
    ),
    "bedrock": _DialectRow(
        "bedrock",
        (frozenset({"role", "content"}),),
        parts=frozenset(
            {
                "cachePoint",
                "citationsContent",
                "document",
                "guardContent",
                "image",
                "reasoningContent",
                "text",
                "toolResult",
                "toolUse",
                "video",
            }
        ),
    ),
}


def names() -> tuple[str, ...]:
    """Return the names of all dialects: the APIs', palaver's own others, and those that packages add."""
    return (*APIS, *_ROWS, *(entry.name for entry in entry_points(group=ENTRY_POINTS)))


@cache
def _named(name: str) -> MessageDialect | None:
    """Return a dialect that is not an API's, or None."""
    if name in _ROWS:
        dialect: MessageDialect = import_module(f"{__package__}.{_ROWS[name].module}").DIALECT
        return dialect
    entry = next(iter(entry_points(group=ENTRY_POINTS, name=name)), None)
    return None if entry is None else entry.load()


@cache
def _api(name: str) -> Dialect:
    return APIS[name].dialect


def dialect_of(items: Sequence[Any], tools: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the dialect that a list of items, or its tools, shows; an empty text if nothing shows one."""
    first = _claimed(items[0]) if items else ""
    return first or next((name for name, _ in _signs(items, tools)), "")


def other_dialect(name: object, items: Sequence[Any]) -> MessageDialect | None:
    """Return the dialect of a list, by its name or its first item; None where it is an API's.

    Raises:
        InvalidInput: No dialect has this name.
    """
    if name is None:
        first = _claimed(items[0]) if items else ""
        return _named(first) if first else None
    if isinstance(name, str) and name in APIS:
        return None
    found = _named(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput(f"There is no dialect {shortened(name)}.", hint=f"Dialects: {', '.join(names())}.")
    return found


def _claimed(item: object) -> str:
    """Return the dialect that an item or a message object is written in, unless it is an API's."""
    if isinstance(item, Mapping):
        return next((name for name, row in _ROWS.items() if row.claims(item)), "")
    homes = [kind.__module__ for kind in type(item).__mro__]
    rows = ((name, row.objects) for name, row in _ROWS.items() if row.objects)
    return next((name for name, home in rows if any(module.startswith(home) for module in homes)), "")


def api_dialect(name: str | None, items: Sequence[Item], tools: Sequence[Item] = (), model: str = "") -> Dialect:
    """Return the dialect of an API by its name, or the one a list is written in.

    A list of texts alone may be in two dialects; its tools or its model decide then.

    Raises:
        InvalidMessage: An item is not written in the dialect.
    """
    usual = "anthropic" if "claude" in model.lower() else "openai-chat"
    if any(item.get("role") in ("system", "developer") for item in items):
        usual = "openai-chat"
    api, why = next(_signs(items, tools), (usual, "")) if name is None else (name, "")
    said = _api(api)
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


def _signs(items: Sequence[Item], tools: Sequence[Item]) -> Iterator[tuple[str, str]]:
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
