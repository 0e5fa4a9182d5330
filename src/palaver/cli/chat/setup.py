"""From the words of the command to a chat that can begin: model, prompt, tools, servers, session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from palaver.agent import Agent, AutoCompact, ProviderInvoker, build_agent, load_config
from palaver.cli.chat.compacting import POLICY
from palaver.cli.chat.servers import Servers, declared
from palaver.cli.chat.talk import MODEL, Talk
from palaver.cli.chat.tool_files import tools_of
from palaver.cli.chat.wanted import Wanted
from palaver.cli.compacting import summarizer_of
from palaver.context import policy
from palaver.context.triggers import Tokens
from palaver.errors import InvalidInput, NotFound, UnknownSession
from palaver.models import ScriptedProvider, connect_model
from palaver.models.connect import PREFIXES
from palaver.models.retry import Retry
from palaver.prompts import Prompt, get_default_runtime, temporary_prompt
from palaver.session import Session
from palaver.session.memory import SubjectMemory
from palaver.store import Store
from palaver.tools import MCP, Function, Toolbox

__all__ = ["prepared"]

_AGENT = "assistant"
"""The name of the agent where no configuration gives one."""

_COMPARED = 1000
"""How many of the newest sessions' names are compared with a new one."""

_ID = re.compile(r"(?=.*[0-9])[0-9a-f]{6,32}")
"""What looks like an id or the first digits of one: no session is made of that name."""


@contextmanager
def prepared(wanted: Wanted, store: Store, tell: Callable[[str], object]) -> Iterator[Talk]:
    """Give the chat; its servers are left at the end of the block. The session is made with the first message.

    Args:
        wanted: What the words of the command ask for.
        store: Where everything lies.
        tell: Is told what is worth knowing before the first word, when all else is in order.

    Raises:
        PalaverError: Something that was named is not there, or cannot be used.
    """
    notes: list[str] = []
    session = _session(wanted, store, notes)
    _check_words(wanted)
    functions = tuple(each for path in wanted.tools or () for each in tools_of(path))
    if wanted.config is None:
        agent, servers = _plain(wanted, session, store)
    else:
        agent, servers = _configured(wanted, wanted.config, store)
    spec = _have_answer(wanted, session, agent)
    _shape(wanted, agent)
    subject = _subject(wanted, session, agent, notes)
    talk = Talk(agent, store, spec=spec, name=wanted.session or "", workdir=str(Path.cwd()), subject=subject)
    connected = Servers((*servers, *declared(wanted.mcp or ())))
    try:
        connected.connect()
        agent.tools = _together((*agent.tools, *functions, *connected.functions))
        if session is not None:
            talk.take_up(session)
        for note in notes:
            tell(note)
        yield talk
    finally:
        connected.close()


def _check_words(wanted: Wanted) -> None:
    if wanted.agent is not None and wanted.config is None:
        raise InvalidInput("--agent needs --config: the file in which the agent is described.")
    if wanted.system is not None and wanted.config is not None:
        raise InvalidInput("--system and --config contradict each other: an agent has its own system prompt.")


def _together(functions: Sequence[Function]) -> tuple[Function, ...]:
    """Insist that no two tools have one name, before anything is said."""
    return tuple(Toolbox(functions))


# --- who answers --------------------------------------------------------------------------------------------------------------


def _plain(wanted: Wanted, session: Session | None, store: Store) -> tuple[Agent, tuple[MCP, ...]]:
    """Make an agent of what the command says: a system prompt that is no template, or none."""
    text = _system_text(wanted.system)
    if session is not None and text:
        raise InvalidInput(
            f"The session {session.name!r} has its system prompt already.", hint="--system is for a new session."
        )
    prompt = temporary_prompt(text) if text else Prompt(path="chat/none", prompt="")
    nobody = ProviderInvoker(ScriptedProvider(()))  # until _have_answer says who
    return Agent(_AGENT, prompt, "", nobody, store=store, max_interrupt_steps=0), ()


def _system_text(given: str | None) -> str:
    if given is None or not given.startswith("@"):
        return given or ""
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise InvalidInput(f"--system {given}: the file cannot be read: {why}.") from error


