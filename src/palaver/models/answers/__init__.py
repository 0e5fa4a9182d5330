"""Readers of providers' answers: from their JSON to events, without any vendor's package.

There is one reader for each API. Data that the next request must send back (signatures, encrypted reasoning, ids, the order of
blocks) is stored where :mod:`palaver.wire` reads it.
"""

from palaver.models.answers.anthropic import AnthropicAnswer
from palaver.models.answers.gemini import GeminiAnswer
from palaver.models.answers.openai_chat import ChatAnswer
from palaver.models.answers.openai_responses import ResponsesAnswer
from palaver.models.answers.reader import AnswerReader, Json
from palaver.models.answers.whole import answer_json, read_answer, sdk_json

__all__ = [
    "AnswerReader",
    "AnthropicAnswer",
    "ChatAnswer",
    "GeminiAnswer",
    "Json",
    "ResponsesAnswer",
    "answer_json",
    "read_answer",
    "sdk_json",
]
