"""Tools: declared to a model by a schema, called with checked arguments, and always answered.

Modules that run tools are loaded on first use: a program that only stores conversations needs no event loop.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.tools.execution import execute, execute_all
    from palaver.tools.function import Function, ToolFunction, labelled, tool
    from palaver.tools.outcomes import CallContext, Ending, Progress, ToolOutcome, ToolReply
    from palaver.tools.servers import MCP
    from palaver.tools.toolbox import Toolbox
    from palaver.tools.workers import run_in_worker

__all__ = [
    "MCP",
    "CallContext",
    "Ending",
    "Function",
    "Progress",
    "ToolFunction",
    "ToolOutcome",
    "ToolReply",
    "Toolbox",
    "execute",
    "execute_all",
    "labelled",
    "run_in_worker",
    "tool",
]

open_door(
    __name__,
    {
        ".execution": "execute execute_all",
        ".function": "Function ToolFunction labelled tool",
        ".outcomes": "CallContext Ending Progress ToolOutcome ToolReply",
        ".servers": "MCP",
        ".toolbox": "Toolbox",
        ".workers": "run_in_worker",
    },
)
