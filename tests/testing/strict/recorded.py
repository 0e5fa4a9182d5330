"""Recorded sessions of other agents go on under every API: their next requests, against the stand-ins and the types of the vendors' packages.

    python -m tests.testing.strict.recorded [KIND...]

plays all recordings, or those of some kinds, and prints what was accepted. Signatures of a recording are not the stand-in's: they are replaced by ones that
say the same of their maker, and nothing of what preceded them, as a stand-in cannot know it.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from palaver.errors import InvalidRequest, UnsupportedTranscript
from palaver.log import Toolset
from palaver.messages import ToolMessage, ToolResultContent
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing import strict
from palaver.testing.binding_laws import HistorySide
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide
from palaver.testing.strict.seal import Seal, digest
from palaver.transcripts import Importer
from palaver.wire import Request
from tests.recorded import RECORDINGS, Recording
from tests.wire.scenes import BASH
from tests.wire.vendor_types import hold_to_types

Json = dict[str, Any]

_SEAL: Final = Seal("strict")
_SIGNED: Final = ("signature", "encrypted_content", "thoughtSignature")
_OK: Final = 200


class InteractionsSide(ChatSide):
    """Gemini's Interactions."""

    api = "gemini-interactions"
    headers: Mapping[str, str] = {"x-goog-api-key": "key"}

    def __init__(self, *models: str) -> None:
        """Choose the models."""
        super().__init__(*models)
        self.server = strict.interactions()

    def path(self, model: str) -> str:
        """Return the path of requests."""
        del model
        return "/v1beta/interactions"

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind."""
        del resumed
        call: Json = {"type": "function_call", "name": "bash", "arguments": {"command": tag}}
        return [{"type": "thought"}, call if kind == "call" else f"answer {tag}"]

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        return [step["id"] for step in answer["steps"] if step["type"] == "function_call"]


def sides() -> list[HistorySide]:
    """Return every API with three models: of those that check what precedes thinking, of those that do not, and older ones."""
    return [
        AnthropicSide("claude-fable-5-1", "claude-opus-5", "claude-sonnet-4-5"),
        ResponsesSide("gpt-6.2-sol", "gpt-5.6-luna", "gpt-5.2"),
        ChatSide("gpt-5.2", "gpt-4.1", "gpt-4o"),
        ChatSide("deepseek-v4", server="deepseek"),
        GeminiSide("gemini-3.6-flash", "gemini-4-argon", "gemini-2.5-pro"),
        InteractionsSide("gemini-3.6-flash", "gemini-4-argon", "gemini-2.5-pro"),
    ]


def go_on(recording: Recording, playing: Sequence[HistorySide], count: Counter[str], every: int = 1) -> Iterator[str]:
    """Let each `every`-th dialog of a recording go on under each model: yield the faults."""
    store = MemoryStore()
    for imported in list(Importer(store, keep_source=False).import_path(recording.path))[::every]:
        session = Session.open(store, imported.session_id)
        for dialog in session.dialogs:
            makers = _makers(dialog)
            count["dialogs"] += 1
            for side in playing:
                for model in side.models:
                    place = f"{recording.name} {dialog.dialog_id[:8]} {side.api} {model}"
                    yield from (f"{place}: {fault}" for fault in _turn(dialog.fork(), side, model, makers, count))


def _makers(dialog: Dialog) -> dict[str, str]:
    """Return the models that made the signatures of a dialog."""
    out: dict[str, str] = {}
    for message in dialog.messages:
        if message.is_assistant_side:
            fields = json.loads(json.dumps(message.to_dict(), default=str))
            out |= {value: message.model or "" for _, value, _ in _signatures(fields)}
    return out


def _signatures(value: object) -> Iterator[tuple[str, str, Json]]:
    """Yield the signatures in a JSON value: their fields, texts, and the blocks that they are in."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in _SIGNED and isinstance(inside, str) and inside:
                yield name, inside, value
            else:
                yield from _signatures(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _signatures(inside)


def _turn(
    dialog: Dialog, side: HistorySide, model: str, makers: Mapping[str, str], count: Counter[str]
) -> Iterator[str]:
    """Ask, answer the call of the model, and ask again: yield the faults. A recording that does not say its tools goes on with one."""
    if not dialog.view().tools:
        dialog.record(Toolset(tools=(BASH,)))
    dialog.put_text("Go on.")
    signed: list[str] = []
    for kind in ("call", "say"):
        try:
            request = dialog.request(side.api, model)
        except InvalidRequest as error:
            yield f"not valid: {error}"
            return
        count[f"{side.api} {model}"] += 1
        yield from (
            f"{kind}: the thinking of the turn is missing" for text in signed if text not in request.data.decode()
        )
        yield from _typed(request)
        side.server.answers(side.said(kind, kind, resumed=False))
        body = _adopted(json.loads(request.data), makers)
        served = side.server.ask(side.path(model), body, dict(side.headers) | dict(request.headers))
        side.server.forget()
        if served.status != _OK:
            side.server.script.clear()
            yield f"refused: {served.message or served.body}"
            return
        yield from (f"dropped: {dropped}" for dropped in served.dropped)
        dialog.append(served.body)
        signed = [text for _, text, _ in _signatures(served.body)]
        for call in side.calls(served.body):
            dialog.append(ToolMessage.from_result(ToolResultContent(id=call, name="bash", content="Done.")))


def _typed(request: Request) -> Iterator[str]:
    """Hold a request to the types of the vendor's package; the fields of other servers are in no type."""
    if request.model.startswith("deepseek"):
        return
    name = request.profile.name
    try:
        hold_to_types(f"{name}-beta" if request.headers else name, json.loads(request.data))
    except ValidationError as error:
        reasons = [(place["loc"][-2:], place["msg"]) for place in error.errors(include_url=False, include_input=False)]
        yield f"not of the types: {reasons[:4]}"


def _adopted(body: Json, makers: Mapping[str, str]) -> Json:
    """Replace the signatures of a recording by those of the stand-in."""
    for name, text, block in list(_signatures(body)):
        if text in makers and not text.startswith("skip"):
            model = makers[text]
            if name == "encrypted_content":
                kind = block["type"]
                value: Json = {"model": model, "organization": "default", "now": "", "last": "", "count": 0}
            elif name == "signature":
                kind, empty = block["type"], dict.fromkeys(("system", "tools", "run", "now", "inner", "last"), "")
                value = {
                    "model": model,
                    "account": "default",
                    "text": digest(block.get("thinking", "")),
                    "count": 0,
                } | empty
            else:
                continue  # only those of the current turn are checked
            block[name] = _SEAL.close(kind, value)
    return body


def main(kinds: Sequence[str]) -> int:
    """Play all recordings, print the counts and the faults, and return the exit status."""
    console, count, faults, playing = Console(width=150), Counter[str](), list[str](), sides()
    for recording in RECORDINGS:
        if kinds and recording.kind not in kinds:
            continue
        try:
            faults += go_on(recording, playing, count)
            count["recordings"] += 1
        except UnsupportedTranscript:
            count["recordings of no known format"] += 1
    table = Table("", "count", box=None)
    for name, number in count.items():
        table.add_row(name, f"{number:,}")
    table.add_row("faults", f"{len(faults):,}")
    console.print(table)
    kinds_of = Counter(re.sub(r"\d+", "N", fault.partition(": ")[2]) for fault in faults)
    for text, number in kinds_of.most_common(20):
        first = next(fault for fault in faults if re.sub(r"\d+", "N", fault.partition(": ")[2]) == text)
        console.print(f"{number:,} x {first}", markup=False)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
