"""The prompt and the tools of an agent call, including the recall tools. Neither changes before the call ends."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

from palaver.agent.options import CallSettings
from palaver.agent.turn import TurnState
from palaver.context import Policy
from palaver.context.recall import RECALL_TOOLS
from palaver.memory import core_memory_tools
from palaver.prompts import Prompt, Runtime
from palaver.session import Dialog
from palaver.session.recall_tools import read_back, search_for
from palaver.tools import CallContext, Function, Toolbox
from palaver.tools.toolbox import without_clashes


def task_prompt(dialog: Dialog, turn: TurnState, settings: CallSettings) -> Prompt:
    """Return the prompt that governs the call from beginning to end.

    A turn that continues keeps the prompt it began with, which another process finds by its path. In a new turn, the newest prompt
    governs; after plain text, the agent's system prompt with its tools and parser, unless the options say otherwise.
    """
    top = dialog.top_prompt
    system: Prompt = settings.agent.system_prompt
    runtime: Runtime = settings.agent.runtime
    if turn.began >= 0 and turn.prompt:
        for known in (top, system):
            if known is not None and known.path == turn.prompt:
                return known
        if turn.prompt in runtime.prompts():
            return runtime.get_prompt(turn.prompt)
    return system if top is None or (top.is_temporary and settings.options.inherit_system_contract) else top


async def offered(prompt: Prompt, settings: CallSettings, stack: AsyncExitStack) -> Toolbox:
    """Return the tools of a call: the prompt's, its servers', the agent's, and the memory and recall tools.

    If two tools have one name, the first wins. Servers stay connected as long as the stack is open.

    Raises:
        NotFound: A reference matches nothing.
        InvalidInput: Two tools of a list have the same name.
    """
    functions: list[Function] = list(prompt.function_list)
    if prompt.mcp_servers_list:
        adapter = import_module("palaver.tools.mcp")  # needs an optional package
        for server in prompt.mcp_servers_list:
            functions += (await stack.enter_async_context(adapter.connect(server))).functions
    memory = () if settings.options.memory is None else core_memory_tools(settings.options.memory)
    # as a prompt of its own, so that references are resolved without the prompt's namespace
    own = Prompt(path=f"{prompt.path}#agent", prompt="", function_list=(*settings.agent.tools, *memory))
    kits: list[Iterable[Function]] = [own.resolve(settings.agent.runtime).function_list]
    kits += [_recall_tools()] if _recalls(prompt, settings) else []
    for kit in kits:
        names = {function.name for function in functions}
        functions += [function for function in kit if function.name not in names]
    return Toolbox(without_clashes(functions))


def _recalls(prompt: Prompt, settings: CallSettings) -> bool:
    """Return whether the call has the recall tools: by default, if a policy may leave something out.

    With a format it has none, because some models return no structured answer when tools are declared.
    """
    if settings.options.recall is not None:
        return settings.options.recall
    manager = settings.context_manager
    complete = manager.complete if isinstance(manager, Policy) else manager is None
    return (not complete or settings.budget is not None) and prompt.format is None


# --- recall --------------------------------------------------------------------------------------------------------------


def _recall_tools() -> tuple[Function, ...]:
    """Return `recall` and `search_history`, which read the dialog of the call."""

    def recall(context: CallContext, **args: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the arguments of the tool
        text, media = read_back(context.dialog.marks, args)
        return (text, *media)

    def search(context: CallContext, **args: Any) -> str:  # noqa: ANN401 - as above
        return search_for(context.dialog.marks, args)

    work = {"recall": recall, "search_history": search}
    return tuple(
        Function(
            spec.name,
            spec.description,
            dict(spec.parameters["properties"]),
            tuple(spec.parameters["required"]),
            function=work[spec.name],
            idempotent=True,
            allow_repeat=True,
        )
        for spec in RECALL_TOOLS
    )
