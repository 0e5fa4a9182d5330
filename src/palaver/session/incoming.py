"""Convert callers' input: messages and tools in providers' formats, and answers of providers' SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from palaver.messages import Message
from palaver.plurals import a_type

if TYPE_CHECKING:
    from palaver.log import ToolSpec
    from palaver.wire import Request

__all__ = ["SdkObject", "is_one", "messages_of", "tools_of"]


class SdkObject(Protocol):
    """An object of a provider's SDK: an answer or a message."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as JSON values."""


def messages_of(given: object, request: Request | None) -> Iterator[tuple[Message, bool]]:
    """Yield the appended messages, each with whether it is a provider's whole answer.

    Args:
        given: A `Message`, a dict of any of the four dialects, an object of a provider's SDK, or several of them.
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


def _reader(items: list[Any], request: Request | None) -> Any:  # noqa: ANN401 - a function of an item
    from palaver.providers import answer_json, dialect, items_of, read_answer  # noqa: PLC0415 - a program that appends messages needs no dialects

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


def tools_of(tools: Iterable[Any]) -> tuple[ToolSpec, ...]:
    """Read the tools of a request: schemas of any of the four dialects, and functions.

    Raises:
        InvalidInput: A value is neither, or two have the same name.
    """
    from palaver.providers import tool_specs  # noqa: PLC0415 - as in `_reader`
    from palaver.tools import Toolbox  # noqa: PLC0415 - as above

    given = tools if isinstance(tools, str | bytes | Mapping) else list(tools)
    if isinstance(given, list) and any(map(callable, given)):
        return tuple(
            spec for tool in given for spec in (Toolbox([tool]).specs if callable(tool) else tool_specs([tool])[1])
        )
    return tool_specs(given)[1]
