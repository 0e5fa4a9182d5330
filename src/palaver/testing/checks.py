"""Checks for tests of loops: is a request valid, what does a policy keep, does a loop survive a kill at every step."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.context.fit import fit
from palaver.errors import InvalidInput
from palaver.messages import Message
from palaver.session import Session
from palaver.store import SqliteStore, Store
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide
from palaver.testing.kills import dying_store
from palaver.wire import Request

_SIDES: Mapping[str, Callable[[], Any]] = {
    "anthropic": AnthropicSide,
    "openai-chat": ChatSide,
    "openai-responses": ResponsesSide,
    "gemini": GeminiSide,
}


def require_valid(request: Request | Mapping[str, Any], api: str = "", *, model: str = "") -> None:
    """Fail where the strict server of an API refuses a request.

    Args:
        request: A request of palaver, or the body that a loop sends.
        api: `anthropic`, `openai-chat`, `openai-responses` or `gemini`; known for a request of palaver.
        model: The model, where the body does not name it.

    Raises:
        AssertionError: The server refuses it; the message is the vendor's.
        InvalidInput: There is no strict server of this name.
    """
    if isinstance(request, Request):
        name, asked, body = api or request.profile.name, request.model, json.loads(request.data)
        headers: Mapping[str, str] = request.headers
    else:
        name, asked, body, headers = api, str(request.get("model", "")), dict(request), {}
    if name not in _SIDES:
        raise InvalidInput(f"There is no strict server {name!r}.", hint=f"Pass one as api: {', '.join(_SIDES)}.")
    side = _SIDES[name]()
    served = side.server.ask(side.path(model or asked), body, {**side.headers, **headers})
    assert served.status < 400, f"{name} refuses the request: {served.message}"  # noqa: PLR2004 - an error of HTTP


def kept(messages: Iterable[Any], *, model: str, **options: Any) -> list[int]:  # noqa: ANN401 - those of `fit`
    """Return the indexes of the messages that a policy keeps unchanged.

    Args:
        messages: The messages.
        model: The model.
        options: As for `palaver.fit`: `budget`, `policy`, `pinned` and so on.
    """
    given = list(messages)
    shown = {id(message) for message in fit(given, model=model, **options).messages}
    return [index for index, message in enumerate(given) if id(message) in shown]


@dataclass(frozen=True)
class Outcome:
    """A loop that was killed and resumed.

    Attributes:
        step: After which durable write it was killed, counted from 1; 0 for the run without a kill.
        messages: The messages of each dialog in the end, by the name of its session.
    """

    step: int
    messages: Mapping[str, list[Message]]

    @property
    def texts(self) -> list[str]:
        """What was said, dialog after dialog: comparable between outcomes, without ids and times."""
        return [
            f"{message.role.value}: {message.text_content()}" for said in self.messages.values() for message in said
        ]


def survive(loop: Callable[[Store], object], folder: Path) -> list[Outcome]:
    """Run a loop, then kill it in a process of its own after each of its durable writes, and run it again.

    Args:
        loop: Begins or resumes the work in a store, such as `Agent(..., store=store).open("main", resume=True)` and what follows. It is run several times.
        folder: Where the stores are.

    Returns:
        The outcome without a kill, then one for each kill.

    Raises:
        AssertionError: A resumed loop raised.
    """
    counted = dying_store(SqliteStore(folder / "kill-0.db"))
    loop(counted)
    outcomes = [Outcome(0, _said(counted))]
    for step in range(1, counted.made + 1):  # type: ignore[attr-defined]
        path = folder / f"kill-{step}.db"
        _killed(loop, path, step)
        with SqliteStore(path) as store:
            try:
                loop(store)
            except Exception as error:
                raise AssertionError(f"Killed after write {step}, the loop does not resume: {error}") from error
            outcomes.append(Outcome(step, _said(store)))
    counted.close()
    return outcomes


def _killed(loop: Callable[[Store], object], path: Path, step: int) -> None:
    """Run a loop in a child that dies after a write."""
    child = os.fork()
    if child == 0:
        try:
            loop(dying_store(SqliteStore(path), step))
        except BaseException:  # noqa: BLE001 - the child must not go on with the tests of its parent
            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == -signal.SIGKILL, (
        f"The loop ended before write {step} (code {code}): it makes other writes in each run."
    )


def _said(store: Store) -> dict[str, list[Message]]:
    sessions = sorted(store.sessions(), key=lambda record: (record.created_at, record.name))
    return {record.name: list(Session.open(store, record.session_id).root.messages) for record in sessions}
