"""What the tests of agents share: an agent over a script, and what its log and requests say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from palaver.agent import Agent, ProviderInvoker
from palaver.log import Entry, decode_entry
from palaver.log.entries import Custom, MessageEntry
from palaver.prompts import Prompt
from palaver.providers import ScriptedProvider
from palaver.providers.retry import Retry
from palaver.session import Dialog
from palaver.wire import Request

MODEL = "gpt-4o-mini"


QUICK = Retry(attempts=4, base=0.0, jitter=False)
"""Retries without waiting."""


def calling(name: str, text: str = "", call_id: str = "", /, **arguments: object) -> dict[str, Any]:
    """Return an answer that calls one tool."""
    return {"text": text, "tool_calls": [{"name": name, "arguments": arguments, "id": call_id}]}


def both(*calls: tuple[str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    """Return an answer that calls several tools."""
    return {"text": text, "tool_calls": [{"name": name, "arguments": dict(given)} for name, given in calls]}


OVERFLOW = {"error": {"kind": "overflow", "message": "Too long.", "limit": 3_000, "asked": 6_000}}
"""A provider's refusal of a request that is twice as long as its window."""


def talkative(agent: Agent, exchanges: int = 12) -> None:
    """Put a long past into the agent's dialog."""
    for number in range(exchanges):
        agent.current_dialog.put_text(f"question {number} " + "word " * 300)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 300, role="assistant")


def scripted(
    script: Iterable[object] | Callable[[Request], object],
    prompt: Prompt | None = None,
    **options: Any,  # noqa: ANN401 - what an agent takes
) -> tuple[Agent, ScriptedProvider]:
    """Return an agent over a script, with a dialog open, and the script's provider."""
    provider = ScriptedProvider(script, profile=options.pop("profile", "openai-chat"))
    agent = Agent("tester", prompt or "You are tested.", MODEL, ProviderInvoker(provider), **options)
    return agent.open("main"), provider


def entries(dialog: Dialog) -> list[Entry]:
    """Return a dialog's own entries."""
    return [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]


def kinds(dialog: Dialog) -> list[str]:
    """Return the kinds of a dialog's own entries in order; of messages their roles."""
    return [entry.message.role.value if isinstance(entry, MessageEntry) else entry.kind for entry in entries(dialog)]


def attempts(dialog: Dialog) -> list[Mapping[str, Any]]:
    """Return what the log has of answers that never became messages."""
    return [one.data for one in entries(dialog) if isinstance(one, Custom) and one.custom_type == "palaver.attempt"]


def roles(dialog: Dialog) -> list[str]:
    """Return the roles of a dialog's messages in order."""
    return [message.role.value for message in dialog.messages]


def results(dialog: Dialog) -> list[str]:
    """Return the texts of a dialog's tool results in order."""
    return [block.text() for message in dialog.messages for block in message.tool_results()]


def sent(request: Request) -> list[tuple[str, Any]]:
    """Return the roles and contents of a request to chat completions."""
    return [(message["role"], message.get("content")) for message in request.body["messages"]]


def offered(request: Request) -> list[str]:
    """Return the names of the tools that a request declares."""
    return [tool["function"]["name"] for tool in request.body.get("tools", ())]


class Died(BaseException):
    """The process would be dead now."""


def die() -> None:
    """End the process, as far as a test can be one."""
    raise Died
