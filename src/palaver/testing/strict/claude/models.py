"""The models of the Messages API, and what each accepts.

Read from https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting (types and defaults), …/preserved-thinking (which blocks a model
reads, and which check what precedes them), …/mid-conversation-system-messages, and the pages of what is new in each model, in November 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from palaver.testing.strict.seal import Json

__all__ = ["MODELS", "ClaudeModel", "model_named"]

_ADAPTIVE, _ENABLED, _DISABLED, _BETWEEN = "adaptive", "enabled", "disabled", "between_tools"


@dataclass(frozen=True, slots=True)
class ClaudeModel:
    """A model.

    Attributes:
        name: Its name, without a date.
        types: The values of `thinking.type` that it accepts.
        default: Whether it thinks where a request does not say: `always`, `on` or `off`.
        checks: Whether it checks what precedes a block of thinking: for `every` account, for `new` ones, or `never`.
        reads: Patterns of the names of models whose thinking it reads.
        forced: Whether a tool can be forced.
        sampling: Whether sampling parameters are accepted (with an older version of the API).
        prefill: Whether a request may end with the assistant's words.
        system: Whether there may be system messages between the others.
        account: Whether its thinking is bound to the account.
        disabled_up_to: The highest effort at which thinking can be turned off; empty: any.
    """

    name: str
    types: frozenset[str]
    default: str
    checks: str = "never"
    reads: str = ""
    forced: bool = True
    sampling: bool = False
    prefill: bool = False
    system: bool = False
    account: bool = False
    disabled_up_to: str = ""

    @property
    def version(self) -> tuple[int, int]:
        """The version, for comparisons."""
        major, _, minor = self.name.split("-", 2)[2].partition("-")
        return int(major), int(minor or 0)

    @property
    def max_tokens(self) -> int:
        """The most tokens of an answer."""
        return 128_000 if self.version >= (4, 6) else 64_000

    @property
    def shows_thinking(self) -> bool:
        """Whether the text of thinking is in the answer where the request does not say."""
        return self.version < (4, 7)

    def reads_from(self, maker: str) -> bool:
        """Return whether it reads thinking of this model, with or without a date."""
        name = undated(maker)
        return name == self.name or re.fullmatch(self.reads, name) is not None

    def info(self) -> Json:
        """Return the entry of `GET /v1/models`."""
        supported = {"supported": True}
        types = {kind: {"supported": kind in self.types} for kind in (_ADAPTIVE, _BETWEEN, _DISABLED, _ENABLED)}
        efforts = dict.fromkeys(("low", "medium", "high", "max", "xhigh"), supported)
        edits = dict.fromkeys(("clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112"), supported)
        plain = ("batch", "citations", "code_execution", "image_input", "pdf_input", "structured_outputs")
        tools = {"web_search": supported, "code_execution": supported}
        return {
            "type": "model",
            "id": self.name,
            "display_name": self.name,
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": 1_000_000 if self.version >= (5, 0) else 200_000,
            "max_tokens": self.max_tokens,
            "allowed_fallback_models": [],
            "capabilities": dict.fromkeys(plain, supported)
            | {
                "thinking": {"supported": True, "types": types},
                "effort": supported | efforts,
                "context_management": supported | edits,
                "compaction": supported | {"summarize": supported},
                "server_tools": supported | tools,
            },
        }


_TO_OLD = r"claude-(opus|sonnet|haiku)-4(-\d)?"
_TO_5 = r"claude-\w+-(5|4(-\d)?)"
_PAIR = r"claude-(fable|mythos)"

_ROWS: Final = [
    *(
        ClaudeModel(
            f"claude-{name}-5-2", frozenset({_ADAPTIVE}), "always", "every", r"claude-.*", forced=False, system=True
        )
        for name in ("fable", "mythos")
    ),
    *(
        ClaudeModel(
            f"claude-{name}-5-1",
            frozenset({_ADAPTIVE}),
            "always",
            "new",
            rf"{_TO_5}|{_PAIR}-5-1|claude-opus-5-5",
            forced=False,
            system=True,
        )
        for name in ("fable", "mythos")
    ),
    ClaudeModel(
        "claude-opus-5-5",
        frozenset({_ADAPTIVE}),
        "always",
        "new",
        rf"{_TO_OLD}|claude-(opus|sonnet)-5|claude-sonnet-5-5",
        forced=False,
        system=True,
    ),
    ClaudeModel(
        "claude-sonnet-5-5",
        frozenset({_ADAPTIVE, _BETWEEN}),
        "on",
        "new",
        rf"{_TO_OLD}|claude-sonnet-5",
        forced=False,
        system=True,
        account=True,
    ),
    ClaudeModel(
        "claude-haiku-5-5",
        frozenset({_ADAPTIVE, _DISABLED}),
        "on",
        "new",
        system=True,
        account=True,
        disabled_up_to="high",
    ),
    *(
        ClaudeModel(f"claude-{name}-5", frozenset({_ADAPTIVE}), "always", reads=rf"{_TO_OLD}|{_PAIR}-5", system=True)
        for name in ("fable", "mythos")
    ),
    ClaudeModel(
        "claude-opus-5", frozenset({_ADAPTIVE, _DISABLED}), "on", reads=_TO_OLD, system=True, disabled_up_to="high"
    ),
    ClaudeModel("claude-sonnet-5", frozenset({_ADAPTIVE, _DISABLED}), "on", reads=_TO_OLD),
    ClaudeModel("claude-opus-4-8", frozenset({_ADAPTIVE, _DISABLED}), "off", reads=_TO_OLD, system=True),
    ClaudeModel("claude-opus-4-7", frozenset({_ADAPTIVE, _DISABLED}), "off", reads=_TO_OLD),
    *(
        ClaudeModel(
            f"claude-{name}-4-6", frozenset({_ADAPTIVE, _ENABLED, _DISABLED}), "off", reads=_TO_OLD, sampling=True
        )
        for name in ("opus", "sonnet")
    ),
    *(
        ClaudeModel(
            f"claude-{name}", frozenset({_ENABLED, _DISABLED}), "off", reads=_TO_OLD, sampling=True, prefill=True
        )
        for name in ("opus-4-5", "sonnet-4-5", "haiku-4-5", "opus-4-1", "sonnet-4", "opus-4")
    ),
]
MODELS: Final = {row.name: row for row in _ROWS}
"""The models by name, newest first."""


def undated(name: str) -> str:
    """Return the name of a model without its date."""
    return re.sub(r"-(\d{8}|latest|0)$", "", name)


def model_named(name: str) -> ClaudeModel | None:
    """Return the model of a name, with or without a date."""
    return MODELS.get(undated(name))
