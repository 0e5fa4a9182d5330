"""The dialects of lists of messages: OpenAI's two interfaces, Anthropic's and Gemini's."""

from palaver.context.dialects.dialect import COMPACTION, Dialect, Item
from palaver.context.dialects.lists import DIALECTS, dialect, items_of, tool_specs
from palaver.context.dialects.writer import ListWriter, Written

__all__ = ["COMPACTION", "DIALECTS", "Dialect", "Item", "ListWriter", "Written", "dialect", "items_of", "tool_specs"]
