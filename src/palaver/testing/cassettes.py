"""Cassettes: a conversation with a provider that was recorded once, and is played back without the provider.

A cassette is a bundle: `palaver import` and `palaver show` read it. It has a pair of messages for each call: the request as it was sent, and the answer.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

from palaver.errors import InvalidInput, ProviderError
from palaver.messages import AssistantMessage, UserMessage
from palaver.providers import End, Event, Provider, UsageEvent
from palaver.providers import profile as profile_of
from palaver.providers.assembly import events_of
from palaver.providers.client import streamed
from palaver.session import Session
from palaver.store import MemoryStore
from palaver.transcripts import export_bundle, write_file
from palaver.transfer.bundle import import_bundle_file
from palaver.wire import Profile, Request

Mode: TypeAlias = Literal["once", "always", "never"]
"""When a cassette records: `once` where its file is missing, `always` anew, `never`."""

_CHUNK = 8
"""Characters of a delta when a request asks for a stream."""


class Cassette:
    """A file of recorded calls.

    Attributes:
        path: The file.
        recording: Whether calls reach the provider and are recorded.
    """

    def __init__(self, path: Path, mode: Mode = "once") -> None:
        """Read the file, unless it is recorded anew.

        Raises:
            InvalidInput: The mode is `never` and there is no file.
        """
        self.path = path
        self.recording = mode == "always" or (mode == "once" and not path.exists())
        self._session = Session.create(MemoryStore(), path.stem)
        self._answers: dict[str, deque[AssistantMessage]] = defaultdict(deque)
        self._facts: tuple[str, str] | None = None
        if not self.recording:
            self._read()

    def provider(self, source: Provider | Callable[[], Provider]) -> Provider:
        """Return a provider that records the calls of another one, or plays them back.

        Args:
            source: The provider, or a function or class that makes it. It is only made to record, so that playing back needs neither key nor package.
        """
        return _Taped(self, source)

    def save(self) -> None:
        """Write what was recorded; nothing where nothing was."""
        if self.recording and len(self._session.root.messages):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, export_bundle(self._session.store, self._session.session_id))

    def keep(self, request: Request, answer: AssistantMessage, provider: str) -> None:
        """Record a call."""
        facts = {"provider": provider, "profile": request.profile.name, "request": _digest(request)}
        self._session.root.append(UserMessage.text(request.data.decode()), metadata=facts)
        self._session.root.append(answer)

    def next(self, request: Request) -> AssistantMessage:
        """Return the answer that was recorded for a request.

        Raises:
            ProviderError: None was, or no further one; the kind is `script`.
        """
        waiting = self._answers.get(_digest(request))
        if not waiting:
            known = "was answered already" if waiting is not None else "was not recorded"
            raise ProviderError(
                f"The request {known} in {self.path.name}: {_ending(request)}",
                kind="script",
                model=request.model,
                hint="If the change is intended, record the cassette again with --palaver-record=always.",
            )
        return waiting.popleft()

    @property
    def facts(self) -> tuple[str, str]:
        """The provider's name and the profile of the recorded calls."""
        if self._facts is None:
            raise InvalidInput(f"{self.path} has no recorded call.", hint="Record it with --palaver-record=always.")
        return self._facts

    def _read(self) -> None:
        if not self.path.exists():
            hint = "Record it: run the test without --palaver-record=never."
            raise InvalidInput(f"There is no cassette {self.path}.", hint=hint)
        store = MemoryStore()
        session = Session.open(store, import_bundle_file(store, self.path).session_id)
        for asked, answer in pairwise(session.root.messages):
            if isinstance(answer, AssistantMessage) and "request" in asked.metadata:
                self._answers[str(asked.metadata["request"])].append(answer)
                self._facts = str(asked.metadata["provider"]), str(asked.metadata["profile"])


def _digest(request: Request) -> str:
    return sha256(request.data).hexdigest()


def _ending(request: Request) -> str:
    """Return the end of a request's conversation, where it most likely differs."""
    items = request.fields[request.profile.conversation]
    return json.dumps(items[-1], ensure_ascii=False, default=str)[-200:] if items else "it has no messages"


class _Taped:
    """A provider behind a cassette."""

    def __init__(self, cassette: Cassette, source: Provider | Callable[[], Provider]) -> None:
        self._cassette = cassette
        self._source: Provider | None = None
        if cassette.recording:
            made = source() if isinstance(source, type) or not isinstance(source, Provider) else source
            self._source = made

    @property
    def name(self) -> str:
        """The name of the recorded provider."""
        return self._cassette.facts[0] if self._source is None else self._source.name

    def profile_for(self, model: str) -> Profile:
        """Return the profile of the recorded provider for a model."""
        if self._source is None:
            return profile_of(self._cassette.facts[1], model)
        return self._source.profile_for(model)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of the provider's answer, or of the recorded one."""
        if self._source is not None:
            async for event in self._source.stream(request):
                if isinstance(event, End):
                    self._cassette.keep(request, event.message, self._source.name)
                yield event
            return
        answer = self._cassette.next(request)
        for event in events_of(answer, _CHUNK if streamed(request) else 0):
            yield event
        if answer.usage:
            yield UsageEvent(answer.usage)
        yield End(answer)

    async def aclose(self) -> None:
        """Close the provider's connections."""
        if self._source is not None:
            await self._source.aclose()
