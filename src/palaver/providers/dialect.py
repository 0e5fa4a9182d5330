"""A dialect: how one provider's interface writes a list of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import AssistantMessage, Content, Message, TextContent, ToolResultContent

Item: TypeAlias = Mapping[str, Any]
"""One message, item or content of a list, as a JSON object."""

Shown: TypeAlias = Mapping[int, Content]
"""What an item still shows: the content of each block, by its index in the message that was read from the item."""


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


class Dialect(ABC):
    """How one provider's interface writes a list of messages.

    Attributes:
        name: Its name, which is also the name of the profile its lists are checked against.
        items: The key of the list in a request.
        system: The key of the instructions; empty where instructions are messages of the list.
        model_role: The role of the model where roles alternate and the user begins; empty where they need not.
        content: The keys of an item that hold what it says.
        beside: What else a request needs, so that its list can be checked.
    """

    name: ClassVar[str]
    items: ClassVar[str]
    system: ClassVar[str] = ""
    model_role: ClassVar[str] = ""
    content: ClassVar[frozenset[str]] = frozenset({"content"})
    beside: ClassVar[Item] = {}

    def read(self, items: Sequence[Item]) -> tuple[Message, ...]:
        """Read a list.

        Raises:
            InvalidMessage: An item is not a message of this dialect; the error names its index.
        """
        reader = self.reader()
        messages = []
        for index, item in enumerate(items):
            try:
                if not isinstance(item.get("role"), str | None):
                    raise InvalidMessage(f"The role is {item['role']!r}, not a text.")  # noqa: TRY301 - named below
                messages.append(reader(item, id=f"message-{index}", timestamp=0.0))
            except InvalidMessage as error:
                text = f"Item {index} of the messages: {error.message}"
                raise InvalidMessage(text, faults=error.faults, hint=error.hint) from error
        return tuple(messages)

    def spelled(self, item: Item) -> Item:
        """Return an item with the keys of the API's JSON, where an SDK writes others; the same object if it has them already."""
        return item

    @abstractmethod
    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the items of one list in order. Keywords are fields of the message."""

    @abstractmethod
    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return an item that shows only some blocks, or shows them in another form; None if nothing of it is left.

        Args:
            item: The caller's item, which does not change.
            message: The message that was read from it.
            shown: What it still shows. Blocks of the message that are missing here are left out.
        """

    @abstractmethod
    def say(self, text: str) -> Item:
        """Return an item in which the user says a text."""

    @abstractmethod
    def answer(self, result: ToolResultContent, call: Item) -> Item:
        """Return an item with the result of a tool call, which `call` makes."""

    @abstractmethod
    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""

    def join(self, one: Item, other: Item) -> Item:
        """Return two neighbours of one role as one item, where roles alternate."""
        raise NotImplementedError

    def unlink(self, item: Item) -> Item | None:
        """Return an item of the model as it can be sent when other items of its response are left out; None if it cannot."""
        return item

    def by_model(self, item: Item) -> bool:
        """Return whether the model says an item."""
        return item.get("role") == (self.model_role or "assistant")

    def opens(self, item: Item) -> bool:
        """Return whether a list may begin with an item."""
        return not (self.model_role and self.by_model(item))

    def instructions(self, body: Item) -> str:
        """Return the instructions that are not in the list of a request, as one text."""
        found = body.get(self.system) or ""
        if isinstance(found, str):
            return found
        parts = found.get("parts", ()) if isinstance(found, Mapping) else found
        return "\n\n".join(part["text"] for part in parts)

    def tools(self, body: Item) -> object:
        """Return the schemas of a request's tools, as `tool_specs` reads them."""
        return body.get("tools")


def grouped(read: Callable[..., Message]) -> Callable[..., Message]:
    """Return a function that reads items in order. Items of the model that follow each other are one response."""
    response = ""

    def read_next(item: Item, **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
        nonlocal response
        message = read(item, **fields)
        response = (response or message.id) if isinstance(message, AssistantMessage) else ""
        return message.model_copy(update={"response_id": response, "fragment": True}) if response else message

    return read_next


def text_of(content: Content) -> str:
    """Return what a block says, as one text."""
    return content.text() if isinstance(content, ToolResultContent) else getattr(content, "content", "")


def parts_shown(
    parts: Sequence[Any], message: Message, shown: Shown, write: Callable[[Any, Content], Any], first: int = 0
) -> list[Any]:
    """Return the parts of an item that are still shown, those in another form written anew.

    Args:
        parts: The parts. Part n was read as block `first + n`.
        message: The message that was read.
        shown: What is still shown.
        write: Writes a changed part, from the part and its new content.
        first: The block of the first part.
    """
    return [
        part if shown[index] is message.contents[index] else write(part, shown[index])
        for index, part in enumerate(parts, first)
        if index in shown
    ]


def changed_text(part: Any, content: Content, kind: str = "text") -> Any:  # noqa: ANN401 - any part
    """Return a text part with another text; the other fields stay if it was a text before."""
    same = isinstance(part, Mapping) and isinstance(part.get("text"), str) and isinstance(content, TextContent)
    return {**part, "text": text_of(content)} if same else {"type": kind, "text": text_of(content)}
