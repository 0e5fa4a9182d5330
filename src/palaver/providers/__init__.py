"""Providers: what each API accepts, reads and writes, and the adapters that ask models.

:class:`Provider` is the protocol of an adapter: a compiled request goes in, the events of an answer come out. Each adapter needs its vendor's
package, and is imported when its class is first used: `OpenAIProvider`, `AnthropicProvider`, `GoogleProvider`, `LiteLLMProvider`.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.providers.anthropic.client import AnthropicProvider
    from palaver.providers.assembly import Assembly, collect
    from palaver.providers.connect import connect_model, connect_provider
    from palaver.providers.dialect import Dialect, Item
    from palaver.providers.gemini.client import GoogleProvider
    from palaver.providers.litellm import LiteLLMProvider
    from palaver.providers.openai_chat.client import OpenAIProvider
    from palaver.providers.provider import (
        BlockEvent,
        End,
        Event,
        Provider,
        TextDelta,
        ThinkingDelta,
        ToolCallDelta,
        UsageEvent,
    )
    from palaver.providers.registry import APIS, profile, profile_of
    from palaver.providers.retry import Attempt, Retry, with_retries
    from palaver.providers.scripted import ScriptedProvider, read_script
    from palaver.providers.writer import ListWriter, Written

__all__ = [
    "APIS",
    "AnthropicProvider",
    "Assembly",
    "Attempt",
    "BlockEvent",
    "Dialect",
    "End",
    "Event",
    "GoogleProvider",
    "Item",
    "ListWriter",
    "LiteLLMProvider",
    "OpenAIProvider",
    "Provider",
    "Retry",
    "ScriptedProvider",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "UsageEvent",
    "Written",
    "collect",
    "connect_model",
    "connect_provider",
    "profile",
    "profile_of",
    "read_script",
    "with_retries",
]

open_door(
    __name__,
    {
        ".anthropic.client": "AnthropicProvider",
        ".assembly": "Assembly collect",
        ".connect": "connect_model connect_provider",
        ".dialect": "Dialect Item",
        ".gemini.client": "GoogleProvider",
        ".litellm": "LiteLLMProvider",
        ".openai_chat.client": "OpenAIProvider",
        ".provider": "BlockEvent End Event Provider TextDelta ThinkingDelta ToolCallDelta UsageEvent",
        ".registry": "APIS profile profile_of",
        ".retry": "Attempt Retry with_retries",
        ".scripted": "ScriptedProvider read_script",
        ".writer": "ListWriter Written",
    },
)
