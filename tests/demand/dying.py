"""What the processes of the scenarios do that die: each opens a store of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from palaver import (
    Agent,
    Function,
    Prompt,
    ProviderInvoker,
    Request,
    ScriptedProvider,
    Session,
    Store,
    open_store,
    tool,
)
from palaver.testing.kills import dying_store, kill_this_process
from tests.forking import serve

__all__ = ["STEPS", "cashier", "trio", "walker"]

STEPS = 30
"""Calls of a long turn."""


def _done(request: Request) -> bool:
    return any(message["role"] == "tool" for message in request.body["messages"])


def cashier(store: Store, effects: Path, *, dies: bool = False) -> tuple[Agent, ScriptedProvider]:
    """Return an agent that charges a card once, and says so; its tool writes a line and, if told so, takes the process with it."""

    @tool
    def charge(amount: int) -> str:
        """Charge the card."""
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")
        if dies:
            kill_this_process()
        return f"charged {amount}"

    def answer(request: Request) -> object:
        if _done(request):
            return "That is done."
        return {"text": "I charge.", "tool_calls": [{"name": "charge", "arguments": {"amount": 5}, "id": "c1"}]}

    return _agent(store, answer, charge)


def trio(
    store: Store, hang: Callable[[], Any], listener: Callable[[object], None] | None = None
) -> tuple[Agent, ScriptedProvider]:
    """Return an agent whose model makes three calls at once, of which the second hangs."""

    @tool
    async def quick(number: int) -> str:
        """Return at once."""
        return f"quick {number}"

    @tool(name="slow")
    async def slow() -> str:
        """Hang."""
        await hang()
        return "never"

    def answer(request: Request) -> object:
        if _done(request):
            return "Two of three."
        calls: tuple[tuple[str, dict[str, int]], ...] = (
            ("quick", {"number": 1}),
            ("slow", {}),
            ("quick", {"number": 3}),
        )
        named = [{"name": name, "arguments": given, "id": f"c{n}"} for n, (name, given) in enumerate(calls, 1)]
        return {"text": "All at once.", "tool_calls": named}

    return _agent(store, answer, quick, slow, stream_handler=listener)


def walker(store: Store, effects: Path, dies_at: int = -1) -> Agent:
    """Return an agent whose turn has thirty calls, now and then two at once; its process dies within its effect numbered `dies_at`."""
    numbers = count(1)

    def note(what: str, number: int) -> str:
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{what} {number}\n")
        if next(numbers) == dies_at:
            kill_this_process()
        return f"{what} {number}"

    @tool
    def write(number: int) -> str:
        """Write: doing it twice is doing it twice."""
        return note("write", number)

    @tool(idempotent=True)
    def look(number: int) -> str:
        """Look: doing it twice is doing it once."""
        return note("look", number)

    def answer(
        request: Request,
    ) -> object:  # from what it is asked, as a model does: it does not matter which process asks
        number = 1 + sum(message["role"] == "tool" for message in request.body["messages"])
        if number > STEPS:
            return "All done."
        calls = [{"name": "write" if number % 3 else "look", "arguments": {"number": number}}]
        if number % 5 == 0 and number < STEPS:
            calls.append({"name": "write", "arguments": {"number": number + 1}})
        return {"text": f"Step {number}.", "tool_calls": calls}

    return _agent(store, answer, write, look, max_interrupt_steps=0)[0]


def _agent(
    store: Store,
    answer: Callable[[Request], object],
    *tools: Function,
    **options: Any,  # noqa: ANN401 - what an agent takes
) -> tuple[Agent, ScriptedProvider]:
    prompt = Prompt(path="demand/agent", prompt="You do as you are told.", function_list=list(tools))
    provider = ScriptedProvider(answer)
    return Agent("agent", prompt, "gpt-5.2", ProviderInvoker(provider), store=store, **options), provider


def turn(address: str, name: str, effects: str, writes: int = -1, *, dies: bool = False) -> None:
    """Answer once; die behind a write of entries, or within the tool."""
    store = dying_store(open_store(address), writes)
    agent, _ = cashier(store, Path(effects), dies=dies)
    agent.open("main", session_name=name, resume=True, first="Charge 5.").respond()


def batch(address: str, name: str) -> None:
    """Make three calls at once; the second takes the process with it when the two others are in the store."""
    store = open_store(address)

    async def hang() -> None:
        while True:
            dialog = Session.open(store, name).root
            if sum(message.role == "tool" for message in dialog.messages) == 2:
                kill_this_process()
            await anyio.lowlevel.checkpoint()

    agent, _ = trio(store, hang)
    agent.open("main", session_name=name).receive("go")
    agent.respond()


def steps(address: str, effects: str, writes: int = -1, dies_at: int = -1) -> None:
    """Continue a long turn; die behind a write of entries, or within an effect."""
    walker(dying_store(open_store(address), writes), Path(effects), dies_at).resume("long").respond()


if __name__ == "__main__":
    serve(turn, batch, steps)
