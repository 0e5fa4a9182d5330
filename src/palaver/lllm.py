"""The names that LLLM's documents use: `from lllm... import X` becomes `from palaver.lllm import X`."""

from typing import TYPE_CHECKING, Any

import palaver
from palaver.doors import open_door

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - any name of the rooms below
        """Return a name of LLLM's documents."""


__all__ = open_door(  # noqa: PLE0605 - the names of other lists
    __name__,
    {
        "palaver": " ".join(palaver.__all__),
        "palaver.agent": "InvokeResult",
        "palaver.compat.building": "build_invoker register_invoker",
        "palaver.compat.manager": "SessionContext SessionEntry SessionTreeNode",
        "palaver.compat.tactic": "build_tactic",
        "palaver.compat.trace": "AgentCallSession TacticCallSession",
        "palaver.context.presets.assistants": "SummarizationConfig",
        "palaver.context.presets.own": "FullContext",
        "palaver.messages": (
            "APITypes AgentMessage AssistantContent BaseMessage Content FunctionCall LLMMessage MessageRole Modalities Roles"
            " StopReason SystemContent TokenLogprob ToolContent ToolKind UsageCost UserContent"
        ),
        "palaver.prompts": "DefaultHandler Handler StringFormatterRenderer get_default_runtime set_default_runtime",
    },
)
