"""The order of contents of generateContent: roles, calls and responses, and the signatures of the current turn.

https://ai.google.dev/gemini-api/docs/generate-content/thought-signatures: the first call of each step of the current turn has a signature, which goes back on the
part that it came with. Earlier turns are not checked. The texts are the API's own, as its users quoted them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from palaver.testing.strict.google.fields import GeminiRequest, refuse
from palaver.testing.strict.seal import Json, digest

__all__ = ["check_turns", "signature"]

_DUMMY: Final = "skip_thought_signature_validator"
_ORDER: Final = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_COUNT: Final = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
_RESPONSE: Final = "Please ensure that function response turn comes immediately after a function call turn."
_LAST: Final = "Please ensure that multiturn requests end with a user role or a function response."


def signature(subject: GeminiRequest, parts: Sequence[Json], at: int) -> str:
    """Return the signature of a part of an answer."""
    value = {"part": _signed(parts, at), "thought": digest(_thought(parts)), "model": subject.model}
    return subject.seal.close("thought", value)


def check_turns(subject: GeminiRequest) -> None:
    """Check roles, calls, responses and signatures."""
    turns = _turns(subject.body["contents"])
    if turns[-1][0] == "model":
        refuse(_LAST)
    for at, (role, parts) in enumerate(turns):
        if role == "model":
            _check_calls(subject, turns, at)
        elif _named(parts, "functionResponse") and not (at and _named(turns[at - 1][1], "functionCall")):
            refuse(_RESPONSE)
    for _, parts in turns:
        for part in parts:
            _check_encoding(part.get("thoughtSignature"))
    if subject.signs:
        _check_signatures(subject, turns)


def _turns(contents: Sequence[Json]) -> list[tuple[str, list[Json]]]:
    """Return consecutive contents of one role as one turn."""
    out: list[tuple[str, list[Json]]] = []
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        if out and out[-1][0] == role and role == "user":
            out[-1][1].extend(content["parts"])
        else:
            out.append((role, list(content["parts"])))
    return out


def _named(parts: Sequence[Json], name: str) -> list[Json]:
    return [part[name] for part in parts if name in part]


def _check_calls(subject: GeminiRequest, turns: Sequence[tuple[str, list[Json]]], at: int) -> None:
    calls = _named(turns[at][1], "functionCall")
    if _named(turns[at][1], "functionResponse"):
        refuse("Function calls and function responses must not be interleaved in one content.")
    if not calls:
        return
    if not at or turns[at - 1][0] == "model":
        refuse(_ORDER)
    responses = _named(turns[at + 1][1], "functionResponse") if at + 1 < len(turns) else []
    if len(responses) != len(calls):
        refuse(_COUNT)
    ids = {call["id"] for call in calls if call.get("id")}
    if subject.signs and ids and ids != {response.get("id") for response in responses}:
        refuse("Function response `id`s must be those of the function calls.")
    if sorted(call["name"] for call in calls) != sorted(response["name"] for response in responses):
        refuse("Please ensure that the names of function response parts are those of the function call parts.")


def _check_encoding(text: object) -> None:
    if text in (None, _DUMMY):
        return
    try:
        base64.b64decode(str(text).replace("-", "+").replace("_", "/") + "==")
    except (ValueError, binascii.Error):
        refuse("Invalid value at 'contents' (thought_signature): Base64 decoding failed")


def _check_signatures(subject: GeminiRequest, turns: Sequence[tuple[str, list[Json]]]) -> None:
    """Check the turn that began with the newest words of the user."""
    words = [
        at
        for at, (role, parts) in enumerate(turns)
        if role == "user" and not all("functionResponse" in part for part in parts)
    ]
    for at in range((words or [0])[-1] + 1, len(turns)):
        role, parts = turns[at]
        if role != "model":
            continue
        calls = [part for part in parts if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            name = calls[0]["functionCall"]["name"]
            refuse(f"Function call `{name}` in the `{at + 1}.` content block is missing a `thought_signature`.")
        for number, part in enumerate(parts):
            if part.get("thoughtSignature") not in (None, _DUMMY, base64.b64encode(_DUMMY.encode()).decode()):
                _check_signature(subject, parts, number)


def _check_signature(subject: GeminiRequest, parts: Sequence[Json], at: int) -> None:
    value = subject.seal.open("thought", parts[at]["thoughtSignature"])
    thought = _thought(parts)
    if value is None or value["part"] != _signed(parts, at) or (thought and value["thought"] != digest(thought)):
        refuse("Invalid thought signature.")


def _signed(parts: Sequence[Json], at: int) -> str:
    """Return the digest of what a signature stands on: a part, or the text of an answer so far, which a stream cuts anywhere."""
    if "text" in parts[at]:
        return digest("".join(part["text"] for part in parts[: at + 1] if "text" in part and not part.get("thought")))
    loose = ("thoughtSignature", "partMetadata")
    signed = {name: value for name, value in parts[at].items() if name not in loose and value not in (None, False)}
    if "functionCall" in signed:  # ids pair calls with responses; a history without ids is accepted, as before Gemini 3
        signed["functionCall"] = {name: value for name, value in signed["functionCall"].items() if name != "id"}
    return digest(signed)


def _thought(parts: Sequence[Json]) -> str:
    return "".join(part.get("text", "") for part in parts if part.get("thought"))
