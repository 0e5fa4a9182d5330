"""Providers' answers read into events, from the JSON they consist of: pure, without any vendor's package.

One reader for each API. What an answer brings that its next request must have (signatures, encrypted reasoning, ids, the order of blocks) is
put where :mod:`palaver.wire` looks for it.
"""

from palaver.models.answers.anthropic import AnthropicAnswer
from palaver.models.answers.gemini import GeminiAnswer
from palaver.models.answers.openai_chat import ChatAnswer
from palaver.models.answers.openai_responses import ResponsesAnswer
from palaver.models.answers.reading import AnswerReader, Json

__all__ = ["AnswerReader", "AnthropicAnswer", "ChatAnswer", "GeminiAnswer", "Json", "ResponsesAnswer"]
