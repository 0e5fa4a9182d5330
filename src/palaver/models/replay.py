"""A provider that plays a recorded conversation back, and says so loudly where a request is not the one that was recorded."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from palaver.errors import InvalidInput, PalaverError, ReplayDiffers, ScriptExhausted
from palaver.log import Handle
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    from_chat_dict,
)
from palaver.models.client import streamed
from palaver.models.events import End, Event, UsageEvent
from palaver.models.offline import Offline
from palaver.models.spoken import spoken
from palaver.view import View
from palaver.wire import Profile, ProfileName, Request

__all__ = ["ReplayProvider", "read_recording"]

_SHOWN = 60
"""Characters of each side that a difference shows."""
_ROLES = {Role.TOOL_CALL: Role.ASSISTANT}
_TOLD = frozenset({Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL})
"""The roles that a model is told as they are; the others are the program's, or summaries that a view makes."""


class _Said(NamedTuple):
    """One block as it is compared: who says it, in what words, and where it stands."""

    role: Role
    words: str
    handle: Handle | None = None
    answer: int = -1


class ReplayProvider(Offline):
    """Gives a recorded conversation's answers again, each to the request that it answered.

    What a request shows is compared with what was recorded, block by block: texts, calls with their ids and arguments, results, media by their
    digest. The recorded answer that follows is given. Blocks that a policy has shortened or put in are passed over, and what it left out may
    be missing; all else must be there, in order.
    """

    def __init__(
        self,
        recording: Iterable[Message],
        *,
        on_difference: Literal["raise", "ignore"] = "raise",
        name: str = "replay",
        profile: ProfileName | Profile = "openai-chat",
        chunk: int = 8,
    ) -> None:
        """Take a recording.

        Args:
            recording: The messages of the conversation, such as `dialog.messages`.
            on_difference: `ignore` gives the answers in order, whatever is asked.
            name: Who it says it is.
            profile: The profile that its requests are compiled with, or its name.
            chunk: Characters of a delta where a request asks for an answer in pieces.
        """
        super().__init__(name, profile)
        told = [message for message in recording if message.role in _TOLD]
        self._answers = [message for message in told if isinstance(message, AssistantMessage)]
        self._recorded = tuple(_recorded(told))
        self._strict = on_difference == "raise"
        self._chunk = chunk

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of the recorded answer.

        Raises:
            ReplayDiffers: The request is not the one that was recorded.
            ScriptExhausted: The recording ends where the request does.
        """
        self.requests.append(request)
        number = self._place(request) if self._strict else len(self.requests) - 1
        if number >= len(self._answers):
            raise ScriptExhausted(
                "The recording has no answer after what this request shows.", provider=self._name, model=request.model
            )
        answer = self._answers[number]
        for event in spoken(answer, self._chunk if streamed(request) else 0):
            yield event
        if answer.usage:
            yield UsageEvent(answer.usage)
        yield End(answer)

    def _place(self, request: Request) -> int:
        """Find the answer that was recorded after what a request shows.

        Raises:
            ReplayDiffers: It shows something else.
        """
        view = request.view
        if view is None:
            raise InvalidInput("A request that was not compiled from a view cannot be compared with a recording.")
        complete = not view.omissions
        at = 0
        for said in _shown(view, system=self._has_system()):
            found = self._find(said, at, complete=complete)
            if found is None:
                raise self._difference(said, at, request)
            at = found + 1
        following = self._recorded[at] if at < len(self._recorded) else None
        if following is not None and following.answer < 0:
            raise self._difference(_Said(following.role, ""), at, request)
        return len(self._answers) if following is None else following.answer

    def _has_system(self) -> bool:
        return any(said.role is Role.SYSTEM for said in self._recorded)

    def _find(self, said: _Said, at: int, *, complete: bool) -> int | None:
        """Give where a block stands in the recording, from a place on: right there, unless the view leaves something out."""
        for index in range(at, len(self._recorded)):
            if self._recorded[index][:2] == said[:2]:
                return index
            if complete:
                return None
        return None

    def _difference(self, said: _Said, at: int, request: Request) -> ReplayDiffers:
        recorded = self._recorded[at] if at < len(self._recorded) else _Said(said.role, "")
        same = _alike(recorded.words, said.words) if recorded.role is said.role else 0
        expected, found = recorded.words[same:], said.words[same:]
        where = f"in {said.handle}" if said.handle is not None else "at its end"
        return ReplayDiffers(
            f"The request differs from the recording {where}, after {same} characters of the words of the {said.role.value}: recorded "
            f"{_quoted(recorded, expected)}, asked {_quoted(said, found)}.",
            handle=None if said.handle is None else str(said.handle),
            role=said.role.value,
            expected=expected,
            found=found,
            at=same,
            provider=self._name,
            model=request.model,
        )


def _alike(one: str, other: str) -> int:
    """Count the characters that two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _quoted(said: _Said, words: str) -> str:
    return f"{words[:_SHOWN]!r} ({said.role.value})" if words else f"nothing more ({said.role.value})"


