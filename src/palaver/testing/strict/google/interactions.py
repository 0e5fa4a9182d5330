"""Gemini's Interactions, without state on the server: steps go back as they came.

https://ai.google.dev/gemini-api/docs/interactions-overview and …/migrate-to-interactions: with `store: false` each step is sent again, and those that are signed with
their signatures. Tools, instructions and configuration are those of each call.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn

from palaver.testing.strict.google.fields import CACHED, MODELS, GeminiRequest
from palaver.testing.strict.seal import Json, Seal, canonical, digest
from palaver.testing.strict.server import HttpRequest, NextAnswer, Refused, Reply, Script

__all__ = ["InteractionsApi"]

_CHARACTERS_PER_TOKEN: Final = 4
_USUAL: Final = NextAnswer(({"type": "thought"}, "Well."))
_TOP: Final = frozenset(
    {"model", "agent", "agent_config", "input", "system_instruction", "tools", "generation_config", "response_format", "response_mime_type",
     "response_modalities", "previous_interaction_id", "store", "stream", "background", "cached_content", "continuation_token", "labels",
     "safety_settings", "service_tier", "environment", "webhook_config"}
)  # fmt: skip
_DUMMY: Final = "skip_thought_signature_validator"
"""The signature of a thought before calls of another maker's model (…/docs/thought-signatures)."""

_SERVED: Final = (
    "google_search", "code_execution", "url_context", "file_search", "google_maps", "mcp_server_tool", "retrieval", "tool_search", "processing",
)  # fmt: skip
_STEPS: Final[Mapping[str, frozenset[str]]] = {
    "user_input": frozenset({"content"}),
    "model_output": frozenset({"content", "error"}),
    "thought": frozenset({"signature", "summary"}),
    "function_call": frozenset({"id", "name", "arguments"}),
    "function_result": frozenset({"call_id", "name", "result", "is_error"}),
    **{
        f"{name}_call": frozenset({"id", "arguments", "signature", "name", "server_name", "search_type"})
        for name in _SERVED
    },
    **{
        f"{name}_result": frozenset({"call_id", "result", "signature", "is_error", "name", "server_name"})
        for name in _SERVED
    },
}


def refuse(message: str, reason: str = "invalid_request", status: int = 400) -> NoReturn:
    """Refuse the request: the code of an error is a word (…/gemini-api/docs/api-errors; SDK `interactions.Error`)."""
    raise Refused(status, {"error": {"code": reason, "message": message}})


