"""Encrypted reasoning and compaction of the Responses API.

https://developers.openai.com/api/docs/guides/keep-prefix-unchanged: GPT-6.2 binds reasoning to the tools, the text format and the items before it. What does not fit
is withheld from the model and listed in `input_transformations`; nothing is refused. Content of another organization, or edited, is refused
(https://developers.openai.com/api/docs/guides/reasoning).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from palaver.testing.strict.openai.fields import ResponsesRequest, refuse
from palaver.testing.strict.openai.models import model_named
from palaver.testing.strict.seal import Json, digest

__all__ = ["ItemPrefix", "compacted", "encrypted", "walk"]

_LOOSE: Final = frozenset({"id", "status"})
_OUTSIDE: Final = frozenset({"reasoning", "compaction_trigger"})


@dataclass(slots=True)
class ItemPrefix:
    """The digest of what was sent so far, and the reasoning that was withheld."""

    head: str
    now: str = ""
    present: list[str] = field(default_factory=list)
    report: list[Json] = field(default_factory=list)

    def add(self, item: Json) -> None:
        """Add an item."""
        if item["type"] == "compaction":
            self.now, self.present = digest(self.head, item["encrypted_content"]), []
        elif item["type"] not in _OUTSIDE:
            self.now = digest(self.now, _plain(item))


def _plain(item: Json) -> Json:
    """Return an item without its id and status; the content of a message as parts, without annotations."""
    out = {name: value for name, value in item.items() if name not in _LOOSE and value is not None}
    if out["type"] == "message":
        kind = "output_text" if out["role"] == "assistant" else "input_text"
        parts = [{"type": kind, "text": out["content"]}] if isinstance(out["content"], str) else out["content"]
        out["content"] = [
            {name: part[name] for name in part if name not in ("annotations", "logprobs")} for part in parts
        ]
    return out


def walk(subject: ResponsesRequest) -> ItemPrefix:
    """Return the prefix of what would come next; refuse reasoning that cannot be read at all."""
    body = subject.body
    head = digest(body.get("tools") or [], (body.get("text") or {}).get("format") or {"type": "text"})
    prefix = ItemPrefix(head, head)
    newest = max((at for at, item in enumerate(subject.items) if item["type"] == "compaction"), default=0)
    for item in subject.items[newest:]:
        if item["type"] == "reasoning" and item.get("encrypted_content"):
            _take(subject, prefix, item)
        elif item["type"] == "compaction":
            _opened(subject, "compaction", item)
        prefix.add(item)
    return prefix


def _take(subject: ResponsesRequest, prefix: ItemPrefix, item: Json) -> None:
    value = _opened(subject, "reasoning", item)
    maker = model_named(value["model"])
    gap = bool(prefix.present) and value["last"] != prefix.present[-1]
    if maker is None or maker.family != subject.model.family:
        reason = "model_mismatch"
    elif subject.model.preserved and (value["now"] != prefix.now or gap or value["count"] < len(prefix.present)):
        reason = "prefix_mismatch"
    else:
        prefix.present.append(digest(item["encrypted_content"]))
        return
    if reason == "model_mismatch":
        prefix.present.append(digest(item["encrypted_content"]))
    prefix.report.append({"id": item.get("id"), "type": "reasoning", "action": "removed", "reason": reason})


def _opened(subject: ResponsesRequest, kind: str, item: Json) -> Json:
    text = item["encrypted_content"]
    value = subject.seal.open(kind, text)
    why = "Encrypted content could not be decrypted or parsed."
    if value is not None and value["organization"] != subject.organization:
        value, why = None, "Encrypted content organization_id did not match the target organization."
    if value is None:
        shown = f"{text[:4]}...{text[-4:]}"
        refuse(
            f"The encrypted content {shown} could not be verified. Reason: {why}", "input", "invalid_encrypted_content"
        )
    return value


def encrypted(subject: ResponsesRequest, prefix: ItemPrefix) -> str:
    """Return the encrypted content of reasoning at the end of a prefix."""
    last = prefix.present[-1] if prefix.present else ""
    value = {
        "model": subject.model.name,
        "organization": subject.organization,
        "now": prefix.now,
        "last": last,
        "count": len(prefix.present),
    }
    text = subject.seal.close("reasoning", value)
    prefix.present.append(digest(text))
    return text


def compacted(subject: ResponsesRequest, prefix: ItemPrefix) -> str:
    """Return the encrypted content of a compaction item for what was sent so far."""
    return subject.seal.close("compaction", {"organization": subject.organization, "now": prefix.now})
