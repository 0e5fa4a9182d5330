"""Convert callers' input: messages and tools in providers' formats, answers of providers' SDKs, prompts and images."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from palaver import providers, wire
from palaver.errors import InvalidInput, InvalidMessage, MissingFile
from palaver.ids import BlobId, DialogId
from palaver.log import ToolSpec
from palaver.messages import FrozenDict, Media, Message, ToolMessage, media_of
from palaver.messages.media import sniff
from palaver.plurals import a_type
from palaver.prompts import Prompt, StringFormatterRenderer
from palaver.prompts.render import VerbatimRenderer
from palaver.store.protocol import Store
from palaver.tools import Toolbox


class SdkObject(Protocol):
    """An object of a provider's SDK: an answer or a message."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as JSON values."""


def messages_of(given: object, request: wire.Request | None) -> Iterator[tuple[Message, bool]]:
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


def _reader(items: list[Any], request: wire.Request | None) -> Callable[[Any], tuple[Message, bool]]:
    """Return a reader of items in order. Answers are read with their request, the other items in their common dialect."""
    for item in items:
        if not isinstance(item, Mapping) and not _is_sdk_object(item):
            raise TypeError(
                f"A dialog contains messages, not {a_type(item)}: append a Message, a dict such as "
                '{"role": "user", "content": "hi"} or a provider\'s answer, or use put_text() for a text.'
            )
    answers = {id(item): answer for item in items if (answer := providers.answer_json(item)) is not None}
    _, plain = providers.items_of([item for item in items if id(item) not in answers])
    read = providers.dialect(None, plain, (), request.model if request else "").reader()
    left = iter(plain)

    def of(item: object) -> tuple[Message, bool]:
        answer = answers.get(id(item))
        return (read(next(left)), False) if answer is None else (providers.read_answer(answer, request), True)

    return of


def tools_of(tools: Iterable[Any]) -> tuple[ToolSpec, ...]:
    """Read the tools of a request: schemas of any of the four dialects, and functions.

    Raises:
        InvalidInput: A value is neither, or two have the same name.
    """
    given = tools if isinstance(tools, str | bytes | Mapping) else list(tools)
    if isinstance(given, list) and any(map(callable, given)):
        return tuple(
            spec
            for tool in given
            for spec in (Toolbox([tool]).specs if callable(tool) else providers.tool_specs([tool])[1])
        )
    return providers.tool_specs(given)[1]


def rendered(prompt: Prompt, prompt_args: Mapping[str, Any] | None) -> str:
    """Return the text of a prompt with a caller's arguments.

    Raises:
        TypeError: The arguments are not a mapping.
        InvalidInput: Variables are missing, or there are arguments although the prompt is a plain text or has no variables.
    """
    if not isinstance(prompt_args, Mapping | None):
        raise TypeError(f"prompt_args is a mapping, not {a_type(prompt_args)}.")
    args = prompt_args or {}
    if args and not prompt.template_vars and isinstance(prompt.renderer, StringFormatterRenderer | VerbatimRenderer):
        raise InvalidInput(
            f"The prompt {prompt.path!r} has no variables for {', '.join(map(str, args))}.",
            hint="A string is not a template: pass a Prompt, or leave out prompt_args.",
        )
    return prompt.render(args)


def stamped(message: Message, dialog_id: DialogId, store: Store) -> Sequence[Message]:
    """Return a message as a dialog stores it: with the dialog's id in its metadata, and one message for each result of a tool.

    Raises:
        MissingFile: It refers to media whose bytes neither it nor the store has.
    """
    for media in media_of(message):
        if media.data is None and not media.url and not store.has_blob(BlobId(media.digest)):
            raise MissingFile(media.digest, what="media payload", hint="Neither the message nor the store has it.")
    parts = message.split() if isinstance(message, ToolMessage) else (message,)
    return [_stamped(part, dialog_id) for part in parts]


def _stamped(message: Message, dialog_id: DialogId) -> Message:
    if message.metadata.get("dialog_id") == dialog_id:
        return message
    metadata = FrozenDict({**message.metadata, "dialog_id": dialog_id})
    return BaseModel.model_copy(message, update={"metadata": metadata})  # valid before, so valid now


def media_from(image: object) -> Media:
    """Return the media value of a path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.

    A string that is the base64 of an image is that image, even where a file has such a name. Any other string that is not an address names
    a file.

    Raises:
        MissingFile: A string or path names no file.
        InvalidMessage: It is not an image that palaver knows.
    """
    if not isinstance(image, str) or image.startswith(("http://", "https://")) or image[:5].lower() == "data:":
        return Media.of(image)
    decoded = _decoded(image)
    if decoded and sniff(decoded, "image") is not None:
        return Media.from_bytes(decoded)
    if decoded and not Path(image).exists():
        raise InvalidMessage(f"{image[:40]!r} is not a file, and as base64 it is not an image that palaver knows.")
    return Media.from_file(image)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
