"""What governs an agent call: the prompt in force when it begins, and the tools it offers. Neither changes before the call ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from palaver.agent.turn import Turn
from palaver.errors import NotFound
from palaver.prompts import Prompt, Runtime
from palaver.session import Dialog
from palaver.tools import Function, Toolbox
from palaver.tools.toolbox import without_clashes

__all__ = ["offered", "task_prompt"]


def task_prompt(dialog: Dialog, turn: Turn, system: Prompt, *, inherit: bool) -> Prompt:
    """Give the prompt that governs the call.

    A turn that goes on is governed by the prompt it began with, which another process finds by its path. A new one is governed by what
    was put last; where that was mere text, by the agent's own prompt, whose tools and parser the text is an answer to.

    Args:
        dialog: The dialog.
        turn: Where its turn stands.
        system: The agent's own prompt.
        inherit: Whether text leaves the agent's own prompt in force.
    """
    top = dialog.top_prompt
    if turn.began >= 0 and turn.prompt:
        for known in (top, system):
            if known is not None and known.path == turn.prompt:
                return known
        try:
            return dialog.runtime.get_prompt(turn.prompt)
        except NotFound:  # a prompt that no process registered: what the dialog has now stands in for it
            pass
    if top is None or (top.is_temporary and inherit):
        return system
    return top


@asynccontextmanager
async def offered(
    prompt: Prompt, runtime: Runtime, own: Iterable[Any], kit: Iterable[Function] = ()
) -> AsyncIterator[tuple[Prompt, Toolbox]]:
    """Give the prompt with its references resolved, and all tools of the call; servers are connected to for as long as it lasts.

    Args:
        prompt: The prompt; its tools stand for the agent's of the same name.
        runtime: Where references lead.
        own: The agent's tools.
        kit: Tools that are there besides, as far as nobody brings one of the same name.

    Raises:
        UnknownTool: A reference leads nowhere.
        InvalidInput: Two tools have the same name.
    """
    resolved = prompt.resolve(runtime)
    functions: list[Function] = list(resolved.function_list)
    mine = Prompt(path=f"{prompt.path}#agent", prompt="", function_list=tuple(own)).resolve(runtime)
    known = {each.name for each in functions}
    functions += [each for each in mine.function_list if each.name not in known]
    async with AsyncExitStack() as stack:
        if prompt.mcp_servers_list:
            functions += await _connected(stack, prompt)
        taken = {each.name for each in functions}
        functions += [each for each in kit if each.name not in taken]
        yield resolved, Toolbox(without_clashes(functions))


async def _connected(stack: AsyncExitStack, prompt: Prompt) -> list[Function]:
    """Connect to the prompt's servers, and give their tools in the order of the servers."""
    found: list[Function] = []
    adapter = import_module("palaver.tools.mcp")  # it needs a package that few installations have
    for server in prompt.mcp_servers_list:
        session = await stack.enter_async_context(adapter.connect(server))
        found.extend(session.functions)
    return found
