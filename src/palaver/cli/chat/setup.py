"""What a chat is made of: the dialog to resume, the agent that answers, tools of Python files and of MCP servers."""

from __future__ import annotations

import shlex
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from palaver.agent import Agent
from palaver.browsing.places import locate
from palaver.cli.chat.talk import MODEL
from palaver.cli.compact import summarizer_of
from palaver.context import policy as policy_of
from palaver.errors import InvalidInput, MissingFile, NotFound, reported
from palaver.prompts import verbatim_prompt
from palaver.session import Dialog
from palaver.store import Store
from palaver.tools import MCP, Function


def dialog_of(store: Store, name: str | None, spec: str) -> tuple[Dialog | None, str]:
    """Return the dialog that was named, or the newest of the session; None for a new session; and the model's string, from the command line or as recorded.

    Raises:
        InvalidInput: No model is named, or the name is that of an entry.
        Ambiguous: Several sessions have this name.
    """
    try:
        there = None if name is None else locate(store, name, only=True)
    except NotFound as missing:
        if missing.what != "session":
            raise
        there = None
    dialog = None if there is None else there.session.newest if there.whole else there.dialog
    spec = spec or str(dialog.session.record.metadata.get(MODEL, "") if dialog is not None else "")
    if not spec:
        raise InvalidInput("No model is named.", hint="Give --model, such as openai/gpt-5-mini.")
    return dialog, spec


def agent_of(
    store: Store, spec: str, system: str | None, policy: str, budget: int | None, summarizer: str | None
) -> Agent:
    """Return the agent. Its system prompt is not a template.

    Raises:
        InvalidInput: A string names no model.
        NotFound: There is no policy of this name.
        OSError: The file of the system prompt cannot be read.
    """
    text = system or ""
    if text.startswith("@"):
        text = Path(text[1:]).read_text("utf-8", "replace")
    return Agent(
        "assistant",
        verbatim_prompt("chat/system", text),
        spec,
        store=store,
        context_manager=policy_of(policy),
        budget=budget,
        max_interrupt_steps=0,
        summarizer=summarizer_of(summarizer) if summarizer else None,
    )


def server_of(number: int, spec: str) -> MCP:
    """Return the declaration of an MCP server: an address, or the command that starts it.

    Raises:
        InvalidInput: It is neither.
    """
    if spec.startswith(("http://", "https://")):
        return MCP(f"mcp{number}", spec)
    try:
        command, *arguments = shlex.split(spec)
    except ValueError as error:
        raise InvalidInput(f"--mcp {spec!r} is not a command.", hint="Quote it as for a shell.") from error
    return MCP(f"mcp{number}", command=command, args=tuple(arguments))


def tools_of(path: Path) -> tuple[Function, ...]:
    """Run a Python file, and return its tools in order, without those whose names begin with `_`.

    Raises:
        MissingFile: There is no such file.
        InvalidInput: It cannot be loaded, or has no tools.
    """
    spec = spec_from_file_location(path.stem, path.resolve())
    if not path.is_file():
        raise MissingFile(path)
    if spec is None or spec.loader is None or path.stem in sys.modules:
        raise InvalidInput(
            f"--tools {path} is not a Python file, or has the name of a loaded module.", hint="Rename it."
        )
    sys.path.insert(0, str(path.resolve().parent))  # the file may import others of its folder
    module = sys.modules[path.stem] = module_from_spec(spec)  # tools in processes of their own find it by its name
    with reported(f"{path} cannot be loaded", "Correct the file."):
        spec.loader.exec_module(module)
    functions = {
        id(value): value for name, value in vars(module).items() if isinstance(value, Function) and name[:1] != "_"
    }
    if not functions:
        raise InvalidInput(f"{path} has no tools.", hint="Put @tool (from palaver import tool) over its functions.")
    return tuple(functions.values())
