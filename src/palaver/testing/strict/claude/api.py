"""Anthropic's Messages API: its routes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from palaver.testing.strict.claude.answers import events, message_of
from palaver.testing.strict.claude.binding import SentThinking, check_thinking
from palaver.testing.strict.claude.context import (
    applied_edits,
    check_context,
    compaction_due,
    summary_block,
    threshold_block,
)
from palaver.testing.strict.claude.credit import check_credit
from palaver.testing.strict.claude.fields import ClaudeRequest, blocks, check_fields, error_body, refuse
from palaver.testing.strict.claude.models import MODELS, model_named
from palaver.testing.strict.claude.options import check_options
from palaver.testing.strict.claude.prefix import Prefix, walk
from palaver.testing.strict.claude.tools import check_tools
from palaver.testing.strict.claude.turns import check_turns
from palaver.testing.strict.seal import Json, Seal, canonical
from palaver.testing.strict.server import HttpRequest, NextAnswer, Reply, Script

__all__ = ["AnthropicApi", "tokens_of"]

_CHARACTERS_PER_TOKEN: Final = 4
_USUAL: Final = NextAnswer(({"type": "thinking", "thinking": "hm"}, "Well."))


def tokens_of(value: object) -> int:
    """Return a rough number of tokens of a JSON value."""
    return len(canonical(value)) // _CHARACTERS_PER_TOKEN


class AnthropicApi:
    """The Messages API, the counting of tokens, and the list of models."""

    def __init__(
        self,
        *,
        key: str = "strict",
        new_account: bool = True,
        accounts: Mapping[str, str] | None = None,
        tokens: Callable[[object], int] = tokens_of,
    ) -> None:
        """Make the API.

        Args:
            key: The key of its signatures. Servers with the same key read each other's blocks.
            new_account: Whether accounts are of those whose prefixes are checked by default (since 2026-08-31).
            accounts: Names of accounts by API key; other keys belong to one account.
            tokens: Counts the tokens of a JSON value; thresholds are compared with its result.
        """
        self._seal = Seal(key)
        self._new_account = new_account
        self._accounts = dict(accounts or {})
        self._tokens = tokens
        self._serial = 0
        self._lock = threading.Lock()

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        return error_body(status, message)

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        path = asked.path.partition("?")[0]
        key = asked.headers.get("x-api-key") or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            refuse("x-api-key header is required", 401)
        if path == "/v1/models":
            listed = [model.info() for model in MODELS.values()]
            return Reply({"data": listed, "has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]})
        if path.startswith("/v1/models/"):
            return Reply(self._info(path.rpartition("/")[2]))
        if path not in ("/v1/messages", "/v1/messages/count_tokens") or asked.method != "POST":
            refuse("Not found", 404)
        subject = self._subject(asked, key)
        counting = path.endswith("count_tokens")
        prefix, binding = self._checked(subject, counting=counting)
        if counting:
            return Reply({"input_tokens": self._size(subject)}, dropped=binding.dropped)
        return self._answered(subject, prefix, binding, script, asked)

    def _info(self, name: str) -> Json:
        model = model_named(name)
        if model is None:
            refuse(f"model: {name}", 404)
        return model.info()

    def _subject(self, asked: HttpRequest, key: str) -> ClaudeRequest:
        name = asked.body.get("model")
        if not isinstance(name, str):
            refuse("model: Field required")
        model = model_named(name)
        if model is None:
            refuse(f"model: {name}", 404)
        betas = frozenset(part.strip() for part in asked.headers.get("anthropic-beta", "").split(",") if part.strip())
        version = asked.headers.get("anthropic-version", "")
        return ClaudeRequest(asked.body, model, betas, version, self._accounts.get(key, "default"), self._seal)

    def _checked(self, subject: ClaudeRequest, *, counting: bool) -> tuple[Prefix, SentThinking]:
        check_fields(subject)
        check_options(subject, counting=counting)
        check_context(subject)
        check_tools(subject)
        check_turns(subject)
        prefix = walk(subject.body, self._seal)
        return prefix, check_thinking(subject, prefix, new_account=self._new_account)

    def _answered(
        self, subject: ClaudeRequest, prefix: Prefix, binding: SentThinking, script: Script, asked: HttpRequest
    ) -> Reply:
        size, credit = self._size(subject), check_credit(subject)
        with self._lock:
            self._serial += 1
            serial = f"{self._serial:06d}"
        due = compaction_due(subject, size)
        if subject.body.get("compaction"):
            answer, iterations = (
                self._summary(subject, prefix, script.next(asked, NextAnswer(("Summary of the conversation.",)))),
                True,
            )
        elif due and due.get("pause_after_compaction"):
            answer, iterations = (
                NextAnswer((threshold_block(subject, "Summary of the conversation."),), "compaction"),
                True,
            )
        else:
            answer, iterations = script.next(asked, _USUAL), bool(due)
            if due:
                summary = threshold_block(subject, "Summary of the conversation.")
                answer = NextAnswer((summary, *answer.content), answer.stop, answer.fields, answer.cut)
        message = message_of(subject, prefix, binding, answer, serial=serial)
        message.setdefault("usage", self._usage(message, size, compacted=iterations))
        if credit:
            message["usage"]["fallback_credit"] = credit
        edits = applied_edits(subject, size, self._tokens)
        if subject.body.get("context_management"):
            message["context_management"] = {"applied_edits": edits}
        stream = list(events(message)) if subject.body.get("stream") else None
        return Reply(message, stream, binding.dropped, answer.cut)

    def _summary(self, subject: ClaudeRequest, prefix: Prefix, answer: NextAnswer) -> NextAnswer:
        """Return the answer of compaction on demand: one block, or nothing where the script stops early."""
        if answer.stop not in ("", "compaction"):
            return NextAnswer((), answer.stop, answer.fields, answer.cut)
        text = next((said for said in answer.content if isinstance(said, str)), "Summary of the conversation.")
        return NextAnswer((summary_block(subject, prefix, text),), "compaction", answer.fields, answer.cut)

    def _size(self, subject: ClaudeRequest) -> int:
        body = subject.body
        from_block = walk_from(body["messages"])
        return self._tokens([body.get("system"), body.get("tools"), from_block])

    def _usage(self, message: Json, size: int, *, compacted: bool) -> Json:
        output = self._tokens(message["content"])
        alone = message["stop_reason"] == "compaction"
        usage: Json = {
            "input_tokens": 0 if alone else size,
            "output_tokens": 0 if alone else output,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        if compacted:
            entry = {"type": "compaction", "input_tokens": size, "output_tokens": output}
            zero = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
            said = [] if alone else [{"type": "message", "input_tokens": size, "output_tokens": output} | zero]
            usage["iterations"] = [entry | zero, *said]
        return usage


def walk_from(messages: list[Json]) -> list[Json]:
    """Return the messages from the newest compaction block on: what the model sees."""
    at = next((n for n in range(len(messages) - 1, -1, -1) if _compacted(messages[n])), 0)
    return messages[at:]


def _compacted(message: Json) -> bool:
    return any(block["type"] == "compaction" and block.get("content") for block in blocks(message))