class InteractionsApi:
    """Interactions of models."""

    def __init__(self, *, key: str = "strict") -> None:
        """Make the API; servers with the same key read each other's signatures."""
        self._seal = Seal(key)
        self._serial = 0
        self._lock = threading.Lock()

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        del status  # the code of an error is a word
        return {"error": {"code": "invalid_request", "message": message}}

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        path, body = asked.path.partition("?")[0], asked.body
        if not path.endswith("/interactions") or asked.method != "POST":
            refuse("The requested URL was not found on this server.", "not_found", 404)
        for name in body:
            if name not in _TOP:
                refuse(f"Unknown parameter '{name}'.")
        if body.get("model") not in MODELS:
            refuse(f"Model '{body.get('model')}' not found.", "not_found", 404)
        if body.get("previous_interaction_id"):
            refuse(f"Interaction '{body['previous_interaction_id']}' not found.", "not_found", 404)
        steps = _steps(body.get("input"))
        self._check(GeminiRequest(body, body["model"], self._seal), steps)
        with self._lock:
            self._serial += 1
            serial = f"{self._serial:06d}"
        answer = script.next(asked, _USUAL)
        interaction = self._interaction(body, steps, answer, serial)
        stream: list[tuple[str, Json | str]] = [*_events(interaction), ("", "[DONE]")]
        return Reply(interaction, stream if body.get("stream") else None, cut=answer.cut)

    # --- rules ---------------------------------------------------------------------------------------------------------------

    def _check(self, subject: GeminiRequest, steps: Sequence[Json]) -> None:
        if not steps:
            refuse("`input` must not be empty.")
        for at, step in enumerate(steps):
            self._check_step(f"input[{at}]", step)
        if steps[-1]["type"] in ("model_output", "thought", "function_call"):
            refuse("The last step must be of the user, or a function result.")
        cached = subject.body.get("cached_content")
        if cached and any(subject.body.get(name) for name in ("system_instruction", "tools")):
            refuse(CACHED)
        if cached and self._seal.open("cache", str(cached).removeprefix("cachedContents/")) is None:
            refuse("CachedContent not found (or permission denied)", "permission_denied", 403)
        _check_calls(steps)
        _check_served(steps)
        if subject.signs:
            _check_thoughts(steps)

    def _check_step(self, where: str, step: Json) -> None:
        kind = str(step.get("type"))
        if kind not in _STEPS:
            plain = {name: value for name, value in step.items() if name != "seal"}
            if "seal" in step and self._seal.open("own", step["seal"]) == plain:
                return  # a step that only this server knows, as it was sent
            refuse(f"{where}: unknown step type '{kind}'.")
        for name in step:
            if name != "type" and name not in _STEPS[kind]:
                refuse(f"{where}: unknown field '{name}'.")
        if kind == "thought" or kind.removesuffix("_call").removesuffix("_result") in _SERVED:
            self._check_signature(where, step)

    def _check_signature(self, where: str, step: Json) -> None:
        if not step.get("signature"):
            refuse(f"{where}: the step is missing a signature.", "missing_thought_signature")
        if step["type"] == "thought" and step["signature"] == _DUMMY:
            return
        value = self._seal.open("step", step["signature"])
        if value is None or value["step"] != _digest(step):
            refuse(f"{where}: the signature is not valid.", "invalid_thought_signature")

    # --- answers -------------------------------------------------------------------------------------------------------------

    def _interaction(self, body: Json, steps: Sequence[Json], answer: NextAnswer, serial: str) -> Json:
        out: list[Json] = []
        for at, said in enumerate(answer.content):
            output: Json = (
                {"type": "model_output", "content": [{"type": "text", "text": said}]}
                if isinstance(said, str)
                else dict(said)
            )
            out.append(self._step(output, f"{serial}{at:02d}", out))
        calls = any(step["type"] == "function_call" for step in out)
        size, made = (len(canonical(value)) // _CHARACTERS_PER_TOKEN for value in (list(steps), out))
        return {
            "id": f"v1_{serial}",
            "object": "interaction",
            "model": body["model"],
            "status": answer.stop or ("requires_action" if calls else "completed"),
            "created": "2026-11-28T00:00:00Z",
            "updated": "2026-11-28T00:00:00Z",
            "steps": out,
            "usage": {"total_input_tokens": size, "total_output_tokens": made, "total_tokens": size + made},
        } | dict(answer.fields)

    def _step(self, step: Json, serial: str, before: Sequence[Json]) -> Json:
        kind = step["type"]
        if kind not in _STEPS:
            return step | {"seal": self._seal.close("own", step)}
        if kind == "function_call":
            return {"id": f"call{serial}", "arguments": {}} | step
        if kind.endswith("_call"):
            step = {"id": f"srv{serial}"} | step
        if kind.endswith("_result"):
            step = {"call_id": before[-1].get("id", "")} | step
        if kind == "thought" or kind.removesuffix("_call").removesuffix("_result") in _SERVED:
            step["signature"] = self._seal.close("step", {"step": _digest(step)})
        return step


def _steps(given: object) -> list[Json]:
    """Return the steps of an input: a text, contents or steps."""
    if isinstance(given, str):
        return [{"type": "user_input", "content": [{"type": "text", "text": given}]}]
    listed = [given] if isinstance(given, dict) else list(given) if isinstance(given, list) else []
    if listed and all(entry.get("type") in ("text", "image", "audio", "video", "document", "file") for entry in listed):
        return [{"type": "user_input", "content": listed}]
    return listed


def _turn(steps: Sequence[Json], at: int) -> set[str]:
    """Return the kinds of the steps of the model that end here."""
    kinds: set[str] = set()
    while at >= 0 and steps[at]["type"] not in ("user_input", "function_result"):
        kinds.add(steps[at]["type"])
        at -= 1
    return kinds


def _check_thoughts(steps: Sequence[Json]) -> None:
    """Check that calls of the model have a thought before them: calls are unsigned, and its signature counts for all of them."""
    for at, step in enumerate(steps):
        if step["type"] == "function_call" and "thought" not in _turn(steps, at - 1):
            text = f"input[{at}]: the thought before function call '{step['name']}' is missing."
            refuse(text, "missing_thought_signature")


def _check_calls(steps: Sequence[Json]) -> None:
    """Check that each call has one result, before the next words of anybody."""
    waiting: list[str] = []
    for at, step in enumerate(steps):
        if step["type"] == "function_call":
            waiting.append(step["id"])
        elif step["type"] == "function_result":
            if step["call_id"] not in waiting:
                refuse(f"input[{at}]: no function call with id '{step['call_id']}' waits for a result.")
            if not step.get("name"):
                refuse(f"input[{at}]: the function result has no name.")
            waiting.remove(step["call_id"])
        elif waiting and step["type"] == "user_input":
            refuse(f"input[{at}]: function calls without results: {', '.join(waiting)}.")
    if waiting:
        refuse(f"Function calls without results: {', '.join(waiting)}.")


def _check_served(steps: Sequence[Json]) -> None:
    """Check that a result of a tool of Google's own has its call before it, and each call a result.

    SDK types: «`call_id`: Required. ID to match the ID from the function call block». That a call needs its result is inferred from functions.
    """
    waiting: dict[str, int] = {}
    for at, step in enumerate(steps):
        name, _, half = step["type"].rpartition("_")
        if name in _SERVED and half == "call":
            waiting[f"{name} {step.get('id')}"] = at
        elif name in _SERVED and waiting.pop(f"{name} {step.get('call_id')}", None) is None:
            refuse(f"input[{at}]: no {name} call with id '{step.get('call_id')}' precedes the result.")
    for name, at in waiting.items():
        refuse(f"input[{at}]: the {name.partition(' ')[0]} call has no result.")


def _digest(step: Json) -> str:
    return digest(
        {name: value for name, value in step.items() if name != "signature" and value not in (None, [], False)}
    )


# --- events --------------------------------------------------------------------------------------------------------------


def _events(interaction: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of an interaction that is streamed."""
    begun = {name: value for name, value in interaction.items() if name not in ("steps", "usage")} | {
        "status": "in_progress"
    }
    yield "interaction.created", {"event_type": "interaction.created", "interaction": begun}
    for index, step in enumerate(interaction["steps"]):
        start, deltas = _begun(step)
        yield "step.start", {"event_type": "step.start", "index": index, "step": start}
        for delta in deltas:
            yield "step.delta", {"event_type": "step.delta", "index": index, "delta": delta}
        yield "step.stop", {"event_type": "step.stop", "index": index}
    whole = {name: value for name, value in interaction.items() if name != "steps"}
    yield "interaction.completed", {"event_type": "interaction.completed", "interaction": whole}


def _begun(step: Json) -> tuple[Json, list[Json]]:
    """Return a step as it begins, and its deltas."""
    kind = step["type"]
    if kind == "thought":
        summaries = [{"type": "thought_summary", "content": content} for content in step.get("summary") or []]
        return {"type": kind}, [*summaries, {"type": "thought_signature", "signature": step["signature"]}]
    if kind == "model_output":
        texts = [part["text"] for part in step["content"] if part["type"] == "text"]
        halves = [half for text in texts for half in (text[: len(text) // 2], text[len(text) // 2 :]) if half]
        return {"type": kind}, [{"type": "text", "text": half} for half in halves]
    if kind == "function_call":
        return step | {"arguments": {}}, [{"type": "arguments_delta", "arguments": json.dumps(step["arguments"])}]
    return step, []
