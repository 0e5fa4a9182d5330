"""Models: a compiled request goes in, the events of an answer come out.

A :class:`Provider` is the seam. Adapters over the vendors' own clients are modules of their own, loaded when they are asked for:
`palaver.models.openai`, `palaver.models.anthropic`, `palaver.models.google`, `palaver.models.litellm`.
"""

from palaver.models.assembly import Assembly, collect
from palaver.models.connect import connect_model
from palaver.models.events import BlockEvent, Delta, End, Event, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
from palaver.models.provider import Provider
from palaver.models.replay import ReplayProvider, read_recording
from palaver.models.retry import Attempt, Retry, with_retries
from palaver.models.script import Answer, read_answer, read_script
from palaver.models.scripted import ScriptedProvider
from palaver.models.spoken import spoken

__all__ = [
    "Answer",
    "Assembly",
    "Attempt",
    "BlockEvent",
    "Delta",
    "End",
    "Event",
    "Provider",
    "ReplayProvider",
    "Retry",
    "ScriptedProvider",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "UsageEvent",
    "collect",
    "connect_model",
    "read_answer",
    "read_recording",
    "read_script",
    "spoken",
    "with_retries",
]
