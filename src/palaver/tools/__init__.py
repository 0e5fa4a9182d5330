"""Tools: declared to a model by a schema, called with checked arguments, answered whatever happens."""

from palaver.tools.batch import execute_all
from palaver.tools.calls import CallContext, Ending, Progress, ToolOutcome, ToolReply
from palaver.tools.execution import execute, refuse
from palaver.tools.function import Function, ToolFunction, labelled, tool
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
    "refuse",
    "run_in_worker",
    "tool",
]
