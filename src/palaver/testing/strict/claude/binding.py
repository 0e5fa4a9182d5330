"""What the Messages API signs, and when it takes a signed block back.

https://platform.claude.com/docs/en/build-with-claude/preserved-thinking: a block of thinking is valid while the model reads its maker and nothing before it
has changed. Blocks of thinking may leave from the start of the history, from the end, or all together; a gap invalidates what follows it, and a block
that comes back invalidates what was thought while it was gone. The blocks that one server signed are read by every server with the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from palaver.testing.strict.claude.fields import BINDING, ClaudeRequest, refuse
from palaver.testing.strict.claude.models import model_named
from palaver.testing.strict.claude.options import thinking_type
from palaver.testing.strict.claude.prefix import Prefix, Thought
from palaver.testing.strict.seal import Json, digest

__all__ = ["SentThinking", "check_thinking", "signed"]

_BOUND: Final = (
    "The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_HEADER: Final = f"That setting requires the `{BINDING}` value in the `anthropic-beta` header."
_START: Final = (
    "messages.{at}.content.{number}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, a final "
    "`assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
)


@dataclass(slots=True)
class SentThinking:
    """The thinking of a request: the digests of the blocks that count as present, and what the API reports."""

    present: list[str] = field(default_factory=list)
    report: list[Json] = field(default_factory=list)

    @property
    def dropped(self) -> list[Json]:
        """What was withheld from the model."""
        return [entry for entry in self.report if entry["type"] == "thinking_dropped"]


def signed(subject: ClaudeRequest, prefix: Prefix, block: Json, present: Sequence[str]) -> Json:
    """Return a block of thinking with its signature, at the end of a prefix."""
    redacted = block["type"] == "redacted_thinking"
    value = {
        "model": subject.model.name,
        "account": subject.account,
        "system": prefix.system,
        "tools": prefix.tools,
        "run": prefix.run,
        "now": prefix.now,
        "inner": prefix.inner,
        "text": digest(str(block.get("thinking", ""))),
        "last": present[-1] if present else "",
        "count": len(present),
    }
    text = subject.seal.close(block["type"], value)
    return block | ({"data": text} if redacted else {"signature": text})


def check_thinking(subject: ClaudeRequest, prefix: Prefix, *, new_account: bool) -> SentThinking:
    """Return the thinking that the model sees, or refuse the request."""
    binding = SentThinking()
    asked = (subject.body.get("thinking") or {}).get("block_binding") or {}
    behavior = asked.get("prefix_mismatch_behavior")
    checks = {"every": True, "new": new_account or behavior is not None, "never": False}[subject.model.checks]
    spoiled = -1
    for thought in prefix.thoughts:
        value = _opened(subject, thought, prefix.assistant)
        reason = _unreadable(subject, value)
        if reason:
            binding.report.append(_entry("thinking_dropped", thought, reason))
            binding.present.append(digest(thought.signature))
            continue
        what = "" if subject.model.checks == "never" else _changed(prefix, thought, value, binding.present)
        if not what and thought.turn != spoiled:
            binding.present.append(digest(thought.signature))
        elif not checks:
            binding.report.append(_entry("thinking_mismatch_allowed", thought, "prefix_binding_mismatch"))
            binding.present.append(digest(thought.signature))
        elif behavior == "drop_block":
            spoiled = thought.turn
            binding.report.append(_entry("thinking_dropped", thought, "prefix_binding_mismatch"))
        else:
            hint = "" if BINDING in subject.betas else f" {_HEADER}"
            refuse(f"{thought.where}: Invalid `signature` in `{thought.block['type']}` block. {_BOUND}{hint} {what}")
    _check_start(subject)
    return binding


def _opened(subject: ClaudeRequest, thought: Thought, last: str) -> Json:
    """Return what a signature says. A signature that is not ours, and a block that changed, are refused in every mode."""
    kind = thought.block["type"]
    value = subject.seal.open(kind, thought.signature)
    if value is None:
        refuse(f"{thought.where}: Invalid `signature` in `{kind}` block")
    moved = value["run"] == thought.run == last and value["inner"] != thought.inner
    if moved or value["text"] != digest(thought.text):
        refuse(
            f"{thought.where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
            "These blocks must remain as they were in the original response."
        )
    return value


def _unreadable(subject: ClaudeRequest, value: Json) -> str:
    """Return why the model may not read a block, or empty."""
    maker = model_named(value["model"])
    if value["account"] != subject.account and (subject.model.account or (maker and maker.account)):
        return "organization_binding_mismatch"
    return "" if subject.model.reads_from(value["model"]) else "model_binding_mismatch"


def _changed(prefix: Prefix, thought: Thought, value: Json, present: Sequence[str]) -> str:
    """Return what changed before a block since it was made, or empty."""
    if value["system"] != prefix.system:
        return "The `system` prompt differs from when this block was created."
    if value["tools"] != prefix.tools:
        return "The `tools` list differs from when this block was created."
    if value["now"] != thought.now:
        return "Content that preceded this block when it was created is missing from this request, or has changed."
    gap = bool(present) and value["last"] != present[-1]
    if gap or value["count"] < len(present):
        return "An earlier thinking block is missing or out of order."
    return ""


def _entry(kind: str, thought: Thought, reason: str) -> Json:
    return {"type": kind, "path": thought.where, "reason": reason}


def _check_start(subject: ClaudeRequest) -> None:
    """Check that a turn that goes on after tool results begins with thinking, where the budget of thinking is manual."""
    messages = subject.body["messages"]
    if thinking_type(subject) != "enabled" or len(messages) < 2:  # noqa: PLR2004 - a call and its result
        return
    at, content = len(messages) - 2, messages[-2]["content"]
    if messages[at]["role"] != "assistant" or isinstance(content, str) or not content:
        return
    calls = any(block["type"] == "tool_use" for block in content)
    if calls and content[0]["type"] not in ("thinking", "redacted_thinking"):
        refuse(_START.format(at=at, number=0, kind=content[0]["type"]))
