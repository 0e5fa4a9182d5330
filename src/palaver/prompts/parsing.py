"""Parsers read the structure that a prompt declares from the text of an answer."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from palaver.errors import InvalidInput, ParseError
from palaver.plurals import a_type

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")


@runtime_checkable
class Parser(Protocol):
    """An object that reads structure from text."""

    def parse(self, content: str, **runtime_args: Any) -> object:  # noqa: ANN401 - the caller's own arguments
        """Return the structure in the text.

        Raises:
            ParseError: The text lacks a required part; the model is asked to repair it.
        """
        ...


ParseFunction: TypeAlias = Callable[..., object]


def parse_with(parser: Parser | ParseFunction, content: str, runtime_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a parser as a mapping.

    A mapping gets the text as `raw` if it has no such key; any other value is stored under `value`.

    Raises:
        InvalidInput: The parser is a coroutine function or a generator.
    """
    answer = parser.parse(content, **runtime_args) if isinstance(parser, Parser) else parser(content, **runtime_args)
    if inspect.iscoroutine(answer):
        answer.close()
    if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        raise InvalidInput(
            f"The parser returned {a_type(answer)}, which did not run.",
            hint="Write it as a plain function, without async and yield.",
        )
    parsed = dict(answer) if isinstance(answer, Mapping) else {"value": answer}
    parsed.setdefault("raw", content)
    return parsed


class DefaultTagParser:
    """Reads `<name>…</name>` elements, fenced ```` ```name … ``` ```` blocks and signals such as `<DONE>`.

    Attributes:
        xml_tags: Names of the elements to read.
        md_tags: Names of the fenced blocks to read.
        signal_tags: Names of the signals to look for: `<name>` or `<name/>`.
        required_xml_tags: Required elements, listed in `xml_tags` or not.
        required_md_tags: Required fenced blocks, listed in `md_tags` or not.
    """

    def __init__(
        self,
        xml_tags: Iterable[str] = (),
        md_tags: Iterable[str] = (),
        signal_tags: Iterable[str] = (),
        required_xml_tags: Iterable[str] = (),
        required_md_tags: Iterable[str] = (),
    ) -> None:
        self.required_xml_tags = tuple(required_xml_tags)
        self.required_md_tags = tuple(required_md_tags)
        self.xml_tags = tuple(dict.fromkeys((*xml_tags, *self.required_xml_tags)))
        self.md_tags = tuple(dict.fromkeys((*md_tags, *self.required_md_tags)))
        self.signal_tags = tuple(signal_tags)

    def parse(self, content: str, **runtime_args: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002 - the protocol's
        """Return `raw`, the texts of each name under `xml_tags` and `md_tags`, and under `signal_tags` whether each occurs.

        Raises:
            ParseError: A required element or block is missing.
        """
        xml = {tag: _elements(tag, content) for tag in self.xml_tags}
        fenced = {tag: _fences(tag, content) for tag in self.md_tags}
        missing = [f"<{tag}>" for tag in self.required_xml_tags if not xml[tag]]
        missing += [f"```{tag}" for tag in self.required_md_tags if not fenced[tag]]
        if missing:
            raise ParseError(f"The answer lacks {', '.join(missing)}.", content=content, missing=missing)
        signals = {tag: f"<{tag}>" in content or f"<{tag}/>" in content for tag in self.signal_tags}
        return {"raw": content, "xml_tags": xml, "md_tags": fenced, "signal_tags": signals}


def _elements(tag: str, content: str) -> list[str]:
    """Return the texts of the closed elements of this name, with attributes or without. Reads the text once."""
    opens, closes = re.compile(rf"<{re.escape(tag)}(?:\s[^<>]*)?>"), f"</{tag}>"
    elements: list[str] = []
    start = opens.search(content)
    while start is not None:
        end = content.find(closes, start.end())
        if end < 0:
            break
        elements.append(content[start.end() : end].strip())
        start = opens.search(content, end + len(closes))
    return elements


def _fences(tag: str, content: str) -> list[str]:
    """Return the texts of the closed fenced blocks of this language (CommonMark, section 4.5)."""
    fences: list[str] = []
    inside: list[str] | None = None
    fence, language = "", ""
    for line in content.splitlines():
        opening = _FENCE.match(line)
        if inside is None and opening is not None:
            inside, fence, language = [], opening[1], opening[2]
        elif inside is not None and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            if language == tag:
                fences.append("\n".join(inside).strip())
            inside = None
        elif inside is not None:
            inside.append(line)
    return fences
