"""The small closed vocabularies of a message: who speaks, in what form, why it ended, and how far it is trusted."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from palaver.errors import InvalidMessage

__all__ = [
    "SPEAKER_OF_ROLE",
    "APITypes",
    "MessageRole",
    "Modalities",
    "Role",
    "Roles",
    "Speaker",
    "StopReason",
    "ToolKind",
    "Trust",
    "read_role",
]


class Role(StrEnum):
    """The part a message plays in the conversation.

    ``developer``, the newer OpenAI word for the instructions, is read as SYSTEM. TOOL_CALL is an assistant's message that
    asks for tools, in dialogs that keep it apart; the wire role of it is always assistant. The last three never go to a model
    as they are.
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    TOOL_CALL = "tool_call"
    CUSTOM = "custom"
    BRANCH_SUMMARY = "branch_summary"
    COMPACTION_SUMMARY = "compaction_summary"

    @classmethod
    def _missing_(cls, value: object) -> Role | None:
        """Read ``developer`` as SYSTEM."""
        return cls.SYSTEM if value == "developer" else None


Roles = MessageRole = Role

_ROLE_OF_WORD = {role.value: role for role in Role}


def read_role(word: object) -> Role:
    """Read the word for a role.

    Raises:
        InvalidMessage: It is none.
    """
    role = (_ROLE_OF_WORD.get(word) or Role._missing_(word)) if isinstance(word, str) else None
    if role is None:
        raise InvalidMessage(f"There is no role {word!r}.", hint=f"Roles are: {', '.join(Role)}.")
    return role


class Modalities(StrEnum):
    """What a message mainly consists of; an image or sound outweighs the text beside it."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    FUNCTION_CALL = "function_call"


class APITypes(StrEnum):
    """Which of OpenAI's two interfaces produced a message: chat completions or responses."""

    COMPLETION = "completion"
    RESPONSE = "response"


class StopReason(StrEnum):
    """Why a model stopped, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    ABORT = "abort"
    ERROR = "error"


class ToolKind(StrEnum):
    """What sort of thing a tool does: a hint for those who show it."""

    READ = "read"
    EDIT = "edit"
    WRITE = "write"
    EXECUTE = "execute"
    WEB = "web"
    UNKNOWN = "unknown"


class Trust(IntEnum):
    """How far the words of a speaker may be followed: the lowest first, so that ``min`` is what a summary inherits."""

    OUTSIDE = 0
    MODEL = 1
    HUMAN = 2
    HARNESS = 3


class Speaker(StrEnum):
    """Who really said something, whatever role carries it."""

    HUMAN = "human"
    MODEL = "model"
    TOOL = "tool"
    HARNESS = "harness"
    SUMMARY = "summary"

    @property
    def trust(self) -> Trust:
        """How far this speaker may be followed; a summary counts as the least of what it may have come from."""
        return _TRUST[self]


_TRUST = {
    Speaker.HUMAN: Trust.HUMAN,
    Speaker.MODEL: Trust.MODEL,
    Speaker.TOOL: Trust.OUTSIDE,
    Speaker.HARNESS: Trust.HARNESS,
    Speaker.SUMMARY: Trust.OUTSIDE,
}

SPEAKER_OF_ROLE = {
    Role.SYSTEM: Speaker.HARNESS,
    Role.USER: Speaker.HUMAN,
    Role.ASSISTANT: Speaker.MODEL,
    Role.TOOL: Speaker.TOOL,
    Role.TOOL_CALL: Speaker.MODEL,
    Role.CUSTOM: Speaker.HARNESS,
    Role.BRANCH_SUMMARY: Speaker.SUMMARY,
    Role.COMPACTION_SUMMARY: Speaker.SUMMARY,
}
"""Who speaks in a role unless the message says otherwise."""
