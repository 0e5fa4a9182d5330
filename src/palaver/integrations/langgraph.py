"""Threads of LangGraph in a store of palaver: a checkpoint saver.

    graph = builder.compile(checkpointer=PalaverCheckpointSaver("agents.db"))

A thread becomes a session. Each checkpoint, each value of a channel at a version and each pending write becomes an entry, written once. The
messages of the channel `messages` are also written to a dialog, so that the conversation can be shown, searched and exported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial, wraps
from secrets import token_hex
from threading import RLock, local
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from palaver.errors import InvalidInput, MissingExtra
from palaver.ids import SessionId
from palaver.integrations.keyed import Keyed, in_thread, step
from palaver.store.connect import StoreLike, opened_store

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from palaver.integrations.langgraph_index import FRAMEWORK, Checkpointed, Namespace, Shown, Typed, namespaces
    from palaver.integrations.langgraph_messages import ThreadConversation, is_conversation
except ModuleNotFoundError as error:
    if error.name and error.name.startswith("palaver"):
        raise
    raise MissingExtra("This adapter", "langgraph", package="langgraph-checkpoint") from error

P = ParamSpec("P")
T = TypeVar("T")

_Known: TypeAlias = "dict[tuple[SessionId, str], tuple[Namespace, ThreadConversation]]"

MOST_THREADS = 256
"""The maximum number of threads that a saver keeps in memory; others are read again when used."""

_VERSION_BYTES = 8


def _in_thread(
    method: Callable[Concatenate[PalaverCheckpointSaver, P], T],
) -> Callable[Concatenate[PalaverCheckpointSaver, P], Coroutine[Any, Any, T]]:
    """Return a method that does the same in another thread, for asyncio."""

    @wraps(method)
    async def call(self: PalaverCheckpointSaver, /, *args: P.args, **kwargs: P.kwargs) -> T:
        own = getattr(self, method.__name__)  # a subclass may override it
        return await in_thread(self._store, partial(own, *args, **kwargs))

    return call


class PalaverCheckpointSaver(BaseCheckpointSaver[str]):
    """A checkpoint saver over any store of palaver, with the optional methods too.

    Several processes may use one store. `delete_thread` moves the session to the trash; `prune` and `delete_for_runs` hide checkpoints, which
    stay in the log.
    """

    def __init__(
        self, store: StoreLike, *, serde: SerializerProtocol | None = None, messages: str = "messages"
    ) -> None:
        """Use a store, or open the one at an address; `close` closes a store that was opened here.

        Args:
            store: The store.
            serde: The serializer. Default: LangGraph's own.
            messages: The channel with the conversation.

        Raises:
            StoreError: The store cannot be opened.
        """
        super().__init__(serde=serde)
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, FRAMEWORK)
        self._channel = messages
        self._known: _Known = {}
        self._lock = RLock()
        self._own = local()

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    # --- finding ----------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[_Known]:
        """Yield the threads in memory, to one thread at a time.

        Inside a transaction of the caller, yield an empty mapping without waiting: the transaction may be rolled back, and another thread may wait
        for its end.
        """
        known: _Known | None = getattr(self._own, "known", None)
        if known is not None:
            yield known
            return
        inside = self._store.in_transaction
        with nullcontext() if inside else self._lock:
            self._own.known = known = {} if inside else self._known
            try:
                yield known
            finally:
                del self._own.known

    @contextmanager
    def _namespace(
        self, session_id: SessionId, name: str, *, make: bool = False
    ) -> Iterator[tuple[Namespace, ThreadConversation]]:
        """Yield an up-to-date namespace; it is discarded if the step fails."""
        key = (session_id, name)
        with self._alone() as known:
            opened = known.pop(key, None)
            if opened is None:
                opened = Namespace(self._store, session_id, name), ThreadConversation(self._store, session_id, name)
                if make and name not in namespaces(self._store, session_id):
                    opened[0].make()
            opened[0].catch_up()
            yield opened
            known[key] = opened
            while len(known) > MOST_THREADS:
                known.pop(next(iter(known)))

    def _write(self, job: Callable[[], T]) -> T:
        with self._alone() as known:
            try:
                return step(self._store, job)
            except BaseException:  # an interrupt, too: the state in memory may include a write that was undone
                known.clear()
                raise

    def _given(self, name: str, saved: Checkpointed, space: Namespace) -> CheckpointTuple:
        thread = self._thread_id(space.session_id)
        where = {"thread_id": thread, "checkpoint_ns": name}
        rest: Checkpoint = self.serde.loads_typed(saved.checkpoint)
        values = {
            channel: self.serde.loads_typed(space.value(seq)) for (channel, _), seq in saved.values.items() if seq >= 0
        }
        return CheckpointTuple(
            config={"configurable": {**where, "checkpoint_id": saved.checkpoint_id}},
            checkpoint={**rest, "channel_values": values},
            metadata=self.serde.loads_typed(saved.metadata),
            parent_config={"configurable": {**where, "checkpoint_id": saved.parent}} if saved.parent else None,
            pending_writes=[
                (write.task, write.channel, self.serde.loads_typed(value))
                for write, value in space.pending(saved.checkpoint_id)
            ],
        )

    def _thread_id(self, session_id: SessionId) -> str:
        about = self._store.session(session_id).metadata[FRAMEWORK]
        return str(about["thread_id"]) if isinstance(about, Mapping) else ""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the configuration names, or the newest one; None if the thread has no checkpoint."""
        thread, name = _where(config)
        with self._alone():
            record = self._keyed.find(thread)
            if record is None or name not in namespaces(self._store, record.session_id):
                return None
            with self._namespace(record.session_id, name) as (space, _):
                wanted = get_checkpoint_id(config) or max(space.checkpoints, default="")
                checkpoint = space.checkpoints.get(wanted)
                return None if checkpoint is None else self._given(name, checkpoint, space)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, those of a namespace newest first.

        Args:
            config: The thread, and optionally the namespace or the checkpoint. Default: all.
            filter: Values that their metadata must have.
            before: Yield only checkpoints older than this one.
            limit: The maximum number of checkpoints.
        """
        left = limit
        for session_id, name in list(self._spaces(config)):
            for checkpoint in self._chosen(session_id, name, config, before):
                if left is not None and left <= 0:
                    return
                with self._namespace(session_id, name) as (space, _):
                    metadata = self.serde.loads_typed(checkpoint.metadata)
                    if any(metadata.get(key) != value for key, value in (filter or {}).items()):
                        continue
                    given = self._given(name, checkpoint, space)
                left = None if left is None else left - 1
                yield given

    def _spaces(self, config: RunnableConfig | None) -> Iterator[tuple[SessionId, str]]:
        if config is None:
            records = [record for record, _ in self._keyed.all()]
        else:
            record = self._keyed.find(_thread_in(config))
            records = [] if record is None else [record]
        wanted = None if config is None else config["configurable"].get("checkpoint_ns")
        for record in records:
            for name in namespaces(self._store, record.session_id):
                if wanted in {None, name}:
                    yield record.session_id, name

    def _chosen(
        self, session_id: SessionId, name: str, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> Sequence[Checkpointed]:
        only = None if config is None else get_checkpoint_id(config)
        bound = None if before is None else get_checkpoint_id(before)
        with self._namespace(session_id, name) as (space, _):
            return [
                space.checkpoints[checkpoint_id]
                for checkpoint_id in sorted(space.checkpoints, reverse=True)
                if only in {None, "", checkpoint_id} and (not bound or checkpoint_id < bound)
            ]

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:  # noqa: ARG002, PYI041 - LangGraph's
        """Return the next version of a channel: a counter, and a random part, so that two branches never have the same one."""
        count = 0 if current is None else int(str(current).split(".")[0])
        return f"{count + 1:032}.{token_hex(_VERSION_BYTES)}"

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint with its new values and new messages, all or nothing. Unchanged channels keep the values of the parent checkpoint."""
        thread, name = _where(config)
        values = checkpoint["channel_values"]
        rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        parts = self.serde.dumps_typed(rest), self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))
        parent = get_checkpoint_id(config) or None

        def job() -> None:
            record = self._keyed.make(thread, name=thread, about={"thread_id": thread})
            with self._namespace(record.session_id, name, make=True) as (space, conversation):
                if not name and record.root is None:
                    self._store.update_session(record.session_id, root=space.dialog("checkpoints"))
                above = space.checkpoints[parent].values if parent in space.checkpoints else {}
                written = space.put_values(
                    {
                        (channel, version): self.serde.dumps_typed(values[channel]) if channel in values else None
                        for channel, version in checkpoint["channel_versions"].items()
                        if channel in new_versions or (channel, version) not in above
                    }
                )
                places = {key: written.get(key, above.get(key, -1)) for key in checkpoint["channel_versions"].items()}
                shown = self._shown(space, conversation, parent, values.get(self._channel))
                space.put_checkpoint(checkpoint["id"], parent, parts, places, shown)

        self._write(job)
        return {"configurable": {"thread_id": thread, "checkpoint_ns": name, "checkpoint_id": checkpoint["id"]}}

    def _shown(
        self, space: Namespace, conversation: ThreadConversation, parent: str | None, said: object
    ) -> Shown | None:
        above = None if parent is None else space.checkpoints.get(parent)
        before = None if above is None else above.shown
        return conversation.show(before, said) if isinstance(said, list) and is_conversation(said) else before

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write the pending writes of a task."""
        ready = [
            (channel, WRITES_IDX_MAP.get(channel, index), self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        self._put_writes(config, task_id, task_path, ready)

    def _put_writes(
        self, config: RunnableConfig, task_id: str, task_path: str, writes: Sequence[tuple[str, int, Typed]]
    ) -> None:
        thread, name = _where(config)
        checkpoint_id = get_checkpoint_id(config)
        if checkpoint_id is None:
            raise InvalidInput("The configuration has no checkpoint_id, so these writes belong to no checkpoint.")

        def job() -> None:
            record = self._keyed.make(thread, name=thread, about={"thread_id": thread})
            with self._namespace(record.session_id, name, make=True) as (space, _):
                space.put_writes(checkpoint_id, task_id, task_path, writes)

        self._write(job)

    def delete_thread(self, thread_id: str) -> None:
        """Move a thread to the trash."""
        self._write(partial(self._keyed.drop, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of runs."""
        wanted = set(run_ids)

        def run(space: Namespace, key: str) -> object:
            return self.serde.loads_typed(space.checkpoints[key].metadata).get("run_id")

        for session_id, name in list(self._spaces(None)):
            self._remove(
                session_id, name, lambda space: [key for key in space.checkpoints if run(space, key) in wanted]
            )

    def _remove(self, session_id: SessionId, name: str, choose: Callable[[Namespace], Sequence[str]]) -> None:
        def job() -> None:
            with self._namespace(session_id, name) as (space, _):
                space.remove(choose(space))

        self._write(job)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide all checkpoints of threads except the newest of each namespace, or (`delete`) all.

        The newest keeps all its values. A `DeltaChannel` would need older ones, which are hidden.

        Raises:
            InvalidInput: The strategy is unknown.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise InvalidInput(f"There is no strategy {strategy!r}: use 'keep_latest' or 'delete'.")
        keep = 1 if strategy == "keep_latest" else 0
        for thread_id in thread_ids:
            for session_id, name in list(self._spaces({"configurable": {"thread_id": thread_id}})):
                self._remove(session_id, name, lambda space: sorted(space.checkpoints, reverse=True)[keep:])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Write all checkpoints and writes of a thread to another one, oldest first."""
        checkpoints = list(self.list({"configurable": {"thread_id": source_thread_id}}))
        for checkpoint in reversed(checkpoints):
            self._copy(checkpoint, target_thread_id)

    def _copy(self, original: CheckpointTuple, thread_id: str) -> None:
        parent = None if original.parent_config is None else get_checkpoint_id(original.parent_config)
        where = {"thread_id": thread_id, "checkpoint_ns": original.config["configurable"]["checkpoint_ns"]}
        before: RunnableConfig = {"configurable": {**where, "checkpoint_id": parent} if parent else where}
        here = self.put(before, original.checkpoint, original.metadata, original.checkpoint["channel_versions"])
        session = self._keyed.find(original.config["configurable"]["thread_id"])
        if session is None:
            return
        with self._namespace(session.session_id, where["checkpoint_ns"]) as (space, _):
            waiting = list(space.pending(original.config["configurable"]["checkpoint_id"]))
        for write, value in waiting:
            self._put_writes(here, write.task, write.path, [(write.channel, write.number, value)])

    # --- the same, for asyncio ------------------------------------------------------------------------------------------------------

    aget_tuple = _in_thread(get_tuple)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        listed = self.list(config, filter=filter, before=before, limit=limit)
        while (checkpoint := await in_thread(self._store, partial(next, listed, None))) is not None:
            yield checkpoint

    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    adelete_thread = _in_thread(delete_thread)
    adelete_for_runs = _in_thread(delete_for_runs)
    aprune = _in_thread(prune)
    acopy_thread = _in_thread(copy_thread)


def _thread_in(config: RunnableConfig) -> str:
    try:
        return str(config["configurable"]["thread_id"])
    except KeyError as error:
        raise InvalidInput("The configuration names no thread.", hint="Set configurable.thread_id.") from error


def _where(config: RunnableConfig) -> tuple[str, str]:
    return _thread_in(config), str(config["configurable"].get("checkpoint_ns") or "")
