"""Redaction: what has the form of a key is taken out before it is written; everything else stays as it was."""

from __future__ import annotations

import json

from palaver.log import Custom, MessageEntry, PatternRedactor, decode_entry, draft
from palaver.log.redaction import redact_body
from palaver.messages import AssistantMessage, ThinkingContent, ToolCallContent, UserMessage

_KEY = "ghp_" + "a1B2c3D4e5F6" * 3
_SECRETS = {
    f"push with {_KEY} now": "push with [redacted:github-token] now",
    "AWS AKIAIOSFODNN7EXAMPLE": "AWS [redacted:aws-access-key]",
    "postgres://ann:s3cret9@db/x": "postgres://ann:[redacted:url-password]@db/x",
    "password = hunter2hunter2": "password = [redacted:assigned-secret]",
    "Authorization: Bearer abcdef123456": "Authorization: Bearer [redacted:authorization]",
}
_PLAIN = ("sk-learn", "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "password = ${PASSWORD}", "token: <token>")


def test_secrets_are_replaced_once_and_plain_text_stays() -> None:
    """A second pass finds nothing; digests, names and placeholders are no secrets."""
    redactor = PatternRedactor()
    for text, expected in _SECRETS.items():
        assert redactor.redact(text).text == expected, text
        assert redactor.redact(expected).found == (), text
    for text in _PLAIN:
        assert redactor.redact(text) == (text, (), ()), text
    assert redactor.redact("hunter2", name="api_key").text == "[redacted:named-secret]"


def test_redacted_entry_notes_what_was_taken_out() -> None:
    """Texts and arguments lose the secret and JSON stays JSON; ids and signatures of other blocks stay; twice is as once."""
    call = ToolCallContent(id=_KEY, name="sh", raw_args=json.dumps({"api_key": _KEY}))
    thought = ThinkingContent(content=f"I use {_KEY}", signature="sealed")
    for message in (UserMessage(f"use {_KEY}"), AssistantMessage(contents=(thought, call))):
        body = redact_body(draft(MessageEntry(message=message))[0].body, PatternRedactor())
        entry = decode_entry(body)
        assert isinstance(entry, MessageEntry)
        assert redact_body(body, PatternRedactor()) == body
        assert all(found.place.startswith("message.contents.") for found in entry.redacted or ()), message
        assert _KEY not in entry.message.text_content()
        for block in entry.message.contents:
            if isinstance(block, ToolCallContent):
                assert block.id == _KEY
                assert json.loads(block.arguments) == {"api_key": "[redacted:named-secret]"}
            if isinstance(block, ThinkingContent):
                assert (block.content, block.signature) == ("I use [redacted:github-token]", "")


def test_raw_json_is_redacted_inside() -> None:
    """A redactor sees the strings of a raw value as they are, with the names of their fields; the rest stays exact, and twice is as once."""
    value = {"z": [f"use \0{_KEY}"], "password": "hunter2hunter2", "a": "\ud800", "n": 1.50}
    body = redact_body(draft(Custom.exact("x", value))[0].body, PatternRedactor())
    entry = decode_entry(body)
    assert isinstance(entry, Custom)
    clean = {"z": ["use \0[redacted:github-token]"], "password": "[redacted:named-secret]", "a": "\ud800", "n": 1.50}
    assert json.dumps(entry.value) == json.dumps(clean)
    assert redact_body(body, PatternRedactor()) == body
