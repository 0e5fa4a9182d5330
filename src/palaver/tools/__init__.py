"""Tools: declared to a model by a schema, run with arguments that were checked, answered whatever happens."""

from palaver.tools.batch import execute_all
from palaver.tools.context import CallContext, Progress
from palaver.tools.function import Function, ToolFunction, labelled, tool
from palaver.tools.outcome import Ending, ToolOutcome, ToolReply
from palaver.tools.running import execute, refuse
from palaver.tools.servers import MCP
from palaver.tools.toolbox import Toolbox

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
    "tool",
]
