"""Tools: declared to a model by a schema, called with checked arguments, and always answered.

Modules that run tools are loaded on first use: a program that only stores conversations needs no event loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from palaver.tools.function import Function, ToolFunction, labelled, tool
from palaver.tools.outcomes import CallContext, Ending, Progress, ToolOutcome, ToolReply
from palaver.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from palaver.tools.execution import execute, execute_all
    from palaver.tools.servers import MCP
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

_RUNNING = {
    "MCP": "servers",
    "execute": "execution",
    "execute_all": "execution",
    "run_in_worker": "workers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any name of a module
    """Load the module that a name comes from."""
    if name not in _RUNNING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"palaver.tools.{_RUNNING[name]}"), name)
