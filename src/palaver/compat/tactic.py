"""Tactics: programs that solve a task with a group of agents. Programs, models and other tactics can call them."""

from __future__ import annotations

import inspect
import queue
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from difflib import get_close_matches
from functools import partial
from typing import Any, ClassVar, get_type_hints

from anyio import to_thread

from palaver.agent.agent import Agent
from palaver.agent.invoking import Invoker
from palaver.compat.building import build_agents
from palaver.compat.config import Given, load_config
from palaver.compat.trace import TacticCallSession
from palaver.errors import InvalidInput, NotFound
from palaver.prompts import Runtime, get_default_runtime
from palaver.store.protocol import Store
from palaver.tools import Function
from palaver.tools.portal import run_sync

__all__ = ["Tactic", "build_tactic"]

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")


class _AsFunction:
    """Builds a tactic's functions, from an object or from a class. A class is instantiated when the function is first called."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Function]:  # noqa: ANN401 - a tactic and its class
        return partial(_function, owner, instance)


class Tactic(ABC):
    """A program that uses a group of agents. Subclass it, name it and its agents, and write `call`.

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

    Each call has its own agents and its own trace, so calls can run in parallel. A tactic in an attribute is a sub-tactic: its
    calls are part of the trace.

    Attributes:
        tactic_type: The name in registries, configurations and traces.
        name: An alias of `tactic_type`; set either.
        agent_group: The agents that its configuration must have.
        as_function: Returns the function with which a model calls the tactic, or one of its methods: `as_function("method")`.
        config: The configuration.
        runtime: Resolves names.
    """

    tactic_type: ClassVar[str] = ""
    name: ClassVar[str] = ""
    agent_group: ClassVar[Sequence[str]] = ()
    as_function = _AsFunction()

    def __init_subclass__(cls, *, runtime: Runtime | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - a class's own
        """Set both names of a class, and register it if asked to: `class Mine(Tactic, runtime=runtime)`."""
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
        """Read the configuration.

        Args:
            config: The agents' configuration, in any form that `load_config` reads. Default: the runtime's configuration of this name.
            runtime: Resolves names. Default: the default runtime.
            llm_invoker: Sends requests to the models, instead of the configured invokers.
            store: The store of the agents' dialogs. Default: in memory.
            recorder: Called with the trace of each call after it ends, with or without an error.

        Raises:
            NotFound: There is no configuration.
            InvalidConfig: The configuration cannot be used, or lacks an agent of the group.
        """
        if isinstance(self.agent_group, str):
            raise InvalidInput(
                f"agent_group of {type(self).__name__} is a string.", hint="Set a list of agents' names."
            )
        self.runtime = runtime or get_default_runtime()
        self.config = load_config(self.runtime.get_config(self.title()) if config is None else config)
        self._llm_invoker, self._store, self._recorder = llm_invoker, store, recorder
        self._agents: dict[str, Agent] | None = None
        self._session: TacticCallSession | None = None
        self._above: tuple[TacticCallSession, str] | None = None
        for name in self.agent_group:
            if name not in self.config:
                near = get_close_matches(name, self.config)
                raise self.config.place.fault(
                    ("agent_configs",), f"the tactic {self.title()!r} needs an agent {name!r}.", near
                )

    @classmethod
    def title(cls) -> str:
        """Return its name, or else the name of its class."""
        return cls.tactic_type or cls.name or cls.__name__

    @abstractmethod
    def call(self, task: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a tactic's own
        """Solve a task with `self.agents`. This may be an `async def`."""

    @property
    def agents(self) -> dict[str, Agent]:
        """The agents of the group by name; without a group, of the whole configuration. Inside a call, the call's own agents."""
        if self._agents is None:
            self._agents = build_agents(
                self.config,
                self.agent_group or None,
                runtime=self.runtime,
                llm_invoker=self._llm_invoker,
                store=self._store,
            )
        return self._agents

    @property
    def session(self) -> TacticCallSession | None:
        """The trace of the current call; None outside a call."""
        return self._session

    @property
    def sub_tactics(self) -> dict[str, Tactic]:
        """The sub-tactics, by attribute."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tactic)}

    # --- calling it ---------------------------------------------------------------------------------------------------------

    def __call__(self, task: Any, *, return_session: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401 - a tactic's own
        """Run the tactic.

        Args:
            task: The task, of any type that `call` accepts.
            return_session: Whether to return the trace instead of the result.
            kwargs: Further arguments of `call`.

        Raises:
            Exception: Any exception of `call`. It has the trace as `tactic_session`.
        """
        with self._recorded() as (working, session):
            session.success(working._run(task, kwargs))  # noqa: SLF001 - a copy of itself
        return session if return_session else session.delivery

    async def acall(self, task: Any, *, return_session: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401 - a tactic's own
        """Run the tactic without blocking the event loop: a plain `call` runs in a thread, a coroutine function in this loop."""
        if not inspect.iscoroutinefunction(self.call):
            return await to_thread.run_sync(partial(self, task, return_session=return_session, **kwargs))
        with self._recorded() as (working, session):
            session.success(await working.call(task, **kwargs))
        return session if return_session else session.delivery

    def bcall(
        self,
        tasks: Iterable[Any],
        *,
        max_workers: int | None = None,
        fail_fast: bool = True,
        return_sessions: bool = False,
        **kwargs: Any,  # noqa: ANN401 - arguments of `call`
    ) -> list[Any]:
        """Run the tactic on many tasks in parallel, and return the results in the order of the tasks.

        Args:
            tasks: The tasks.
            max_workers: The number of tasks that run in parallel. Default: the configuration's.
            fail_fast: Whether the first failure ends the batch and is raised after the running tasks end. Otherwise an exception replaces
                its result.
            return_sessions: Whether to return traces instead of results.
            kwargs: Further arguments of `call`.
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
        **kwargs: Any,  # noqa: ANN401 - arguments of `call`
    ) -> AsyncIterator[tuple[int, Any]]:
        """Run the tactic on many tasks in parallel, and yield each result with the number of its task as soon as it exists.

        When the reader stops, tasks that have not begun never begin. The arguments are those of `bcall`.
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

    @contextmanager
    def _recorded(self) -> Iterator[tuple[Tactic, TacticCallSession]]:
        """Yield a copy for one call, with its own agents and trace, also for its sub-tactics. Record how the call ends."""
        key = self.runtime.tactic_key(type(self)) or self.title()
        session = TacticCallSession(tactic_name=self.title(), tactic_path=key, state="running")
        if self._above is not None:
            above, name = self._above
            above.record_sub_tactic_call(name, session)
        working = copy(self)  # calls run in parallel, each with agents and a trace of its own
        working._session, working._agents = session, None  # noqa: SLF001 - a copy of itself
        for agent in working.agents.values():
            agent.on_trace = session.record_agent_call
        for name, sub_tactic in self.sub_tactics.items():
            part = copy(sub_tactic)
            part._above = (session, name)  # noqa: SLF001 - one of its own kind
            setattr(working, name, part)
        try:
            yield working, session
        except BaseException as error:  # record an interrupt, too
            session.failure(error)
            with suppress(AttributeError):  # an exception that accepts no attributes
                error.tactic_session = session  # type: ignore[attr-defined]
            raise
        finally:
            if self._recorder is not None:
                self._recorder(session)

    def _run(self, task: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tactic's own
        if inspect.iscoroutinefunction(self.call):
            return run_sync(partial(self.call, task, **kwargs))
        return self.call(task, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title()} agents={list(self.agent_group)}>"


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
    **options: Any,  # noqa: ANN401 - arguments of a tactic
) -> Tactic:
    """Build the tactic of a configuration.

    Args:
        config: The configuration.
        name: The tactic's name. Default: the configuration's `tactic_type`.
        runtime: The runtime with the registered tactic.
        options: Further arguments of the tactic.

    Raises:
        NotFound: No tactic has this name.
        InvalidConfig: The configuration is wrong, or names no tactic.
    """
    loaded = load_config(config)
    known = runtime or get_default_runtime()
    title = name or loaded.tactic_type
    if not title:
        raise loaded.place.fault((), "tactic_type is missing.")
    tactic = known.get_tactic(title)
    if isinstance(tactic, Tactic):
        return tactic
    made: Tactic = tactic(loaded, runtime=known, **options)
    return made


# --- tactics as tools ------------------------------------------------------------------------------------------------------


def _function(
    owner: type[Tactic], instance: Tactic | None, tool: str = "", *, runtime: Runtime | None = None
) -> Function:
    """Build the function of a tactic, or of one of its methods.

    Args:
        owner: The tactic's class.
        instance: The tactic, or None.
        tool: The method's name; empty for the tactic's `call`.
        runtime: The runtime with the configuration of a class.

    Raises:
        NotFound: The tactic has no such method.
        InvalidInput: Its `call` has no parameter for the task.
    """

    def tactic() -> Tactic:
        return instance if instance is not None else owner(runtime=runtime)

    if tool:
        if tool.startswith("_") or not callable(getattr(owner, tool, None)):
            near = get_close_matches(tool, [name for name in vars(owner) if not name.startswith("_")])
            close = [f"{owner.title()}#{name}" for name in near]
            raise NotFound(f"{owner.title()}#{tool}", what="tool", close=close)
        bound = getattr(tactic(), tool)
        return bound if isinstance(bound, Function) else Function.from_callable(bound)

    async def run(**arguments: Any) -> Any:  # noqa: ANN401 - a tactic's own
        task, *rest = arguments.items()
        return await tactic().acall(task[1], **dict(rest))

    run.__signature__ = _signature(owner.call)  # type: ignore[attr-defined] # what inspect reads first
    run.__name__ = _FOREIGN.sub("_", owner.title())
    # not an inherited one: a class without a docstring has no description
    run.__doc__ = owner.call.__doc__ or owner.__doc__
    return Function.from_callable(run)


def _signature(call: Callable[..., Any]) -> inspect.Signature:
    """Return the named parameters of `call`, which a model fills. Without an annotation they are strings."""
    hints = get_type_hints(call, include_extras=True)
    named = [
        parameter.replace(annotation=hints.get(parameter.name, str), kind=parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(call).parameters.values())[1:]  # without self
        if parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
    ]
    if not named:
        raise InvalidInput(f"{call.__qualname__} has no parameter for the task, so no model can call it.")
    return inspect.Signature(named)
