"""Context management by the server: compaction on demand and at a threshold, and edits that clear.

https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand, …/compaction-threshold and …/context-editing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from palaver.testing.strict.claude.fields import EDITS, ON_DEMAND, THRESHOLD, ClaudeRequest, blocks, refuse
from palaver.testing.strict.claude.prefix import Prefix
from palaver.testing.strict.claude.turns import runs
from palaver.testing.strict.seal import Json, digest

__all__ = ["applied_edits", "check_context", "compaction_due", "summary_block", "threshold_block"]

_FIELDS: Final = {
    "clear_thinking_20251015": frozenset({"keep"}),
    "clear_tool_uses_20250919": frozenset({"trigger", "keep", "clear_at_least", "clear_tool_inputs", "exclude_tools"}),
    "compact_20260112": frozenset({"trigger", "instructions", "pause_after_compaction"}),
}
_LEAST_TRIGGER: Final = 50_000
_TRIGGER: Final = 150_000
_CLEAR_TRIGGER: Final = 100_000
_KEEP: Final = 3


def check_context(subject: ClaudeRequest) -> None:
    """Check what a request asks of the server, and the compaction blocks in it."""
    body = subject.body
    _check_edits(subject)
    if body.get("compaction") is not None:
        _check_demand(subject)
    held = [
        (at, number, block)
        for at, message in enumerate(body["messages"])
        for number, block in enumerate(blocks(message))
        if block["type"] == "compaction"
    ]
    if any(block.get("signature") for _, _, block in held):
        _check_signed(subject, held)
    for at, number, block in held:
        _check_block(subject, f"messages.{at}.content.{number}", block)


def _check_edits(subject: ClaudeRequest) -> None:
    edits = (subject.body.get("context_management") or {}).get("edits") or []
    for at, edit in enumerate(edits):
        where, kind = f"context_management.edits.{at}", edit.get("type")
        if kind not in _FIELDS:
            refuse(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        subject.needs(where, THRESHOLD if kind == "compact_20260112" else EDITS)
        for name in edit:
            if name != "type" and name not in _FIELDS[kind]:
                refuse(f"{where}.{kind}.{name}: Extra inputs are not permitted")
        if kind == "clear_thinking_20251015" and at:
            refuse("context_management.edits: `clear_thinking_20251015` must be the first edit")
        trigger = (edit.get("trigger") or {}).get("value", _TRIGGER)
        if kind == "compact_20260112" and trigger < _LEAST_TRIGGER:
            refuse(f"{where}.{kind}.trigger.value: Input should be greater than or equal to {_LEAST_TRIGGER}")


def _check_demand(subject: ClaudeRequest) -> None:
    body = subject.body
    for name in ("context_management", "stop_sequences"):
        if body.get(name):
            refuse(f"compaction: cannot be combined with `{name}`")
    if (body.get("output_config") or {}).get("format"):
        refuse("compaction: cannot be combined with `output_config.format`")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        refuse("compaction: cannot be combined with a `tool_choice` that forces a tool")
    if not any(message["content"] and message["role"] != "system" for message in body["messages"]):
        refuse("compaction: there is nothing to summarize", code="compaction_nothing_to_summarize")


def _check_signed(subject: ClaudeRequest, held: list[tuple[int, int, Json]]) -> None:
    """Check the place of a block of on-demand compaction: first, and alone."""
    if len(held) > 1:
        refuse(
            "messages: a request may have one `compaction` block; send only the newest",
            code="compaction_block_ambiguous",
        )
    at, number, _ = held[0]
    if (at, number) != (0, 0):
        refuse(
            f"messages.{at}.content.{number}: a signed `compaction` block must be first in `messages`; "
            "remove the messages that it summarizes",
            code="compaction_block_misplaced",
        )
    edits = (subject.body.get("context_management") or {}).get("edits") or []
    if any(edit["type"] == "compact_20260112" for edit in edits):
        refuse("context_management: `compact_20260112` cannot run on a request with a signed `compaction` block")


def _check_block(subject: ClaudeRequest, where: str, block: Json) -> None:
    if block.get("content") == "":
        refuse(f"{where}.compaction.content: String should have at least 1 character")
    if block.get("signature") is not None:
        _check_summary(subject, where, block)
    elif block.get("encrypted_content") is not None:
        value = subject.seal.open("compaction", block["encrypted_content"])
        if value is None or value["content"] != digest(block.get("content")):
            refuse(f"{where}: Invalid `encrypted_content` in `compaction` block")


def _check_summary(subject: ClaudeRequest, where: str, block: Json) -> None:
    if ON_DEMAND not in subject.betas:
        refuse(f"{where}: Input tag 'compaction' found using 'type' does not match any of the expected tags")
    value = subject.seal.open("summary", block["signature"])
    if value is None:
        refuse(f"{where}: the signature of the block is not valid", code="compaction_signature_invalid")
    if value["content"] != digest(block.get("content")):
        refuse(f"{where}: the content of the block was changed", code="compaction_content_mismatch")
    if value["changes"] != digest(block.get("tool_changes")):
        refuse(f"{where}: `tool_changes` were changed", code="compaction_tool_changes_mismatch")


def summary_block(subject: ClaudeRequest, prefix: Prefix, text: str) -> Json:
    """Return the signed block of compaction on demand: it stands for what was sent, where the model checks prefixes."""
    end = prefix.now if subject.model.checks != "never" else ""
    value = {"content": digest(text), "changes": digest(None), "head": prefix.head, "end": end}
    return {"type": "compaction", "content": text, "signature": subject.seal.close("summary", value)}


def threshold_block(subject: ClaudeRequest, text: str) -> Json:
    """Return the block of compaction at a threshold."""
    encrypted = subject.seal.close("compaction", {"content": digest(text)})
    return {"type": "compaction", "content": text, "encrypted_content": encrypted}


def compaction_due(subject: ClaudeRequest, size: int) -> Json | None:
    """Return the edit whose threshold a request of this size has reached, or None."""
    for edit in (subject.body.get("context_management") or {}).get("edits") or []:
        if edit["type"] == "compact_20260112" and size >= (edit.get("trigger") or {}).get("value", _TRIGGER):
            return dict(edit)
    return None


def applied_edits(subject: ClaudeRequest, size: int, tokens: Callable[[object], int]) -> list[Json]:
    """Return what the clearing edits of a request of this size did, as the API reports it."""
    applied: list[Json] = []
    turns = runs(subject.body["messages"])
    for edit in (subject.body.get("context_management") or {}).get("edits") or []:
        if edit["type"] == "clear_thinking_20251015":
            thinking = [run for run in turns if any(block["type"] == "thinking" for _, block in run.blocks)]
            keep = edit.get("keep", {"type": "thinking_turns", "value": 1})
            cleared = [] if keep == "all" else thinking[: -keep["value"] or None]
            counts = {"cleared_thinking_turns": len(cleared)}
            gone = [block for run in cleared for _, block in run.blocks if block["type"] == "thinking"]
        elif edit["type"] == "clear_tool_uses_20250919" and size >= (edit.get("trigger") or {}).get(
            "value", _CLEAR_TRIGGER
        ):
            results = [block for run in turns for _, block in run.blocks if block["type"] == "tool_result"]
            keep = (edit.get("keep") or {}).get("value", _KEEP)
            gone = results[: -keep or None]
            counts = {"cleared_tool_uses": len(gone)}
        else:
            continue
        if gone:
            applied.append({"type": edit["type"], **counts, "cleared_input_tokens": tokens(gone)})
    return applied