def _configured(wanted: Wanted, path: Path, store: Store) -> tuple[Agent, tuple[MCP, ...]]:
    """Build an agent of a configuration; its servers are connected to by the chat, once, and not by each of its turns."""
    config = load_config(path)
    names = tuple(config)
    if wanted.agent is None and len(names) != 1:
        raise InvalidInput(f"{path} describes {len(names)} agents.", hint=f"Choose with --agent: {', '.join(names)}.")
    invoker = ProviderInvoker(ScriptedProvider(())) if wanted.model else None
    agent = build_agent(
        config[wanted.agent or names[0]], runtime=get_default_runtime(), llm_invoker=invoker, store=store
    )
    servers = agent.system_prompt.mcp_servers_list
    if servers:
        prompt = agent.system_prompt
        agent.system_prompt = prompt.extend(path=prompt.path, mcp_servers_list=())
    return agent, tuple(MCP.from_dict(one) if not isinstance(one, MCP) else one for one in servers)


def _have_answer(wanted: Wanted, session: Session | None, agent: Agent) -> str:
    """Have the model answer that the command names, or that the session had; the configuration's stays where neither says."""
    recorded = "" if session is None else str(session.record.metadata.get(MODEL) or "")
    spec = wanted.model or ("" if wanted.config is not None else recorded)
    if not spec:
        if wanted.config is not None:
            return ""
        raise InvalidInput(
            "Which model is to answer?", hint=f"Give --model, spelt with one of {', '.join(PREFIXES)} before it."
        )
    provider, model = connect_model(spec)
    agent.llm_invoker = ProviderInvoker(provider, Retry())
    agent.model = model
    return spec


def _shape(wanted: Wanted, agent: Agent) -> None:
    """Shape what the model sees as the command says, over what the configuration says."""
    if wanted.policy is not None:
        agent.context_manager = policy(wanted.policy, agent.model, runtime=agent.runtime)
        if agent.compact is not None and agent.context_manager is not None:
            agent.compact = replace(agent.compact, policy=agent.context_manager)
    if wanted.budget is not None:
        agent.budget = wanted.budget
    if wanted.summarizer is not None:
        triggers = None if wanted.budget is None else (Tokens(limit=max(1, wanted.budget * 8 // 10)),)
        how = agent.compact or AutoCompact(policy=agent.context_manager or POLICY, triggers=triggers)
        agent.compact = replace(how, summarizer=summarizer_of(wanted.summarizer, agent.store))


def _subject(wanted: Wanted, session: Session | None, agent: Agent, notes: list[str]) -> str:
    """Give whose data the session is; where nobody says so, what an agent remembers stays in it, and that is told.

    Raises:
        InvalidInput: The session is somebody else's.
    """
    has = "" if session is None else session.record.subject
    if session is not None and wanted.subject not in {None, has}:
        whose = f"{has}'s data" if has else "nobody's data"
        raise InvalidInput(f"The session {session.name!r} is {whose}.", hint="--subject is for a new session.")
    subject = wanted.subject or has
    if isinstance(agent.memory, SubjectMemory) and not subject:
        notes.append("What the agent remembers stays in this session: --subject WHO has it remember WHO in all of his.")
    return subject


# --- which session --------------------------------------------------------------------------------------------------------------


def _session(wanted: Wanted, store: Store, notes: list[str]) -> Session | None:
    """Find the session that is named. A name that no session has is that of the new one, and it is said so; what looks like an id is not.

    Raises:
        UnknownSession: It looks like an id, and there is none.
        Ambiguous: Several ids begin with these digits.
    """
    name = wanted.session
    if name is None:
        return None
    try:
        found = Session.open(name, store, runtime=get_default_runtime())
    except UnknownSession:
        if _ID.fullmatch(name):
            raise
        names = sorted({record.name for record in store.sessions(limit=_COMPARED)})
        near = get_close_matches(name, names, n=1)
        also = f" (There is one called {near[0]!r}.)" if near else ""
        notes.append(f"A new session, called {name!r}.{also}")
        return None
    if not store.nodes(found.session_id):
        raise NotFound(name, what="session with a dialog")
    return found
