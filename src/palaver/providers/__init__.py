"""Providers: what each API accepts, reads and writes, and the adapters that ask models.

:class:`Provider` is the protocol of an adapter: a compiled request goes in, the events of an answer come out. Each adapter needs its vendor's
package, and is imported when its class is first used: `OpenAIProvider`, `AnthropicProvider`, `GoogleProvider`, `LiteLLMProvider`.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.providers.answers import answer_json as answer_json, read_answer as read_answer
    from palaver.providers.anthropic.client import AnthropicProvider as AnthropicProvider
    from palaver.providers.assembly import Assembly as Assembly, collect as collect
    from palaver.providers.connect import connect_model as connect_model, connect_provider as connect_provider
    from palaver.providers.dialect import COMPACTION as COMPACTION, Dialect as Dialect, Item as Item
    from palaver.providers.gemini.client import GoogleProvider as GoogleProvider
    from palaver.providers.lists import dialect as dialect, items_of as items_of, tool_specs as tool_specs
    from palaver.providers.litellm import LiteLLMProvider as LiteLLMProvider
    from palaver.providers.openai_chat.client import OpenAIProvider as OpenAIProvider
    from palaver.providers.provider import (
        BlockEvent as BlockEvent,
        End as End,
        Event as Event,
        Provider as Provider,
        TextDelta as TextDelta,
        ThinkingDelta as ThinkingDelta,
        ToolCallDelta as ToolCallDelta,
        UsageEvent as UsageEvent,
    )
    from palaver.providers.registry import APIS as APIS, profile as profile
    from palaver.providers.retry import Attempt as Attempt, Retry as Retry, with_retries as with_retries
    from palaver.providers.scripted import ScriptedProvider as ScriptedProvider, read_script as read_script
    from palaver.providers.writer import ListWriter as ListWriter, Written as Written

__all__ = open_door(  # noqa: PLE0605 - type checkers read the aliases above
    __name__,
    {
        ".answers": "answer_json read_answer",
        ".anthropic.client": "AnthropicProvider",
        ".assembly": "Assembly collect",
        ".connect": "connect_model connect_provider",
        ".dialect": "COMPACTION Dialect Item",
        ".gemini.client": "GoogleProvider",
        ".lists": "dialect items_of tool_specs",
        ".litellm": "LiteLLMProvider",
        ".openai_chat.client": "OpenAIProvider",
        ".provider": "BlockEvent End Event Provider TextDelta ThinkingDelta ToolCallDelta UsageEvent",
        ".registry": "APIS profile",
        ".retry": "Attempt Retry with_retries",
        ".scripted": "ScriptedProvider read_script",
        ".writer": "ListWriter Written",
    },
)
