"""Prompts: templates, the contracts for their answers, and the registry of their names."""

from palaver.prompts.formats import Format
from palaver.prompts.handlers import DefaultHandler, Handler
from palaver.prompts.parsing import DefaultTagParser, ParseFunction, Parser
from palaver.prompts.prompt import FunctionFinder, Prompt, PromptRef, temporary_prompt, verbatim_prompt
from palaver.prompts.render import Renderer, StringFormatterRenderer, VerbatimRenderer
from palaver.prompts.runtime import Runtime, ToolSource, as_tool, get_default_runtime, set_default_runtime

__all__ = [
    "DefaultHandler",
    "DefaultTagParser",
    "Format",
    "FunctionFinder",
    "Handler",
    "ParseFunction",
    "Parser",
    "Prompt",
    "PromptRef",
    "Renderer",
    "Runtime",
    "StringFormatterRenderer",
    "ToolSource",
    "VerbatimRenderer",
    "as_tool",
    "get_default_runtime",
    "set_default_runtime",
    "temporary_prompt",
    "verbatim_prompt",
]
