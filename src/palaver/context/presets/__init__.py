"""The policies that come with palaver: its own, and what other systems do, each with its source and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from palaver.context.manager import Policy
from palaver.context.presets.aider import Aider
from palaver.context.presets.assistants import CAT, Dynamiq, Letta, Manus, SummarizationConfig
from palaver.context.presets.coding import ClaudeCode, OpenCode, OpenCodeDCP, OpenHands, Pi, SWEAgent
from palaver.context.presets.own import (
    LLLM,
    DefaultContextManager,
    FoldContextManager,
    FullContext,
    OffloadContextManager,
    Palaver,
)
from palaver.context.presets.preset import Phase, Preset

__all__ = [
    "CAT",
    "LLLM",
    "PRESETS",
    "Aider",
    "ClaudeCode",
    "DefaultContextManager",
    "Dynamiq",
    "FoldContextManager",
    "FullContext",
    "Letta",
    "Manus",
    "OffloadContextManager",
    "OpenCode",
    "OpenCodeDCP",
    "OpenHands",
    "Palaver",
    "Phase",
    "Pi",
    "Preset",
    "SWEAgent",
    "SummarizationConfig",
]

_ALL: tuple[type[Policy], ...] = (
    Palaver,
    FoldContextManager,
    OffloadContextManager,
    DefaultContextManager,
    FullContext,
    LLLM,
    OpenHands,
    ClaudeCode,
    Manus,
    OpenCode,
    OpenCodeDCP,
    Aider,
    SWEAgent,
    CAT,
    Letta,
    Dynamiq,
    Pi,
)

PRESETS: Mapping[str, type[Policy]] = MappingProxyType({each.name: each for each in _ALL})
"""All of them by name, the default first."""
