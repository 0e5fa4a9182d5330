"""What the tests of agents share: an agent over a script, the kinds of a log, a store of each sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from palaver import Dialog, Prompt
from palaver.agent import Agent, ProviderInvoker
from palaver.log import Entry, decode_entry
from palaver.log.entries import MessageEntry
from palaver.models import ScriptedProvider
from palaver.models.retry import Retry
from palaver.wire import Request

MODEL = "gpt-4o-mini"


async def no_sleep(_seconds: float) -> None:
    """Wait for nothing."""


QUICK = Retry(attempts=4, base=1.0, jitter=False, sleep=no_sleep)


def calling(name: str, text: str = "", call_id: str = "", /, **arguments: object) -> dict[str, Any]:
    """Give an answer of a script that calls one tool."""
    return {"text": text, "tool_calls": [{"name": name, "arguments": arguments, "id": call_id}]}


def both(*calls: tuple[str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    """Give an answer of a script that calls several tools."""
    return {"text": text, "tool_calls": [{"name": name, "arguments": dict(given)} for name, given in calls]}


def scripted(
    script: Iterable[object] | Callable[[Request], object],
    prompt: Prompt | None = None,
    **options: Any,  # noqa: ANN401 - what an agent takes
) -> tuple[Agent, ScriptedProvider]:
    """Give an agent that talks to a script in a dialog it has opened, and the script's provider."""
    provider = ScriptedProvider(script, profile=options.pop("profile", "openai-chat"))
    system = prompt or Prompt(path="tester/system", prompt="You are tested.")
    agent = Agent("tester", system, MODEL, ProviderInvoker(provider), **options)
    return agent.open("main"), provider


def entries(dialog: Dialog) -> list[Entry]:
    """Give a dialog's own entries."""
    return [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]


def kinds(dialog: Dialog) -> list[str]:
    """Give the kinds of a dialog's own entries in order; of messages their roles."""
    return [entry.message.role.value if isinstance(entry, MessageEntry) else entry.kind for entry in entries(dialog)]


def roles(dialog: Dialog) -> list[str]:
    """Give the roles of a dialog's messages in order."""
    return [message.role.value for message in dialog.messages]


def sent(request: Request) -> list[tuple[str, Any]]:
    """Give the roles and contents of a request to chat completions."""
    return [(message["role"], message.get("content")) for message in request.body["messages"]]
