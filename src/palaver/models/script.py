"""Answers written down beforehand: what a scripted provider gives, read from Python values or from JSON.

The JSON form is a list of answers, or an object with the list under `answers`. An answer is a string, its text, or an object:

    {"thinking": "…", "text": "…", "tool_calls": [{"name": "…", "arguments": {…}, "id": "…"}],
     "usage": {…}, "stop_reason": "…", "delay": 0.5, "error": {"kind": "RateLimited", "message": "…", "retry_after": 2}}

All keys are optional. Arguments that are a string are taken as the model wrote them, valid JSON or not. With an error, what the answer says
comes before it, as when a connection breaks. `contents` gives blocks in palaver's own form, in place of thinking, text and calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from palaver import errors
from palaver.errors import InvalidInput, PalaverError, ProviderError
from palaver.ids import derive_id, new_message_id
from palaver.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCallContent

__all__ = ["Answer", "read_answer", "read_script"]

_KEYS = frozenset(
    {"text", "thinking", "tool_calls", "contents", "usage", "stop_reason", "delay", "error", "response_id", "metadata"}
)
_CALL_KEYS = frozenset({"id", "name", "arguments"})
_ERROR_KEYS = frozenset({"kind", "message", "status", "code", "retry_after", "limit", "asked", "retryable"})
_ERRORS: Mapping[str, type[ProviderError]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ProviderError)
    }
)
_ID_DIGITS = 24


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a script.

    Attributes:
        message: What the model says, or None for nothing.
        error: What is raised after it, or None.
        delay: Seconds before it begins.
    """

    message: AssistantMessage | None = None
    error: BaseException | None = None
    delay: float = 0.0


def read_script(path: str | Path) -> tuple[Answer, ...]:
    """Read a script from a JSON file.

    Raises:
        InvalidInput: It is not there, or no script; the error says which answer is wrong and how.
    """
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"The script {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(f"The script {str(path)!r} is no JSON: {error}.") from error
    answers = read.get("answers") if isinstance(read, dict) else read
    if not isinstance(answers, list):
        raise InvalidInput(
            f"The script {str(path)!r} is no list of answers, and no object with a list under 'answers'."
        )
    return tuple(_numbered(path, number, answer) for number, answer in enumerate(answers, start=1))


def _numbered(path: str | Path, number: int, answer: object) -> Answer:
    try:
        return read_answer(answer)
    except PalaverError as error:
        raise InvalidInput(f"Answer {number} of {str(path)!r}: {error.message}", hint=error.hint) from error


def read_answer(answer: object) -> Answer:
    """Read one answer: an Answer, a message, an error, a text, or an object in the JSON form.

    Raises:
        InvalidInput: It is none.
    """
    if isinstance(answer, Answer):
        return answer
    if isinstance(answer, AssistantMessage):
        return Answer(answer)
    if isinstance(answer, BaseException):
        return Answer(error=answer)
    if isinstance(answer, str):
        return _read({"text": answer})
    if isinstance(answer, Mapping):
        return _read(answer)
    raise InvalidInput(
        f"A {type(answer).__name__} is no answer of a script.", hint="Give a text, a message or an object."
    )


def _read(answer: Mapping[str, Any]) -> Answer:
    _known(answer, _KEYS, "an answer")
    error = answer.get("error")
    said = answer.keys() & {"text", "thinking", "tool_calls", "contents"}
    if not said and error is None:
        raise InvalidInput("An answer says something, or fails.", hint="Give 'text', 'tool_calls' or 'error'.")
    delay = answer.get("delay", 0.0)
    if not isinstance(delay, int | float) or delay < 0:
        raise InvalidInput(f"The delay is a number of seconds, not {delay!r}.")
    return Answer(_message(answer) if said else None, None if error is None else _error(error), delay)


def _message(answer: Mapping[str, Any]) -> AssistantMessage:
    message_id = new_message_id()
    contents = answer.get("contents")
    blocks = contents if contents is not None else tuple(_blocks(answer, message_id))
    more = {key: answer[key] for key in ("usage", "response_id", "metadata") if answer.get(key) is not None}
    message = AssistantMessage(id=message_id, contents=blocks, **more)
    reason = answer.get("stop_reason") or (StopReason.TOOL_CALLS if message.is_function_call else StopReason.STOP)
    return message.model_copy(update={"stop_reason": reason})


def _blocks(answer: Mapping[str, Any], message_id: str) -> Iterable[ThinkingContent | TextContent | ToolCallContent]:
    for key, kind in (("thinking", ThinkingContent), ("text", TextContent)):
        text = answer.get(key)
        if text is not None and not isinstance(text, str):
            raise InvalidInput(f"{key!r} is a text, not a {type(text).__name__}.")
        if text:
            yield kind(content=text)
    calls = answer.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise InvalidInput("'tool_calls' is a list of objects with a name and arguments.")
    for number, call in enumerate(calls):
        yield _call(call, derive_id(message_id, str(number)))


def _call(call: object, fresh: str) -> ToolCallContent:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidInput("A tool call is an object with a name and arguments.")
    _known(call, _CALL_KEYS, "a tool call")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, str | Mapping):
        raise InvalidInput("The arguments of a tool call are an object, or a text as the model writes it.")
    return ToolCallContent(id=call.get("id") or f"call_{fresh[:_ID_DIGITS]}", name=call["name"], args=arguments)


def _error(error: object) -> ProviderError:
    fields = {"kind": error} if isinstance(error, str) else error
    if not isinstance(fields, Mapping):
        raise InvalidInput("An error is its kind, or an object with a kind.")
    _known(fields, _ERROR_KEYS, "an error")
    kind = fields.get("kind", "ProviderDown")
    if kind not in _ERRORS:
        near = get_close_matches(str(kind), _ERRORS, n=1)
        raise InvalidInput(
            f"There is no error {kind!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(_ERRORS)}.",
        )
    facts = {key: value for key, value in fields.items() if key not in {"kind", "message"}}
    return _ERRORS[kind](fields.get("message") or f"The script says: {kind}.", **facts)


def _known(fields: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    for key in fields:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            raise InvalidInput(
                f"{key!r} is no key of {what}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(known))}.",
            )
