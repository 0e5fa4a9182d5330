"""The program of the kill sweep: a turn of many steps over a store, run again until it is answered.

The model is a function of what it is asked, as a real one is: which step comes next is read off the request, so that it does not matter
which process asks. What the tools do is counted in a file, a line an effect.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from palaver import Prompt, SqliteStore, Store
from palaver.agent import Agent, ProviderInvoker
from palaver.errors import ParseError
from palaver.models import ScriptedProvider
from palaver.tools import tool
from palaver.wire import Request
from tests.forking import serve
from tests.kills import dying_store, kill_this_process

STEPS = 30
NAME = "sweep"
_LOOKS_AGAIN = 3
_DOES_TWO = 5


def strict(text: str) -> dict[str, Any]:
    """Take an answer that begins with the word; any other has to be repaired."""
    if not text.startswith("Done"):
        raise ParseError("The answer does not begin with Done.", content=text)
    return {"said": text}


def answer(request: Request) -> object:
    """Return the next step: it depends on how many results there are, and whether the last answer was refused."""
    messages = request.body["messages"]
    results = sum(message["role"] == "tool" for message in messages)
    if results >= STEPS:
        refused = "does not begin with Done" in str(messages[-1]["content"])
        return "Done: everything." if refused else "That is all."
    number = results + 1
    calls = [{"name": "write_line", "arguments": {"number": number}}]
    if number % _LOOKS_AGAIN == 0:
        calls = [{"name": "look", "arguments": {"number": number}}]
    if number % _DOES_TWO == 0 and number < STEPS:
        calls.append({"name": "write_line", "arguments": {"number": number + 1}})
    return {"text": f"Step {number}.", "tool_calls": calls}


def agent_of(store: Store, effects: Path, dies_at: int = -1) -> Agent:
    """Return the agent; its tools note what they do, and the process dies in the middle of the effect numbered `dies_at`."""

    def note(what: str, number: int) -> str:
        with effects.open("a", encoding="utf-8") as file:
            file.write(json.dumps([what, number]) + "\n")
        if len(effects.read_text(encoding="utf-8").splitlines()) == dies_at:
            kill_this_process()
        return f"{what} {number}"

    @tool
    def write_line(number: int) -> str:
        """Write a line: doing it twice is doing it twice."""
        return note("write", number)

    @tool(idempotent=True)
    def look(number: int) -> str:
        """Look: doing it twice is doing it once."""
        return note("look", number)

    prompt = Prompt(path="sweep/system", prompt="Work.", function_list=[write_line, look], parser=strict)
    invoker = ProviderInvoker(ScriptedProvider(answer))
    return Agent("sweeper", prompt, "gpt-4o-mini", invoker, store=store, max_interrupt_steps=0)


def begin(store: Store, effects: Path) -> None:
    """Make the session and say what is to be done."""
    agent_of(store, effects).open("work", session_name=NAME).receive("Do all the steps.")


def go_on(store: Store, effects: Path, dies_at: int = -1) -> str:
    """Take the session up and answer, or go on answering."""
    agent = agent_of(store, effects, dies_at).resume(NAME)
    return agent.respond().text_content()


def answered(path: str, effects: str, writes: int = -1, dies_at: int = -1) -> None:
    """Answer in the session of a store, and be killed behind a write, or within an effect."""
    with closing(SqliteStore(Path(path), create=False)) as store:
        go_on(dying_store(store, writes), Path(effects), dies_at)


if __name__ == "__main__":
    serve(answered)
