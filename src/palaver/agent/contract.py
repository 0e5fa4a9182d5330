"""The prompt and the tools of an agent call, including the recall tools. Neither changes before the call ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any, Protocol

from palaver.agent.run import CallSettings
from palaver.agent.turn import TurnState
from palaver.context.policy import Policy
from palaver.context.recall import RECALL_TOOLS, Said, recalled, searched
from palaver.errors import NotFound
from palaver.log import Entry, Handle, MessageEntry, Span
from palaver.messages import AudioContent, Content, ImageContent, ToolResultContent
from palaver.prompts import Prompt, Runtime
from palaver.session import Dialog
from palaver.session.memory import core_memory_tools
from palaver.session.recall import recall, searchable
from palaver.tools import CallContext, Function, Toolbox
from palaver.tools.toolbox import without_clashes

__all__ = ["offered", "task_prompt"]

_HITS = 200
"""The maximum number of messages that one search pages through."""


class _Prompted(Protocol):
    """The parts of an agent that are needed here: a system prompt and a runtime."""

    system_prompt: Prompt
    runtime: Runtime


def task_prompt(dialog: Dialog, turn: TurnState, agent: _Prompted, *, inherit: bool) -> Prompt:
    """Return the prompt that governs the call from beginning to end (R44).

    A turn that continues keeps the prompt it began with, which another process finds by its path. In a new turn, the newest prompt
    governs; after plain text, the system prompt with its tools and parser (C12).

    Args:
        dialog: The dialog.
        turn: The state of its turn.
        agent: The agent with the system prompt.
        inherit: Whether the system prompt is in force after plain text.
    """
    top = dialog.top_prompt
    if turn.began >= 0 and turn.prompt:
        for known in (top, agent.system_prompt):
            if known is not None and known.path == turn.prompt:
                return known
        if turn.prompt in agent.runtime.prompts():
            return agent.runtime.get_prompt(turn.prompt)
    return agent.system_prompt if top is None or (top.is_temporary and inherit) else top


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
    memory = () if settings.memory is None else core_memory_tools(settings.memory)
    own = Prompt(path=f"{prompt.path}#agent", prompt="", function_list=(*settings.agent.tools, *memory))
    kits: list[Iterable[Function]] = [own.resolve(settings.agent.runtime).function_list]
    kits += [_recall_tools()] if _recalls(prompt, settings) else []
    for kit in kits:
        taken = {each.name for each in functions}
        functions += [each for each in kit if each.name not in taken]
    return Toolbox(without_clashes(functions))


def _recalls(prompt: Prompt, settings: CallSettings) -> bool:
    """Return whether the call has the recall tools: by default, if a policy may leave something out.

    With a format it has none, because some models return no structured answer when tools are declared.
    """
    if settings.recall is not None:
        return settings.recall
    manager = settings.context_manager
    complete = manager.complete if isinstance(manager, Policy) else manager is None
    return (not complete or settings.budget is not None) and prompt.format is None


# --- recall --------------------------------------------------------------------------------------------------------------


def _recall_tools() -> tuple[Function, ...]:
    """Return `recall` and `search_history`, which read the dialog of the call."""
    work = {"recall": _recall, "search_history": _search}
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


def _recall(context: CallContext, **args: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the arguments of the tool
    """Return the content of a handle, with the images and sounds of a single block."""
    dialog: Dialog = context.dialog
    media: list[Content] = []

    def read(place: Handle | Span) -> Iterator[Said]:
        single = isinstance(place, Handle)
        handles = (
            (place,)
            if isinstance(place, Handle)
            else (Handle(place.dialog, seq) for seq in range(place.start, place.stop))
        )
        for handle in handles:
            try:
                found = recall(dialog.store, dialog.session_id, handle)
            except NotFound:
                if single:
                    raise
                return
            if Handle(*handle[:2]) in refused or handle in refused:
                yield Said(handle, "palaver", "(A provider refused this; it is set aside.)")
            elif isinstance(found, Entry):
                yield from _said(dialog, handle, found)
            else:
                yield Said(handle, found.type, _text(found))
                media.extend(_media(found))

    refused = frozenset(dialog.marks.quarantined)
    return (recalled(args, read), *media)


def _said(dialog: Dialog, handle: Handle, entry: Entry) -> Iterator[Said]:
    if isinstance(entry, MessageEntry):
        for index, block in enumerate(entry.message.contents):
            yield Said(Handle(*handle[:2], index), entry.message.speaker.value, _text(block))
    elif text := _whole(dialog, handle):
        yield Said(handle, entry.kind, text)


def _text(block: Content) -> str:
    if isinstance(block, ToolResultContent):
        return block.text()
    return str(getattr(block, "content", "") or getattr(block, "arguments", "") or f"({block.type})")


def _media(block: Content) -> Iterator[Content]:
    parts = block.content if isinstance(block, ToolResultContent) and not isinstance(block.content, str) else (block,)
    yield from (part for part in parts if isinstance(part, ImageContent | AudioContent))


def _search(context: CallContext, **args: Any) -> str:  # noqa: ANN401 - as above
    """Return the messages of the session that contain all words."""
    dialog: Dialog = context.dialog
    query = str(args.get("query", ""))
    dialog.store.index(searchable, session_id=dialog.session_id)
    hits = dialog.store.search(query, session_id=dialog.session_id, limit=_HITS)
    texts = (Said(hit.handle, hit.role or hit.kind, _whole(dialog, hit.handle)) for hit in hits)
    return searched(args, texts)


def _whole(dialog: Dialog, handle: Handle) -> str:
    store = dialog.store
    return searchable("", store.body(handle.dialog, handle.seq))
