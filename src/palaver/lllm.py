"""The names that LLLM's documents use: `from lllm... import X` becomes `from palaver.lllm import X`.

A name comes from `palaver` itself, or from the room that `MOVED` lists.
"""

from importlib import import_module
from typing import Any

import palaver

MOVED = {
    name: room
    for room, names in {
        "palaver.agent": "InvokeResult",
        "palaver.compat.building": "build_invoker register_invoker",
        "palaver.compat.tactic": "build_tactic",
        "palaver.compat.trace": "AgentCallSession TacticCallSession",
        "palaver.context.presets.assistants": "SummarizationConfig",
        "palaver.context.presets.own": "FullContext",
        "palaver.messages": (
            "APITypes AgentMessage AssistantContent BaseMessage Content FunctionCall LLMMessage MessageRole Modalities Roles"
            " StopReason SystemContent TokenLogprob ToolContent ToolKind UsageCost UserContent"
        ),
        "palaver.prompts": ("DefaultHandler Handler StringFormatterRenderer get_default_runtime set_default_runtime"),
        "palaver.session.manager": "SessionContext SessionEntry SessionTreeNode",
    }.items()
    for name in names.split()
}
"""The room of each name that is not in `palaver`."""

__all__ = sorted({*palaver.__all__, *MOVED})  # noqa: PLE0605 - the names of another list


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any name of a room
    """Return a name of LLLM's documents."""
    if name in MOVED:
        return getattr(import_module(MOVED[name]), name)
    if name in palaver.__all__:
        return getattr(palaver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
