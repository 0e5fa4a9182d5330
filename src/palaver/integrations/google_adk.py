"""Sessions of Google's Agent Development Kit in a store of palaver: its `BaseSessionService`; and a plugin that makes its requests fit.

    runner = Runner(app_name="weather", agent=agent, session_service=PalaverSessionService("agents.db"))

Each event becomes an entry with the event's own JSON, which the kit reads back; an event that says something is also a message. A session that
another process continued is refused until it is loaded again: the kit's service in memory would interleave both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any

from anyio import to_thread
from pydantic_core import to_jsonable_python

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS
from palaver.context.fit import Fit
from palaver.context.policy import PolicyLike
from palaver.dialects import item_reader
from palaver.errors import MissingExtra
from palaver.formats.google_adk import message_of
from palaver.ids import DialogId, derive_dialog_id, new_session_id, now
from palaver.integrations.keyed import Keyed, annotate, append, create, in_thread, step
from palaver.integrations.request_fitter import RequestFitter
from palaver.log import Custom, Entry, Handle, MessageEntry, Node, ToolSpec
from palaver.messages import thaw
from palaver.store import SessionRecord
from palaver.store.connect import StoreLike, opened_store
from palaver.tokens.budget import BudgetLike
from palaver.view.exchange import read

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.errors._stale_session_error import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import Session, State
    from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai.types import Content, FunctionDeclaration, Tool
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", "google-adk") from error

FRAMEWORK = "google-adk"
_STATE, _EVENT = f"{FRAMEWORK}/state", f"{FRAMEWORK}/event"
_CHANGES = f"{FRAMEWORK}/changes"
"""The type of the entry after an event that changes a session's own state: it names the event that set each key last, so that a state needs no other event."""

_SHARED = {State.APP_PREFIX: "app", State.USER_PREFIX: "user"}
"""The prefixes of keys whose values all sessions share, of an app or of one of its users."""

_Json = dict[str, Any]


