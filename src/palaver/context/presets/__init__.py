"""Presets: what other systems do, each made of operators with its published constants; and ours."""

from palaver.context.presets.aider import Aider
from palaver.context.presets.claude_code import ClaudeCode
from palaver.context.presets.dynamiq import Dynamiq, SummarizationConfig
from palaver.context.presets.letta import Letta
from palaver.context.presets.lllm import LLLM
from palaver.context.presets.manus import Manus
from palaver.context.presets.opencode import OpenCode, OpenCodeDCP
from palaver.context.presets.openhands import OpenHands
from palaver.context.presets.palaver import Palaver
from palaver.context.presets.pi import Pi
from palaver.context.presets.preset import Preset, Recipe
from palaver.context.presets.swe_agent import CAT, SWEAgent

__all__ = [
    "CAT",
    "LLLM",
    "PRESETS",
    "Aider",
    "ClaudeCode",
    "Dynamiq",
    "Letta",
    "Manus",
    "OpenCode",
    "OpenCodeDCP",
    "OpenHands",
    "Palaver",
    "Pi",
    "Preset",
    "Recipe",
    "SWEAgent",
    "SummarizationConfig",
]

PRESETS: tuple[type[Preset], ...] = (
    Palaver,
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
    LLLM,
    Pi,
)
"""All of them, ours first."""
