"""Models: a compiled request goes in, the events of an answer come out.

:class:`Provider` is the protocol. The adapters over vendors' clients are separate modules, imported on request: `palaver.models.openai`,
`palaver.models.anthropic`, `palaver.models.google`, `palaver.models.litellm`.
"""

from palaver.models.assembly import Assembly, collect
from palaver.models.connect import connect_model
from palaver.models.provider import (
    BlockEvent,
    End,
    Event,
    Provider,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageEvent,
)
from palaver.models.retry import Attempt, Retry, with_retries
from palaver.models.scripted import ScriptedProvider, read_script

__all__ = [
    "Assembly",
    "Attempt",
    "BlockEvent",
    "End",
    "Event",
    "Provider",
    "Retry",
    "ScriptedProvider",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "UsageEvent",
    "collect",
    "connect_model",
    "read_script",
    "with_retries",
]
