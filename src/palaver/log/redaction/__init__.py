"""Redaction: keys and tokens are taken out of what is to be written, before it is written. Pure: text in, text out."""

from palaver.log.redaction.bodies import redact_body, redact_json
from palaver.log.redaction.patterns import PATTERNS, Pattern
from palaver.log.redaction.redactor import Found, PatternRedactor, Redacted, Redactor, StreamRedactor

__all__ = [
    "PATTERNS",
    "Found",
    "Pattern",
    "PatternRedactor",
    "Redacted",
    "Redactor",
    "StreamRedactor",
    "redact_body",
    "redact_json",
]
