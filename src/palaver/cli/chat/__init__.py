"""palaver chat: talk to any model in the terminal, in a session that is kept."""

from __future__ import annotations

from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.chat.commands import COMMANDS
from palaver.cli.chat.loop import converse
from palaver.cli.chat.screen import Screen
from palaver.cli.chat.setup import agent_of, dialog_of, server_of, tools_of
from palaver.cli.chat.talk import Talk
from palaver.cli.options import BudgetOption, StoreOption, store_url
from palaver.folders import data_folder
from palaver.store.connect import open_for_user
from palaver.store.redacting import redacting
from palaver.tools import Toolbox
from palaver.tools.portal import entered

__all__ = ["run"]

_Text = str | None


def run(
    model: Annotated[_Text, typer.Option("--model", "-m", help="The model, such as openai/gpt-5-mini.")] = None,
    session: Annotated[
        _Text, typer.Option("--session", "-s", help="Resume a session or one of its dialogs, or name a new session.")
    ] = None,
    system: Annotated[_Text, typer.Option("--system", help="The system prompt of a new session, or @FILE.")] = None,
    tools: Annotated[
        list[Path] | None, typer.Option("--tools", metavar="FILE", help="Offer every @tool of a Python file.")
    ] = None,
    mcp: Annotated[
        list[str] | None, typer.Option("--mcp", metavar="SERVER", help="Offer an MCP server: its command or address.")
    ] = None,
    policy: Annotated[str, typer.Option("--policy", help="What shapes each request.")] = "palaver",
    budget: BudgetOption = None,
    summarizer: Annotated[_Text, typer.Option("--summarizer", help="A model that summarises what leaves.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run calls that need a decision without asking.")] = False,
    commands: Annotated[bool, typer.Option("--commands", help="In a pipe, obey lines that begin with /.")] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Keep and send no keys and tokens.")] = False,
    store: StoreOption = None,
) -> int:
    """Talk to a model. Everything is kept from the first message on; --session resumes it, also in the middle of a turn.

    In a pipe each line is a message, and answers go to standard output; commands and approvals need --commands. The exit code is
    that of the last message. Providers' clients read their keys from where they always do, such as OPENAI_API_KEY. /help lists the commands.
    """
    if not (model or session):
        raise typer.BadParameter("No model is named. Give --model, such as openai/gpt-5-mini.")
    screen = Screen(None if "memory:" in store_url(store) else data_folder() / "chat_history", COMMANDS)
    with ExitStack() as stack:
        source = stack.enter_context(closing(redacting(open_for_user(store_url(store)), redact)))
        functions = [function for path in tools or () for function in tools_of(path)]
        for number, spelled in enumerate(mcp or (), 1):
            connect = import_module("palaver.tools.mcp").connect  # it needs a package that few installations have
            functions += stack.enter_context(entered(connect(server_of(number, spelled)))).functions
        dialog, spec = dialog_of(source, session, model or "")
        agent = agent_of(source, spec, system, policy, budget, summarizer)
        agent.tools = tuple(Toolbox(functions))  # two tools of one name are refused
        talk = Talk(agent, dialog, session or "", spec, screen, yes=yes)
        return converse(talk, commands=commands or screen.terminal)