class PalaverSessionService(BaseSessionService):  # type: ignore[misc] # unknown where the kit is missing
    """The session service of the Agent Development Kit over any store of palaver.

    Several processes may use one store. The subject of a session is its user. Deleting a session moves it to the trash. State of an app and of a
    user is kept in sessions of its own, and stays.
    """

    def __init__(self, store: StoreLike) -> None:
        """Use a store, or open the one at an address; `close` closes a store that was opened here.

        Raises:
            StoreError: The store cannot be opened.
        """
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, FRAMEWORK)

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    # --- sessions ------------------------------------------------------------------------------------------------------

    async def create_session(
        self, *, app_name: str, user_id: str, state: _Json | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session.

        Args:
            app_name: The app.
            user_id: The user.
            state: The initial state; values that are not JSON are stored as their text.
            session_id: Its id. Default: made up.

        Raises:
            AlreadyExistsError: The user has a session with this id.
        """
        name = (session_id or "").strip() or new_session_id()
        job = partial(self._create, app_name, user_id, name, _json(state or {}))
        return await in_thread(self._store, partial(step, self._store, job))

    def _create(self, app: str, user: str, name: str, state: _Json) -> Session:
        if self._keyed.find("session", app, user, name) is not None:
            raise AlreadyExistsError(f"Session with id {name} already exists.")
        record = self._made("session", app, user, name)
        self._share(app, user, state)
        append(self._store, _dialog(record), Custom.exact(_STATE, _own(state)))
        return self._session(record, self._shared)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events and the state that it sees, or None."""
        return await in_thread(self._store, partial(self._get, app_name, user_id, (session_id or "").strip(), config))

    def _get(self, app: str, user: str, name: str, config: GetSessionConfig | None) -> Session | None:
        record = self._keyed.find("session", app, user, name)
        return None if record is None else self._session(record, self._shared, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of an app, or of one of its users, with their state and no events, oldest activity first."""
        return await in_thread(self._store, partial(self._list, app_name, user_id))

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        shared = cache(self._shared)  # once for all sessions
        found = [
            self._session(record, shared, GetSessionConfig(num_recent_events=0))
            for record, about in self._keyed.all(subject=user)
            if about["kind"] == "session" and about["app"] == app and user in {None, about["user"]}
        ]
        found.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Move a session to the trash, if there is one."""
        job = partial(self._keyed.drop, "session", app_name, user_id, (session_id or "").strip())
        await in_thread(self._store, partial(step, self._store, job))

    async def get_user_state(self, *, app_name: str, user_id: str) -> _Json:
        """Return the state that all sessions of a user share, without the prefix."""
        return await in_thread(self._store, partial(self._shared, "user", app_name, user_id))

    # --- events --------------------------------------------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Write an event with its changes of the state, all or nothing. Partial events and temporary state are not written.

        Raises:
            StaleSessionError: Another process continued the session since it was loaded.
            SessionNotFoundError: The session does not exist.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        written = event.model_dump(mode="json", by_alias=True, exclude_defaults=True, fallback=repr)
        job = partial(self._append, session, written, _json(event.actions.state_delta))
        session._storage_update_marker = await in_thread(self._store, partial(step, self._store, job))  # noqa: SLF001 - the kit's own field for it
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    def _append(self, session: Session, event: _Json, state: _Json) -> str:
        record = self._keyed.find("session", session.app_name, session.user_id, session.id)
        if record is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        dialog = _dialog(record)
        head = self._store.last(dialog).turn_head
        if not self._is_current(session, dialog, head):
            raise StaleSessionError(
                f"The session {session.id!r} has been modified in storage since it was loaded, and this event was not written. "
                "Load it again with get_session(), and run the turn again."
            )
        self._share(session.app_name, session.user_id, state)
        return self._write(dialog, event, _own(state), head)

    def _write(self, dialog: DialogId, event: _Json, own: _Json, head: int) -> str:
        """Write an event with the session's own changes of its state, and return the mark of a session that ends with it."""
        seq = append(self._store, dialog, _entry(event), head=head)[-1].seq
        if own:
            changes = self._changes(dialog) | dict.fromkeys(own, seq)
            annotate(self._store, dialog, Custom.exact(_CHANGES, changes))
        return str(seq)

    def _is_current(self, session: Session, dialog: DialogId, head: int) -> bool:
        """Return whether a session ends where its dialog ends: by its mark, or by its last event if another service made it."""
        marker: str | None = session._storage_update_marker  # noqa: SLF001 - the kit's own field for it
        if marker is not None:
            return marker == str(head)
        newest = self._read(dialog, [head]).get(head, {})
        return newest.get("id") == session.events[-1].id if session.events else head == 0

    # --- state ---------------------------------------------------------------------------------------------------------

    def _session(
        self, record: SessionRecord, shared: Callable[[str, str, str], _Json], config: GetSessionConfig | None = None
    ) -> Session:
        about: Any = record.metadata[FRAMEWORK]
        app, user, name = (str(about[key]) for key in ("app", "user", "id"))
        dialog = _dialog(record)
        head = self._store.last(dialog).turn_head  # before the events: one that comes later makes the session stale
        changes = self._changes(dialog)
        known = self._read(dialog, {0, head, *changes.values()})
        own = {key: known[seq]["actions"]["stateDelta"][key] for key, seq in changes.items() if seq in known}
        state = known.get(0, {}) | own
        for prefix, kind in _SHARED.items():
            state |= {f"{prefix}{key}": deepcopy(value) for key, value in shared(kind, app, user).items()}
        made = Session(
            id=name,
            app_name=app,
            user_id=user,
            state=state,
            events=list(map(Event.model_validate, self._events(dialog, config))),
            last_update_time=known[head]["timestamp"] if head and head in known else record.created_at,
        )
        made._storage_update_marker = str(head)  # noqa: SLF001 - the kit's own field for it
        return made

    def _events(self, dialog: DialogId, config: GetSessionConfig | None) -> list[_Json]:
        """Return the events that were asked for."""
        if config is not None and config.num_recent_events == 0:
            return []
        entries = (json.loads(body) for _, body in self._store.bodies(dialog, 1))
        events = [
            json.loads(entry["raw"]) for entry in entries if entry.get("raw") and entry.get("custom_type") != _CHANGES
        ]
        if config is None:
            return events
        if config.num_recent_events is not None:
            events = events[-config.num_recent_events :]
        return [event for event in events if event["timestamp"] >= (config.after_timestamp or 0)]

    def _changes(self, dialog: DialogId) -> dict[str, int]:
        """Return the number of the event that set each key of a session's own state last."""
        headers = self._store.latest_of_kind(dialog, "custom")
        bodies = (body for header in headers for _, body in self._store.bodies(dialog, header.seq, header.seq + 1))
        entries = (entry for entry in map(json.loads, bodies) if entry.get("custom_type") == _CHANGES)
        changes: dict[str, int] = next((json.loads(entry["raw"]) for entry in entries if entry.get("raw")), {})
        return changes

    def _read(self, dialog: DialogId, seqs: Iterable[int]) -> Mapping[int, _Json]:
        """Return the JSON of entries by their numbers, without those that were erased or are lost."""
        entries = read(self._store, [Handle(dialog, seq) for seq in seqs])
        return {place.seq: json.loads(entry.raw) for place, entry in entries.items() if entry.raw is not None}

    def _shared(self, kind: str, app: str, user: str) -> _Json:
        """Return the state of an app or of a user."""
        record = self._keyed.find(*_key(kind, app, user))
        return {} if record is None else self._newest(_dialog(record))[0]

    def _newest(self, dialog: DialogId) -> tuple[_Json, int]:
        """Return the newest state in a dialog, and the turn head that it belongs to."""
        last = self._store.last(dialog)
        body = self._store.body(dialog, last.seq) if last.seq >= 0 else b'{"raw": "{}"}'
        return json.loads(json.loads(body)["raw"]), last.turn_head

    def _share(self, app: str, user: str, state: Mapping[str, Any]) -> None:
        """Write the parts of a state that belong to the app and to the user."""
        for prefix, kind in _SHARED.items():
            if changed := {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}:
                record = self._keyed.find(*_key(kind, app, user)) or self._made(*_key(kind, app, user))
                known, head = self._newest(_dialog(record))
                append(self._store, _dialog(record), Custom.exact(_STATE, known | changed), head=head)

    def _made(self, kind: str, app: str, user: str = "", name: str = "") -> SessionRecord:
        """Create what a key names, with one dialog."""
        about = {"kind": kind, "app": app, "user": user, "id": name}
        key = (kind, app, user, name) if kind == "session" else _key(kind, app, user)
        record = self._keyed.make(*key, name=name or f"{FRAMEWORK} state of {user or app}", subject=user, about=about)
        owner = app if kind == "session" else f"{FRAMEWORK} state"
        node = Node(
            dialog_id=_dialog(record),
            session_id=record.session_id,
            owner=owner,
            created_at=now(),
            relation="root" if kind == "session" else "subagent",  # a state is not a conversation
            metadata={FRAMEWORK: about},
        )
        create(self._store, node)
        return self._store.update_session(record.session_id, root=node.dialog_id)


def _dialog(record: SessionRecord) -> DialogId:
    """Return the id of the dialog of a session. It is derived, so only one of two writers creates it."""
    return derive_dialog_id(record.session_id, FRAMEWORK)


def _key(kind: str, app: str, user: str) -> tuple[str, ...]:
    return (kind, app) if kind == "app" else (kind, app, user)


def _own(state: Mapping[str, Any]) -> _Json:
    """Return the part of a state that belongs to the session alone."""
    shared = (*_SHARED, State.TEMP_PREFIX)
    return {key: value for key, value in state.items() if not key.startswith(shared)}


def _json(state: Mapping[str, Any]) -> _Json:
    value: _Json = to_jsonable_python(dict(state), fallback=repr)
    return value


def _entry(event: _Json) -> Entry:
    """Return the entry of an event: its own JSON, and the message where it says something."""
    known = Custom.exact(_EVENT, event)
    message = message_of(event, item_reader("gemini"))
    return known if message is None else MessageEntry(message=message, raw=known.raw)


# --- requests ----------------------------------------------------------------------------------------------------------


class FitPlugin(BasePlugin):  # type: ignore[misc] # unknown where the kit is missing
    """A plugin that makes each request of an app's agents fit its model, by `palaver.fit`. The session keeps every event.

        app = App(name="weather", root_agent=agent, plugins=[FitPlugin()])
        runner = Runner(app=app, session_service=PalaverSessionService("agents.db"))

    Once something is left out, the model is offered the tools `recall` and `search_history`, which are answered from all contents of the request.
    For one agent alone: `LlmAgent(before_model_callback=FitPlugin().before_model_callback)`. What a plugin raises reaches the caller inside the kit's
    `RuntimeError`. Not for the Interactions API, whose server keeps the conversation.
    """

    def __init__(
        self,
        *,
        policy: PolicyLike = DEFAULT_POLICY,
        budget: BudgetLike | None = None,
        model: str | None = None,
    ) -> None:
        """Choose how requests are fitted.

        Args:
            policy: A policy's name, a configuration or a context manager, as for `palaver.fit`.
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model.
            model: The model's name. Default: that of each request.
        """
        super().__init__("palaver_fit")
        self._fitter = RequestFitter(dialect="gemini", policy=policy, budget=budget, model=model)

    async def before_model_callback(
        self,
        *,
        callback_context: CallbackContext,  # noqa: ARG002 - the kit's
        llm_request: LlmRequest,
    ) -> None:
        """Replace the contents of a request by some that fit.

        Raises:
            InvalidInput: The window of the model is not known.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        config = llm_request.config
        job = partial(
            self._fitter.fit,
            llm_request.contents,
            model=llm_request.model,
            system=config.system_instruction,
            tools=[
                tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                for tool in config.tools or ()
                if isinstance(tool, Tool)
            ],
        )
        fitted = await to_thread.run_sync(job)
        llm_request.contents = [
            Content.model_validate(item) if isinstance(item, dict) else item for item in fitted.messages
        ]
        if fitted.tools:
            own = llm_request.tools_dict
            llm_request.append_tools([_RecallTool(spec, fitted) for spec in RECALL_TOOLS if spec.name not in own])


class _RecallTool(BaseTool):  # type: ignore[misc] # unknown where the kit is missing
    """A tool that recalls what one request left out."""

    def __init__(self, spec: ToolSpec, fitted: Fit) -> None:
        super().__init__(name=spec.name, description=spec.description)
        self._parameters = thaw(spec.parameters)
        self._fitted = fitted

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: _Json, tool_context: ToolContext) -> str:  # noqa: ARG002 - the kit's
        return await to_thread.run_sync(self._fitted.call_tool, self.name, args)
