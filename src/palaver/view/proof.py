"""How surely a model's text is an action: what answers an action that is beyond doubt may look like anything, what answers another must be beyond doubt itself.

People are told what action to take ("操作：设置（Settings）", "Aktion: Neustart(hart)") and are given configurations that are nothing but JSON. Who takes what they answer for an output
loses what they want, so each grade is proved by the form of a protocol: its words together, or a name with its arguments.
"""

# ruff: noqa: RUF001, RUF002 - punctuation of several languages

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from palaver.view.spelling import Spelling

__all__ = ["Proof", "is_data", "output_of", "proof"]


class Proof(IntEnum):
    """How sure it is that a text is an action.

    Attributes:
        NONE: It is none, as far as can be seen.
        SOME: An observation behind it proves both.
        CALL: A name with arguments: nothing but data, or what says that it is of that name, proves both, too.
        FIRM: A whole step of an agent: whatever can be an output is one.
    """

    NONE = 0
    SOME = 1
    CALL = 2
    FIRM = 3


_ENGLISH = re.compile(r"[ \t>*_#]*[\[【「]?Action", re.IGNORECASE)
_CALLED = re.compile(r"[*_`]*(?P<name>[A-Za-z_][\w.:-]{0,99})[\[(（]", re.ASCII)
_FENCE = re.compile(r"^```[^\n]{0,60}$", re.MULTILINE)
_WORD = re.compile(r"[\w.:-]{1,100}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces, in which a sentence looks like one word."""

_BEGINS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MOST = 8
"""Places at which an object is looked for."""

_OWN_NAMES = ("action", "tool", "tool_name")
_NAMES = (*_OWN_NAMES, "command", "function", "name")
_OWN_INPUTS = ("action_input", "tool_input")
_INPUTS = (*_OWN_INPUTS, "arguments", "args", "input", "parameters")
_THOUGHTS = frozenset({"thought", "thoughts", "reasoning", "rationale", "reflection"})
_BESIDE = _THOUGHTS | {"id", "type", "call_id", "plan", "analysis"}
"""Keys that stand beside a name and its arguments in what agents write; others make it a thing that has a name."""

_NAMED_OUTPUT = re.compile(
    r"(?:(?P<command>command) |(?:the )?(?:(?:results?|outputs?|responses?) (?:of|from|for)|(?P<tool>tool|function|action)) )"
    r"(?P<quote>[`'\"]?)(?P<name>[\w.-]{1,100})(?P=quote)(?(command) returned|(?(tool) (?:returned|responded)))(?: the following\.|(?: the following)?[ \t]{0,4}[:：])",
    re.IGNORECASE,
)
"""How an output begins that says what it is of."""

_RAISED = r"Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)+[\w.]{1,200}(?::[^\n]*)?"
_TRACEBACK = re.compile(
    rf"{_RAISED}(?:\n\n(?:During handling of the above exception, another exception occurred|"
    rf"The above exception was the direct cause of the following exception):\n\n{_RAISED})*"
)
"""What Python says of an exception, and of those that it was raised from."""

_DOCUMENT = re.compile(
    r"<\?xml\b[^>]{0,200}\?>\s*(?:<!DOCTYPE\b[^>]{0,400}>\s*)?<(?P<root>[\w:.-]{1,100})[\s>]|<!DOCTYPE (?P<html>html)\b",
    re.IGNORECASE,
)
"""How a document of elements begins."""

_TOKEN = re.compile(
    r"\s+|[{}\[\](),:]|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|-?(?:\d[\d.]*(?:[eE][+-]?\d+)?|Infinity)|NaN\b|(?:[tT]rue|[fF]alse|null|None)\b",
    re.DOTALL,
)
"""What JSON, lines of JSON and what Python prints of a list or an object are made of: no word stands there alone."""


def proof(said: str, spelling: Spelling) -> tuple[Proof, str]:
    """Tell how sure it is that a text is an action, and the name of what it calls, empty where that is not known."""
    in_words, in_json = _in_words(said, spelling), _in_json(said, spelling)
    return max(in_words, in_json, key=lambda one: one[0])


def _in_words(said: str, spelling: Spelling) -> tuple[Proof, str]:
    """Weigh the last line that names an action, with the thought before it and the input behind it."""
    found = None
    for found in spelling.action.finditer(said):  # noqa: B007 - the last one counts
        pass
    if found is None:
        return Proof.NONE, ""
    weight, name = _step(said, found, spelling)
    if _is_example(said, found.start()):  # a whole one may be an agent's all the same: an observation behind it tells
        weight = Proof.SOME if weight is Proof.FIRM else Proof.NONE
    return weight, name


def _step(said: str, found: re.Match[str], spelling: Spelling) -> tuple[Proof, str]:
    """Weigh a line that names an action."""
    name = found["name"].strip()
    bare = name.strip("*_`[] \t")
    thought = spelling.thought.search(said, 0, found.start()) is not None
    english = _ENGLISH.match(found[0]) is not None
    call = _CALLED.match(name)
    if spelling.given.search(said, found.end()) is not None:
        return Proof.FIRM if thought else Proof.CALL, bare
    if call is not None and _closes(name, said):
        return (Proof.FIRM if thought else Proof.CALL if english else Proof.NONE), call["name"]
    if not english:  # one word behind a thought is advice, in any language; what an English one is, its answer tells
        return Proof.NONE, ""
    if not name:
        return _behind(said[found.end() :].lstrip(), spelling)
    word = _WORD.fullmatch(name.strip("*_`")) is not None and _UNSPACED.search(name) is None
    return (Proof.SOME, bare) if word and (thought or "_" in bare) else (Proof.NONE, "")


def _is_example(said: str, at: int) -> bool:
    """Tell whether a place is in a block of code with words behind it: so steps are shown, not done."""
    if not len(_FENCE.findall(said, 0, at)) % 2:
        return False
    closed = _FENCE.search(said, at)
    return closed is not None and said[closed.end() :].strip() != ""


def _closes(name: str, said: str) -> bool:
    """Tell whether a call is all that stands behind the word: in its line, or with arguments in several lines up to the end."""
    marks = "*_` \t\r\n."
    closing = (")", "]", "）")
    return name.rstrip(marks).endswith(closing) or (
        not any(mark in name for mark in closing) and said.rstrip(marks).endswith(closing)
    )


def _behind(rest: str, spelling: Spelling) -> tuple[Proof, str]:
    """Weigh what stands in the lines below the word: a call in JSON, or code."""
    weight, name = _in_json(rest, spelling)
    if weight >= Proof.CALL:
        return Proof.FIRM, name
    return Proof.SOME if rest[:1] in {"`", "{"} else Proof.NONE, name


def _in_json(said: str, spelling: Spelling) -> tuple[Proof, str]:
    """Weigh the first object that is a call."""
    for start, stop, value in _objects(said):
        weight, name = _call(value)
        if weight is Proof.NONE:
            continue
        before, behind = said[:start].rstrip(), said[stop:].strip("` \t\r\n")
        if spelling.thought.search(before) is not None:
            return Proof.FIRM, name
        if before.strip("` \t\r\n").casefold() in {"", "json"} and not behind:
            return weight, name
        fenced = before[before.rfind("\n") + 1 :].strip().startswith("```")
        own = any(key in value for key in _OWN_NAMES)
        if own and ((fenced and not behind and weight >= Proof.CALL) or any(key in value for key in _OWN_INPUTS)):
            return Proof.SOME, name
    named = spelling.json.search(said) if re.search(r"\"(?:action|tool)_input\"\s*:", said) else None
    return (Proof.NONE, "") if named is None else (Proof.SOME, named["name"])  # spelt as no parser takes it


def _objects(said: str) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Give the objects that begin a line, with where they begin and end."""
    decoder, stop = json.JSONDecoder(strict=False), 0
    for _, found in zip(range(_MOST), _BEGINS.finditer(said), strict=False):
        if found.end() <= stop:
            continue  # it stands in the one before
        start = found.end() - 1
        try:
            value, stop = decoder.raw_decode(said, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield start, stop, value


def _call(value: Mapping[str, Any]) -> tuple[Proof, str]:
    """Weigh an object: whether it names a tool and its arguments, and what else: agents write a few things beside them, and who calls it a tool, any."""
    for key in ("command", "function"):
        inner = value.get(key)
        if isinstance(inner, dict):
            weight, name = _call({**inner, **{beside: value[beside] for beside in _THOUGHTS & value.keys()}})
            return (weight if value.keys() <= {key} | _BESIDE else Proof.NONE), name
    key = next((key for key in _NAMES if isinstance(value.get(key), str)), "")
    given = next((each for each in _INPUTS if each in value), "")
    if not key or not given:
        return Proof.NONE, ""
    name = str(value[key])
    own = key in _OWN_NAMES and given in _OWN_INPUTS
    words = isinstance(value[given], str) and (key in _OWN_NAMES or given == "arguments")
    if not (own or words or _is_arguments(value[given])):
        return Proof.NONE, ""
    if not value.keys() <= {key, given} | _BESIDE:
        return (Proof.SOME if own or key in _OWN_NAMES[1:] else Proof.NONE), name
    return Proof.FIRM if own or _THOUGHTS & value.keys() else Proof.CALL, name


def _is_arguments(value: object) -> bool:
    """Tell whether a value is arguments by their names, and no schema of them."""
    return isinstance(value, dict) and value.get("type") != "object"


def output_of(text: str) -> tuple[str, int]:
    """Give the name of what a text begins by saying that it is the output of, and where that is said; no name where it says no such thing."""
    found = _NAMED_OUTPUT.match(text)
    return ("", 0) if found is None else (found["name"].casefold(), found.end())


def is_data(text: str) -> bool:
    """Tell whether a text is data and nothing else: objects or lists, a document of elements, or a traceback with what was raised at its end."""
    bare = text.strip()
    if bare[:1] == "<":
        return _is_document(bare)
    if bare[:1] not in {"{", "["}:
        return _TRACEBACK.fullmatch(bare) is not None
    try:
        json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return _is_literal(bare)
    return True


def _is_document(text: str) -> bool:
    """Tell whether a text is one document from its first line to the end of its root."""
    begun = _DOCUMENT.match(text)
    return begun is not None and text.casefold().endswith(f"</{begun['root'] or begun['html']}>".casefold())


def _is_literal(text: str) -> bool:
    """Tell whether a text is nothing but texts, numbers and names for nothing, with brackets around them that close."""
    place = depth = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            return False
        token = found[0]
        depth += (token in {"{", "[", "("}) - (token in {"}", "]", ")"})
        if depth < 0 or (depth == 0 and token[0] in "\"'-0123456789NIntfTF"):
            return False
        place = found.end()
    return depth == 0
