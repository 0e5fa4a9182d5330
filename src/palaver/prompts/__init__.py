"""Prompts: templates, what governs the answers to them, and the registry that gives them names."""

from palaver.prompts.parsing import DefaultTagParser, ParseFunction, Parser
from palaver.prompts.prompt import Handler, Prompt, temporary_prompt
from palaver.prompts.render import Renderer, StringFormatterRenderer, VerbatimRenderer
from palaver.prompts.runtime import Runtime, get_default_runtime, set_default_runtime

__all__ = [
    "DefaultTagParser",
    "Handler",
    "ParseFunction",
    "Parser",
    "Prompt",
    "Renderer",
    "Runtime",
    "StringFormatterRenderer",
    "VerbatimRenderer",
    "get_default_runtime",
    "set_default_runtime",
    "temporary_prompt",
]
