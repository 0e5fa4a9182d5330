"""Recall: the tools by which a model reads what its view leaves out, without the place where it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from palaver.errors import NotFound, PalaverError
from palaver.ids import DialogId, derive_id
from palaver.log import Handle, Span, ToolSpec, places
from palaver.messages import Message, TextContent, ToolResultContent, words_of
from palaver.plurals import a_type

PAGE = 10_000
"""Characters of one page, where the model does not say."""

_LONGEST_PAGE = 40_000

LIST = DialogId(derive_id("palaver", "fit", "list"))
"""The dialog of every list: handles are the same whenever the list, grown, is read again."""

FEW = 10
"""Hits of one search, where the model does not say."""

_MOST = 50
_SNIPPET = 160
"""Characters of a hit that are shown."""


def _spec(name: str, description: str, required: str, **properties: Mapping[str, Any]) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=parameters)


_PAGING = {
    "offset": {"type": "integer", "minimum": 0, "description": "How much to skip, for the next page."},
    "limit": {"type": "integer", "minimum": 1, "description": "How much to return at most."},
}

RECALL_TOOLS: tuple[ToolSpec, ...] = (
    _spec(
        "recall",
        "Return in full what is left out or shortened in this conversation: a message, a tool output, or a run of messages. What it returns is quoted material.",
        "handle",
        handle={
            "type": "string",
            "description": "The handle in the placeholder, such as 3f2a91c07b5e:12 or 3f2a91c07b5e:12:0; several as 3f2a91c07b5e:1,7,9 or 3f2a91c07b5e:12-40.",
        },
        **_PAGING,
    ),
    _spec(
        "search_history",
        "Search the whole conversation, what is left out included, for messages that have all words. What it returns is quoted material.",
        "query",
        query={"type": "string", "description": "The words."},
        **_PAGING,
    ),
)
"""The tools `recall` and `search_history`, as they are declared."""


def arguments_of(name: str, args: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """Return the arguments of a call of one of `RECALL_TOOLS`; if they are wrong, what is wrong with them as a text for the model.

    Raises:
        NotFound: There is no such tool.
    """
    names = [tool.name for tool in RECALL_TOOLS]
    if name not in names:
        raise NotFound(name, what="tool", hint=f"Tools: {', '.join(names)}.")
    try:
        given = json.loads(args) if isinstance(args, str) else args
    except ValueError as error:
        return f"The arguments are not JSON: {error}."
    return given if isinstance(given, Mapping) else f"The arguments are {a_type(given)}, not an object."


class Said(NamedTuple):
    """A message or block as it is quoted: its handle, who said it, and its text."""

    handle: Handle
    who: str
    text: str


def recalled(args: Mapping[str, Any], read: Callable[[Handle | Span], Iterable[Said]]) -> str:
    """Answer a call of `recall`: a page of what the handle names, quoted with handles; for a wrong handle, what is wrong.

    Args:
        args: The call's arguments.
        read: Returns what a handle or span names; raises NotFound or Erased where there is nothing.
    """
    offset, limit = _paging(args, PAGE, _LONGEST_PAGE)
    stop = offset + limit
    text = ""
    try:
        for said in chain.from_iterable(map(read, places(str(args.get("handle", ""))))):
            quoted = f"[{said.handle}] {said.who}:\n{said.text}"
            text = f"{text}\n\n{quoted}" if text else quoted
            if len(text) > stop:
                return f"{text[offset:stop]}\n[more follows; offset {stop}]"
    except PalaverError as error:
        return f"{error}"
    return text[offset:] or "[nothing there]"


def searched(args: Mapping[str, Any], everything: Iterable[Said]) -> str:
    """Answer a call of `search_history`: the messages that have all words, newest first, each with its handle and a snippet.

    Args:
        args: The call's arguments.
        everything: What is searched, newest first.
    """
    offset, limit = _paging(args, FEW, _MOST)
    query = str(args.get("query", ""))
    words = query.casefold().split()
    hits = [said for said in everything if words and all(word in said.text.casefold() for word in words)]
    shown = hits[offset : offset + limit]
    lines = [f"{said.handle} ({said.who}): {_snippet(said.text, words[0])}" for said in shown]
    if len(hits) > offset + len(shown):
        lines.append(f"[{len(hits) - offset - len(shown):,} more; offset {offset + len(shown)}]")
    return "\n".join(lines) or f"No message has all words of {query[:_SNIPPET]!r}. Try fewer words, or others."


@dataclass(frozen=True)
class ListRecall:
    """Brings back what handles name in a list, and answers the tools that recall.

    Attributes:
        given: The caller's item of each message.
        read: The messages.
    """

    given: Sequence[Any]
    read: Sequence[Message]

    def item(self, handle: Handle | str) -> Any:  # noqa: ANN401 - the caller's own, whatever it is
        """Return what a handle names: the caller's own item; for a block its text, or the block where it is more than a text.

        Raises:
            InvalidInput: The text is not a handle.
            NotFound: Nothing in this list has the handle.
        """
        place = Handle.parse(handle) if isinstance(handle, str) else handle
        if not LIST.startswith(place.dialog) or not 0 <= place.seq < len(self.given):
            raise NotFound(str(place), what="handle")
        if place.block is None:
            return self.given[place.seq]
        contents = self.read[place.seq].contents
        if not 0 <= place.block < len(contents):
            raise NotFound(str(place), what="handle")
        content = contents[place.block]
        if isinstance(content, ToolResultContent):
            return content.text() if isinstance(content.content, str) else content
        return content.content if isinstance(content, TextContent) else content

    def answer(self, name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of one of `RECALL_TOOLS`: the text of its result, or what is wrong with the arguments.

        Args:
            name: The tool's name.
            args: The arguments, as a mapping or as the JSON text that the model wrote.

        Raises:
            NotFound: There is no such tool.
        """
        given = arguments_of(name, args)
        if isinstance(given, str):
            return given
        if name == "recall":
            return recalled(given, self._said)
        return searched(given, (self._quoted(index) for index in reversed(range(len(self.read)))))

    def _said(self, place: Handle | Span) -> Iterator[Said]:
        for seq in range(place.start, place.stop) if isinstance(place, Span) else (place.seq,):
            block = None if isinstance(place, Span) else place.block
            self.item(Handle(place.dialog, seq, block))
            yield self._quoted(seq, block)

    def _quoted(self, index: int, block: int | None = None) -> Said:
        message = self.read[index]
        contents = message.contents if block is None else message.contents[block : block + 1]
        return Said(Handle(LIST, index, block), message.role.value, "\n".join(map(words_of, contents)))


def _snippet(text: str, word: str) -> str:
    at = max(text.casefold().find(word) - _SNIPPET // 4, 0)
    return " ".join(text[at : at + _SNIPPET].split())


def _paging(args: Mapping[str, Any], usual: int, most: int) -> tuple[int, int]:
    offset, limit = args.get("offset"), args.get("limit")
    return (
        offset if isinstance(offset, int) and offset > 0 else 0,
        min(limit, most) if isinstance(limit, int) and limit > 0 else usual,
    )
