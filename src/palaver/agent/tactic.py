"""Tactics: programs that call a group of agents to solve a task, and can be called themselves: by programs, by each other, by models."""

from __future__ import annotations

import inspect
import queue
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from anyio import to_thread

from palaver.agent.agent import Agent
from palaver.agent.call_session import AgentCallSession
from palaver.agent.config import Config, build_agents, load_config
from palaver.agent.invoking import Invoker, StreamHandler
from palaver.agent.settings import Settings
from palaver.agent.tactic_session import TacticCallSession
from palaver.agent.tactic_tool import ToolOfTactic
from palaver.errors import InvalidInput, NotFound
from palaver.prompts import Runtime, get_default_runtime
from palaver.session import Dialog
from palaver.store import Store
from palaver.tools.portal import run_sync

__all__ = ["Tactic", "build_tactic"]

Given = Config | str | Path | Mapping[str, Any]


class Tactic(ABC):
    """A program over a group of agents. Subclass it, name it and its agents, and write `call`.

    ::

        class Summarizer(Tactic):
            tactic_type = "summarizer"
            agent_group = ["assistant"]

            def call(self, task: str, **kwargs):
                agent = self.agents["assistant"]
                agent.open("summarize")
                agent.receive(task)
                return agent.respond().content


        Summarizer("agents.yaml")("Summarize this.")

    Each call has agents of its own, with no dialogs, and a trace of its own, so that calls may run side by side. A tactic that is held in
    an attribute is part of this one: what it does when it is called goes into the trace, too.

    Attributes:
        tactic_type: The name: in registries, configurations and traces.
        name: The same; either will do.
        agent_group: The agents that its configuration must have.
        config: The configuration.
        runtime: What names mean.
        agents: The agents by name: those of the call, inside one.
    """

    tactic_type: ClassVar[str] = ""
    name: ClassVar[str] = ""
    agent_group: ClassVar[Sequence[str]] = ()

    as_function = ToolOfTactic()
    """Gives the function under which a model calls the tactic, or one of its methods: `as_function("method")`."""

    def __init_subclass__(cls, *, runtime: Runtime | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - a class's own
        """Give a class its name under both words, and register it where it is asked for: `class Mine(Tactic, runtime=runtime)`."""
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("tactic_type") or vars(cls).get("name")
        if own:
            cls.tactic_type = cls.name = own
        if runtime is not None:
            runtime.register_tactic(cls)

    def __init__(
        self,
        config: Given | None = None,
        *,
        runtime: Runtime | None = None,
        llm_invoker: Invoker | None = None,
        store: Store | None = None,
        recorder: Callable[[TacticCallSession], None] | None = None,
    ) -> None:
        """Make it ready to be called.

        Args:
            config: What its agents are: anything that `load_config` reads; what the runtime has under its name when not given.
            runtime: What names mean; the default runtime when not given.
            llm_invoker: What asks the models, in place of what the configuration says.
            store: Where the agents' dialogs lie; in memory when not given.
            recorder: What is told of each call when it has ended, however it ended. What it raises ends the call.

        Raises:
            NotFound: There is no configuration.
            InvalidConfig: The configuration cannot be used, or lacks an agent of the group.
        """
        if isinstance(self.agent_group, str):
            raise InvalidInput(f"agent_group of {type(self).__name__} is a text, not a list of agents' names.")
        self.runtime = runtime or get_default_runtime()
        self.config = load_config(self.runtime.get_config(self.title()) if config is None else config)
        self._llm_invoker, self._store, self._recorder = llm_invoker, store, recorder
        self._agents: dict[str, Agent] | None = None
        self._session: TacticCallSession | None = None
        self._above: tuple[TacticCallSession, str] | None = None
        for name in self.agent_group:
            self._has(name)

    def _has(self, name: str) -> None:
        try:
            self.config[name]
        except NotFound as error:
            what = f"the tactic {self.title()!r} needs an agent {name!r}."
            raise self.config.where.fault(("agent_configs",), what, error.close, error.hint) from error

    @classmethod
    def title(cls) -> str:
        """Give its name; that of the class when it has none."""
        return cls.tactic_type or cls.name or cls.__name__

    @abstractmethod
    def call(self, task: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a tactic's own
        """Solve a task with `self.agents`; may be written with `async def`."""

    # --- what it has --------------------------------------------------------------------------------------------------------

    @property
    def agents(self) -> dict[str, Agent]:
        """The agents of the group by name; of the whole configuration when the tactic names no group."""
        if self._agents is None:
            self._agents = self._built(None)
        return self._agents

    @property
    def session(self) -> TacticCallSession | None:
        """The trace of the call, inside one; None outside."""
        return self._session

    @property
    def sub_tactics(self) -> dict[str, Tactic]:
        """The tactics it holds, by attribute."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tactic)}

    def _built(self, session: TacticCallSession | None) -> dict[str, Agent]:
        kind = Agent if session is None else partial(_Traced, session)
        return build_agents(
            self.config,
            self.agent_group or None,
            runtime=self.runtime,
            llm_invoker=self._llm_invoker,
            store=self._store,
            kind=kind,
        )

    # --- calling it ---------------------------------------------------------------------------------------------------------

    def __call__(self, task: Any, *, return_session: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401 - a tactic's own
        """Call it.

        Args:
            task: The task: a text, a Pydantic model, whatever `call` takes.
            return_session: Whether to give the trace in place of the result.
            kwargs: What `call` takes besides.

        Raises:
            Exception: Whatever `call` raises; the exception has the trace as `tactic_session`.
        """
        working, session = self._begun()
        return self._ended(session, partial(working._run, task, kwargs), whole=return_session)  # noqa: SLF001 - a copy of itself

    async def acall(self, task: Any, *, return_session: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it gives
        """Call it without standing in the way of others: a plain `call` runs in a thread, one written with `async def` right here."""
        working, session = self._begun()
        if not inspect.iscoroutinefunction(self.call):
            ended = partial(self._ended, session, partial(working._run, task, kwargs), whole=return_session)  # noqa: SLF001 - see above
            return await to_thread.run_sync(ended)
        try:
            result = await working.call(task, **kwargs)
        except BaseException as error:  # an interrupt, too, is how it ended
            self._failed(session, error)
            raise
        return self._ended(session, lambda: result, whole=return_session)

    def bcall(
        self,
        tasks: Iterable[Any],
        *,
        max_workers: int | None = None,
        fail_fast: bool = True,
        return_sessions: bool = False,
        **kwargs: Any,  # noqa: ANN401 - what `call` takes
    ) -> list[Any]:
        """Call it with many tasks, several at a time, and give the results in the order of the tasks.

        Args:
            tasks: The tasks.
            max_workers: How many run at a time; what the configuration says when not given.
            fail_fast: Whether the first failure ends the batch: tasks that have not begun never begin, and it is raised once those that
                have are over. Otherwise an exception stands in the place of its result.
            return_sessions: Whether to give traces in place of results.
            kwargs: What `call` takes besides.
        """
        with self._pool(max_workers) as pool:
            futures = [pool.submit(self, task, return_session=return_sessions, **kwargs) for task in tasks]
            try:
                return [_outcome(future, fail_fast=fail_fast) for future in futures]
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    async def ccall(
        self,
        tasks: Iterable[Any],
        *,
        max_workers: int | None = None,
        fail_fast: bool = True,
        return_sessions: bool = False,
        **kwargs: Any,  # noqa: ANN401 - what `call` takes
    ) -> AsyncIterator[tuple[int, Any]]:
        """Call it with many tasks, several at a time, and give each result with the number of its task as soon as it is there.

        Whoever stops reading stops the tasks that have not begun. Arguments as for `bcall`.
        """
        pool = self._pool(max_workers)
        done: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()
        try:
            count = 0
            for index, task in enumerate(tasks):
                future = pool.submit(self, task, return_session=return_sessions, **kwargs)
                future.add_done_callback(lambda ended, index=index: done.put((index, ended)))  # type: ignore[misc]
                count += 1
            for _ in range(count):
                index, future = await to_thread.run_sync(done.get, abandon_on_cancel=True)
                yield index, _outcome(future, fail_fast=fail_fast)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, max_workers: int | None) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers or self.config.max_workers, thread_name_prefix=self.title())

    # --- one call -----------------------------------------------------------------------------------------------------------

    def _begun(self) -> tuple[Tactic, TacticCallSession]:
        """Give a copy for one call: with agents and a trace of its own, as are those of the tactics it holds."""
        key = self.runtime.tactic_key(type(self)) or self.title()
        session = TacticCallSession(tactic_name=self.title(), tactic_path=key, state="running")
        if self._above is not None:
            above, name = self._above
            above.record_sub_tactic_call(name, session)
        working = copy(self)
        working._session = session  # noqa: SLF001 - a copy of itself
        working._agents = working._built(session)  # noqa: SLF001 - the same
        for name, held in self.sub_tactics.items():
            part = copy(held)
            part._above = (session, name)  # noqa: SLF001 - one of its own kind
            setattr(working, name, part)
        return working, session

    def _run(self, task: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it takes and gives
        if inspect.iscoroutinefunction(self.call):
            return run_sync(partial(self.call, task, **kwargs))
        return self.call(task, **kwargs)

    def _ended(self, session: TacticCallSession, run: Callable[[], Any], *, whole: bool) -> Any:  # noqa: ANN401 - see above
        try:
            result = run()
        except BaseException as error:  # as above
            self._failed(session, error)
            raise
        session.success(result)
        self._recorded(session)
        return session if whole else result

    def _failed(self, session: TacticCallSession, error: BaseException) -> None:
        session.failure(error)
        with suppress(AttributeError):  # an exception without room for it
            error.tactic_session = session  # type: ignore[attr-defined]
        self._recorded(session)

    def _recorded(self, session: TacticCallSession) -> None:
        if self._recorder is not None:
            self._recorder(session)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title()} agents={list(self.agent_group)}>"


class _Traced(Agent):
    """An agent whose every call goes into the trace of a tactic's call."""

    def __init__(self, trace: TacticCallSession, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - an agent's own
        super().__init__(*args, **kwargs)
        self._trace = trace

    async def _answer(
        self, dialog: Dialog, session: AgentCallSession, settings: Settings, handler: StreamHandler | None
    ) -> AgentCallSession:
        self._trace.record_agent_call(self.name, session)
        return await super()._answer(dialog, session, settings, handler)


def _outcome(future: Future[Any], *, fail_fast: bool) -> Any:  # noqa: ANN401 - a result, or an exception in its place
    error = future.exception()
    if error is None:
        return future.result()
    if fail_fast or not isinstance(error, Exception):
        raise error
    return error


def build_tactic(
    config: Given,
    name: str = "",
    *,
    runtime: Runtime | None = None,
    **options: Any,  # noqa: ANN401 - what a tactic takes
) -> Tactic:
    """Make the tactic that a configuration is for.

    Args:
        config: The configuration.
        name: The tactic's name; what the configuration has as `tactic_type` when not given.
        runtime: Where the tactic is registered.
        options: What a tactic takes besides.

    Raises:
        UnknownTactic: There is none of this name.
        InvalidConfig: The configuration cannot be used, or names no tactic.
    """
    found = load_config(config)
    known = runtime or get_default_runtime()
    title = name or found.tactic_type
    if not title:
        raise found.where.fault((), "it names no tactic_type.")
    tactic = known.get_tactic(title)
    if isinstance(tactic, Tactic):
        return tactic
    made: Tactic = tactic(found, runtime=known, **options)
    return made
