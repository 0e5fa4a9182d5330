"""Sessions of the Claude Agent SDK in a store of palaver: the SDK's `SessionStore`.

    options = ClaudeAgentOptions(session_store=PalaverSessionStore("agents.db"))

The SDK mirrors each record of a transcript. Each becomes an entry of the log with the record's own JSON, which the SDK reads back.
A session of the SDK becomes a session, a sub-agent's transcript a dialog, and a rewind a fork. The subject of a session is the SDK's
`project_key`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

from anyio import CapacityLimiter

from palaver.errors import MissingExtra
from palaver.ids import SessionId
from palaver.integrations.claude_lane import FRAMEWORK, Lane, lanes_of, newest_summary
from palaver.integrations.keyed import Keyed, in_thread, step
from palaver.store import SessionRecord
from palaver.store.connect import StoreLike, opened_store

try:
    from claude_agent_sdk import SessionKey, SessionListSubkeysKey, SessionStoreEntry, fold_session_summary
    from claude_agent_sdk.types import SessionStoreListEntry, SessionSummaryEntry
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", FRAMEWORK) from error

T = TypeVar("T")


class PalaverSessionStore:
    """The `SessionStore` of the Claude Agent SDK over any store of palaver.

    A record with a known `uuid` is not written again. Several processes may mirror into one store; their records are in the order of their
    commits. `delete` loses nothing: it moves a session to the trash, and ends the transcript of a sub-agent.
    """

    def __init__(self, store: StoreLike) -> None:
        """Use a store, or open the one at an address; `close` closes a store that was opened here.

        Raises:
            StoreError: The store cannot be opened.
        """
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, FRAMEWORK)
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._lock = Lock()
        self._turns = CapacityLimiter(1)  # writes in the order of the calls

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    async def _write(self, job: Callable[[], T]) -> T:
        return await in_thread(self._store, partial(self._alone, job), self._turns)

    def _alone(self, job: Callable[[], T]) -> T:
        """Write; after a failure, discard the transcripts that were read."""
        with self._lock:
            try:
                return step(self._store, job)
            except BaseException:  # an interrupt, too: the state in memory may include a write that was undone
                self._lanes.clear()
                raise

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Write a batch of records, all or none."""
        if entries:
            await self._write(partial(self._append, dict(key), cast("list[Mapping[str, object]]", entries)))

    def _append(self, key: Mapping[str, str], values: Sequence[Mapping[str, object]]) -> None:
        project, session, subpath = _parts(key)
        about = {"project_key": project, "session_id": session}
        record = self._keyed.make(project, session, name=session, subject=project, about=about)
        with self._lane(record.session_id, subpath) as lane:
            fresh = lane.mirror(values)
            if fresh and not subpath:
                known = lane.summary
                before: Any = None if known is None else {"session_id": session, "mtime": 0, "data": known.data}
                folded = fold_session_summary(before, cast("SessionKey", key), cast("Any", fresh))
                lane.summarize(folded["data"])
                self._describe(record, folded["data"])

    @contextmanager
    def _lane(self, session_id: SessionId, subpath: str) -> Iterator[Lane]:
        """Yield an up-to-date transcript; it is discarded if the step fails."""
        lane = self._lanes.pop((session_id, subpath), None) or Lane(self._store, session_id, subpath)
        lane.catch_up()
        yield lane
        self._lanes[session_id, subpath] = lane

    def _describe(self, record: SessionRecord, data: Mapping[str, object]) -> None:
        """Set the session's name and working folder to those of the SDK."""
        named = {"name": data.get("custom_title") or data.get("ai_title"), "workdir": data.get("cwd")}
        changes = {
            key: value for key, value in named.items() if isinstance(value, str) and value != getattr(record, key)
        }
        if changes:
            self._store.update_session(record.session_id, **changes)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all records of a transcript in their order; None for one without records."""
        return await in_thread(self._store, partial(self._load, dict(key)))

    def _load(self, key: Mapping[str, str]) -> list[SessionStoreEntry] | None:
        project, session, subpath = _parts(key)
        record = self._keyed.find(project, session)
        nodes = None if record is None else lanes_of(self._store, record.session_id, subpath).get(subpath)
        if record is None or nodes is None:
            return None
        lane = Lane(self._store, record.session_id, subpath)
        records = sorted(record for node in nodes for record in lane.records(node.dialog_id))
        return [json.loads(record.text) for record in records] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project with the time of their last write, in milliseconds since 1970-01-01 UTC."""
        return [
            {"session_id": summary["session_id"], "mtime": summary["mtime"]}
            for summary in await self.list_session_summaries(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the SDK's summary of each session of a project."""
        return await in_thread(self._store, partial(self._summaries, project_key))

    def _summaries(self, project: str) -> list[SessionSummaryEntry]:
        summaries: list[SessionSummaryEntry] = []
        for record, about in self._keyed.all(subject=project):
            nodes = lanes_of(self._store, record.session_id, "").get("")
            known = None if nodes is None or about.get("project_key") != project else newest_summary(self._store, nodes)
            if known is not None:
                summaries.append(
                    {"session_id": str(about["session_id"]), "mtime": int(known.at * 1000), "data": known.data}
                )
        return summaries

    async def delete(self, key: SessionKey) -> None:
        """Move a session with its sub-agents to the trash, or end the transcript of one sub-agent."""
        await self._write(partial(self._delete, dict(key)))

    def _delete(self, key: Mapping[str, str]) -> None:
        project, session, subpath = _parts(key)
        if not subpath:
            self._keyed.drop(project, session)
            return
        record = self._keyed.find(project, session)
        if record is not None:
            with self._lane(record.session_id, subpath) as lane:
                lane.delete()

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session that have records."""
        return await in_thread(self._store, partial(self._subkeys, dict(key)))

    def _subkeys(self, key: Mapping[str, str]) -> list[str]:
        record = self._keyed.find(key["project_key"], key["session_id"])
        return [] if record is None else [name for name in lanes_of(self._store, record.session_id) if name]


def _parts(key: Mapping[str, str]) -> tuple[str, str, str]:
    return key["project_key"], key["session_id"], key.get("subpath") or ""
