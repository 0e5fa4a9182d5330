"""Entire's compact transcripts: JSON lines of one agent's session, a line a message or a fragment of one, with each result in its call.

Based on transcripts of version 1 (entireio/cli, cmd/entire/cli/transcript). A line of the role `assistant` is a fragment of the answer that
its id names, and repeats the answer's usage. A call without a result has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import clean, kept, word
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile
from palaver.messages import ToolMessage, ToolResultContent, Usage, from_anthropic_dict

NAME = "entire"
_READ = frozenset({"type", "ts", "id", "input_tokens", "output_tokens", "content"})


class EntireCompact:
    """Entire's compact transcripts: one conversation per file."""

    name = NAME
    title = "Entire"
    signs = "JSON lines with v, agent, cli_version, type and content"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a transcript, from 0.0 to 1.0."""
        shown = any({"v", "agent", "type", "content"} <= record.keys() for record in source.opening.records)
        return 0.9 if shown else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member)


def _session(member: Member) -> Iterator[Event]:
    losses: list[Loss] = []
    first = next(without_losses(member.records(), losses), None)
    about = NOTHING if first is None else first.value
    agent = word(about.get("agent") or NAME)
    yield Conversation(key="", started_at=fields.moment(about.get("ts")), metadata={"agent": agent})
    writer, metered = DialogWriter("main", NAME), set[str]()
    yield writer.branch(agent)
    yield no_instructions(member.place("whole file"))
    for record in member.records():
        if isinstance(record, Loss):
            yield record
        else:
            yield from guarded(record.place, _message(record, writer, metered, f"{NAME}:{record.ordinal}"))


def _message(record: Record, writer: DialogWriter, metered: set[str], key: str) -> Iterator[Event]:
    value, content = record.value, record.value.get("content")
    role, response, at = value.get("type"), fields.text(value, "id"), fields.moment(value.get("ts"))
    if not isinstance(content, str | list):
        yield bad_record(record.place, "it has no content")
        return
    about: dict[str, Any] = {"id": key, "timestamp": at, "metadata": kept(value, _READ)}
    if role == "assistant" and response:
        about |= {"response_id": response, "fragment": True}
    if response not in metered and (
        usage := {name: value[name] for name in _READ & value.keys() if name.endswith("_tokens")}
    ):
        about["usage"] = Usage(usage)
        metered.add(response)
    blocks = [content] if isinstance(content, str) else content
    said = {"role": role, "content": [_block(block) for block in blocks]}
    origin = Origin(str(record.ordinal), record.ordinal, record.digest, record.place)
    yield from writer.say(from_anthropic_dict(said, **about), origin, counted=1)
    for block in fields.objects(value, "content"):
        if isinstance(result := block.get("result"), dict):
            call = fields.text(block, "id")
            yield from writer.say(
                _result(result, call, f"{key}:{call}", at), origin._replace(record=f"{record.ordinal}:{call}")
            )


def _block(block: object) -> object:
    """Return a block as one of Anthropic's. A text of a user has no type; a result is read beside its call."""
    if not isinstance(block, dict):
        return block
    rest = {name: value for name, value in block.items() if name != "result" or not isinstance(value, dict)}
    return rest if "type" in rest or "text" not in rest else {**rest, "type": "text"}


def _result(result: Mapping[str, object], call: str, key: str, at: float) -> ToolMessage:
    output = result.get("output")
    text = fields.text(result, "output") if isinstance(output, str | None) else str(clean(output))
    block = ToolResultContent(id=call, content=text, is_error=result.get("status") == "error")
    return ToolMessage(id=key, timestamp=at, contents=(block,), metadata=kept(result, {"output"}))