def read_recording(path: str | Path) -> tuple[Message, ...]:
    """Read a recording: messages as a JSON list, or one a line, in palaver's own form or that of chat completions.

    Raises:
        InvalidInput: It is not there, or is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        read = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except OSError as error:
        raise InvalidInput(f"The recording {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(f"The recording {str(path)!r} is no JSON: {error}.") from error
    try:
        return tuple(_message(item) for item in read)
    except (PalaverError, TypeError) as error:
        raise InvalidInput(f"The recording {str(path)!r} holds something that is no message: {error}") from error


def _message(item: object) -> Message:
    if not isinstance(item, dict):
        raise InvalidInput(f"a {type(item).__name__}")
    return Message.from_dict(item) if "contents" in item else from_chat_dict(item)


# --- what is compared ----------------------------------------------------------------------------------------------------


def _recorded(messages: Iterable[Message]) -> Iterator[_Said]:
    """Spell out the messages of a recording; the blocks of an answer know which one it is."""
    answer = -1
    out: list[_Said] = []
    for message in messages:
        answer += isinstance(message, AssistantMessage)
        number = answer if isinstance(message, AssistantMessage) else -1
        role = _ROLES.get(message.role, message.role)
        out.extend(_Said(role, words, None, number) for words in map(_words, message.contents) if words.strip())
    yield from _in_order(out)


def _shown(view: View, *, system: bool) -> Iterator[_Said]:
    """Spell out what a view shows as it was recorded."""
    out = [_Said(Role.SYSTEM, _words(block.content), block.origin) for block in view.system if system]
    for exchange in view.exchanges:
        for turn in () if exchange.derived else exchange.turns:
            role = _ROLES.get(turn.role, turn.role)
            blocks = [block for block in turn.blocks if not block.derived and block.reason is None]
            out.extend(_Said(role, _words(block.content), block.origin) for block in blocks)
    yield from _in_order([said for said in out if said.words.strip()])


def _in_order(said: list[_Said]) -> Iterator[_Said]:
    """Put the results of one batch into one order: they are recorded as they come, and shown as they were called for."""
    for role, group in groupby(said, key=lambda each: each.role):
        batch = list(group)
        yield from sorted(batch, key=lambda each: each.words) if role is Role.TOOL else batch


def _words(content: Content) -> str:
    """Give a block as text: what of it a model is told."""
    if isinstance(content, TextContent):
        return content.content
    if isinstance(content, ThinkingContent):
        return content.content or content.redacted or canonical_json(content.artefact).decode()
    if isinstance(content, ToolCallContent):
        return f"{content.id} {content.name} {content.arguments}"
    if isinstance(content, ToolResultContent):
        inner = content.content if isinstance(content.content, str) else "\n".join(map(_words, content.content))
        return f"{content.id} {'failed ' if content.is_error else ''}{inner}"
    if isinstance(content, ImageContent | AudioContent):
        media = content.images if isinstance(content, ImageContent) else content.audio
        return " ".join(medium.url or medium.digest for medium in media)
    return canonical_json(content).decode()
