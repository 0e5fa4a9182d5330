"""Sessions of the OpenAI Agents SDK in a store of palaver, and `fit` as the filter of what its models are sent.

    session = PalaverSession("user-17", "agents.db")
    await Runner.run(agent, "Hello.", session=session)

Each item becomes a message of a dialog, and is given back as it was. What the SDK removes stays in the log: `pop_item` and `clear_session` continue in a
branch, and `palaver.Session.undo_rewind` returns to the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from anyio import to_thread

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS
from palaver.context.fit import Fit
from palaver.context.policy import PolicyLike
from palaver.dialects import write_messages
from palaver.errors import Erased, InvalidInput, InvalidMessage, MissingExtra, NotFound, StoreDamaged
from palaver.ids import DialogId, SessionId
from palaver.integrations.keyed import Keyed, append, in_thread, spans_of, step
from palaver.integrations.request_fitter import RequestFitter, recalled
from palaver.log import Custom, Entry, Handle, MessageEntry, Span, decode_entry, messages_in
from palaver.log.values import exact_json
from palaver.messages import AssistantMessage, Message, TextContent, ToolCallContent, ToolResultContent, hydrate, thaw
from palaver.plurals import a_type
from palaver.providers import APIS
from palaver.session import Session
from palaver.session.branches import rewound
from palaver.store import SessionRecord, Store
from palaver.store.connect import StoreLike, opened_store
from palaver.store.records import payloads_of
from palaver.tokens.budget import BudgetLike

try:
    from agents import FunctionTool, SessionSettings
    from agents.items import TResponseInputItem
    from agents.memory.session_settings import coerce_session_settings
    from agents.models import get_default_model
    from agents.run_config import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", "openai-agents") from error

FRAMEWORK = "openai-agents"
_DIALECT = "openai-responses"
_ITEM = f"{FRAMEWORK}/item"
"""The type of the custom entry of an item that is no message of the dialect."""

_LEFT = f"{FRAMEWORK}/left"
"""The type of the last entry of a dialog that `pop_item` or `clear_session` left."""

_RESULT = "function_call_output"
_PAGE = 128  # entries that are read at once, newest first

Item = dict[str, Any]


class PalaverSession:
    """The `Session` of the OpenAI Agents SDK over any store of palaver.

    A write is one durable step. Several processes may write to one session: each waits for the other, and all items are there in the order of their
    commits. `get_items` returns what was said, whole; `FitFilter` makes a request fit.

    Attributes:
        session_id: The SDK's name of the session.
        session_settings: The default limit of `get_items`.
    """

    def __init__(
        self,
        session_id: str,
        store: StoreLike,
        *,
        subject: str = "",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        """Use a store, or open the one at an address; `close` closes a store that was opened here. The session is created by its first item.

        Args:
            session_id: The SDK's name of the session. The session of palaver has it as its name.
            store: A store, or the address of one.
            subject: Whose data it is, if the session is created.
            session_settings: The default limit of `get_items`.

        Raises:
            InvalidInput: The name is empty, or not a text.
            StoreError: The store cannot be opened.
        """
        given: object = session_id
        if not isinstance(given, str) or not given:
            raise InvalidInput(f"The session is {given!r}.", hint="Pass the name that the SDK's session has.")
        self.session_id = session_id
        self.session_settings = coerce_session_settings({} if session_settings is None else session_settings)
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, FRAMEWORK)
        self._subject = subject
        self._known: SessionId | None = None

    @classmethod
    def of(
        cls, session: Session, *, session_settings: SessionSettings | dict[str, Any] | None = None
    ) -> PalaverSession:
        """Return the SDK's session over a session of palaver, such as one that was imported from another agent. It continues its root dialog."""
        made = cls(session.session_id, session.store, session_settings=session_settings)
        made._known = session.session_id
        return made

    @property
    def session(self) -> Session:
        """The session of palaver, for views, branches and exports.

        Raises:
            InvalidInput: It has no item yet.
        """
        record = self._find()
        if record is None:
            raise InvalidInput(f"The session {self.session_id!r} has no item yet.")
        return Session(self._store, record.session_id)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; with a limit, or one in the settings, the newest so many.

        Raises:
            InvalidInput: The limit is negative.
        """
        most = self.session_settings.limit if limit is None else limit
        if most is not None and most < 0:
            raise InvalidInput(f"The limit is {most}; it is 0 or more.")
        return await in_thread(self._store, partial(self._get, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none.

        Raises:
            InvalidInput: An item is not a dict, or not JSON.
        """
        if items:
            await in_thread(self._store, partial(step, self._store, partial(self._add, items)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Return the newest item, and continue in a branch without it; None where there is none."""
        return await in_thread(self._store, partial(step, self._store, self._pop))

    async def clear_session(self) -> None:
        """Continue in an empty branch."""
        await in_thread(self._store, partial(step, self._store, self._clear))

    # --- in a worker thread ---------------------------------------------------------------------------------------------------

    def _find(self) -> SessionRecord | None:
        return self._keyed.find(self.session_id) if self._known is None else self._store.session(self._known)

    def _locked(self) -> SessionRecord | None:
        """Return the session, which no other adapter writes to until the end of the transaction."""
        record = self._find()
        return None if record is None else self._store.update_session(record.session_id)

    def _get(self, most: int | None) -> list[TResponseInputItem]:
        record = self._find()
        found: list[Item] = []
        if record is not None and record.root is not None:
            for _, items in _newest(self._store, record.session_id, record.root):
                if most is not None and len(found) >= most:
                    break
                found += reversed(items)
        return cast("list[TResponseInputItem]", found[:most][::-1])

    def _add(self, items: Sequence[TResponseInputItem]) -> None:
        about = {"session_id": self.session_id}
        if self._known is None:
            self._keyed.make(self.session_id, name=self.session_id, subject=self._subject, about=about)
        record = self._locked()
        assert record is not None  # noqa: S101 - it was made, or given
        append(self._store, record.root or self._keyed.root(record), *_entries(items))

    def _pop(self) -> TResponseInputItem | None:
        record = self._locked()
        if record is None or record.root is None:
            return None
        head = self._store.last(record.root).turn_head
        for place, items in _newest(self._store, record.session_id, record.root):
            branch = self._branch(record.root, tuple(_before(spans_of(self._store, record.root), place)), head)
            *rest, last = items
            if rest:  # a message that was not written by the SDK may be several of its items
                append(self._store, branch, *_entries(rest))
            return cast("TResponseInputItem", last)
        return None

    def _clear(self) -> None:
        record = self._locked()
        if record is not None and record.root is not None and (last := self._store.last(record.root)).seq >= 0:
            self._branch(record.root, (), last.turn_head)

    def _branch(self, dialog_id: DialogId, spans: tuple[Span, ...], head: int) -> DialogId:
        """Continue in a branch. The entry at the end of the dialog makes writers that have it open conflict, so that none goes on there unaware."""
        append(self._store, dialog_id, Custom(custom_type=_LEFT), head=head)
        node = rewound(self._store.node(dialog_id), spans, messages_in(self._store, spans), root=True)
        self._store.create_dialog(node)
        self._store.update_session(node.session_id, root=node.dialog_id)
        return node.dialog_id


# --- items and entries --------------------------------------------------------------------------------------------------------


def _entries(items: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """Yield an entry for each item. An item that its message does not say completely is kept as JSON beside it."""
    read = APIS[_DIALECT].dialect.reader()
    for item in items:
        given: object = item
        if not isinstance(given, dict):
            raise InvalidInput(
                f"An item is a dict of the Responses API, not {a_type(given)}.", hint="Pass a list of them."
            )
        raw = exact_json(item)
        try:
            message = read(json.loads(raw))
        except InvalidMessage:
            yield Custom(custom_type=_ITEM, raw=raw)
            continue
        yield MessageEntry(message=message, raw=None if _plain(message) == item else raw)


def _plain(message: Message) -> Item | None:
    """Return the item of a message that says one text or has one result, and nothing else."""
    match message.contents:
        case (TextContent(content=text),):
            return {"role": message.role.value, "content": text}
        case (ToolResultContent(id=call, content=str() as text),):
            return {"type": _RESULT, "call_id": call, "output": text}
    return None


def _newest(store: Store, session_id: SessionId, dialog_id: DialogId) -> Iterator[tuple[Handle, list[Item]]]:
    """Yield the items of each entry of a dialog that has some, newest entry first."""
    for span in reversed(spans_of(store, dialog_id)):
        for stop in range(span.stop, span.start, -_PAGE):
            for seq, body in reversed(list(store.bodies(span.dialog, max(span.start, stop - _PAGE), stop))):
                if items := _items(store, session_id, body):
                    yield Handle(span.dialog, seq), items


def _items(store: Store, session_id: SessionId, body: bytes) -> list[Item]:
    fields = json.loads(body)
    if fields["kind"] == "message" or fields.get("custom_type") == _ITEM:
        if isinstance(raw := fields.get("raw"), str):
            return [json.loads(raw)]
        entry = decode_entry(body)
        if isinstance(entry, MessageEntry):
            plain = _plain(entry.message)
            return _written(_loaded(store, session_id, entry.message)) if plain is None else [plain]
    return []


def _loaded(store: Store, session_id: SessionId, message: Message) -> Message:
    """Return a message with the bytes of its images, or as it is where they are lost: a text then stands for them."""
    try:
        return hydrate(message, payloads_of(store, session_id))
    except (NotFound, Erased, StoreDamaged):
        return message


def _written(message: Message) -> list[Item]:
    """Write a message that palaver or an importer wrote, as items. A result needs its call to be written, and a call has no result yet."""
    calls = [ToolCallContent(id=result.id, name="call", args={}) for result in message.tool_results()]
    asked = (AssistantMessage(contents=calls),) if calls else ()
    items: list[Item] = write_messages((*asked, message), _DIALECT).items
    return [item for item in items if (item.get("type") == _RESULT) == bool(calls)]


def _before(spans: Sequence[Span], place: Handle) -> Iterator[Span]:
    """Yield the spans before an entry."""
    for span in spans:
        if place in span:
            if span.start < place.seq:
                yield Span(span.dialog, span.start, place.seq)
            return
        yield span


# --- what a model is sent -----------------------------------------------------------------------------------------------------


class FitFilter:
    """A `call_model_input_filter` that makes each request fit the model's window, by `palaver.fit`. Runs may share one, also at once.

    The session keeps everything. Give the agent the filter's `tools` too, so that the model can recall what is left out. Not for conversations that the
    server keeps (`previous_response_id`, `conversation_id`): their input is only the newest part. Of the tools, those in `agent.tools` count; leave room in the
    budget for handoffs and the tools of MCP servers, which the SDK does not show to filters.

        fits = FitFilter(budget=50_000)
        agent = Agent(name="helper", model="gpt-5", tools=[*mine, *fits.tools])
        await Runner.run(agent, "Hello.", session=session, run_config=RunConfig(call_model_input_filter=fits))

    Attributes:
        fit: The newest list that was fitted in this task, with what is left out of it; None before the first call.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        policy: PolicyLike = DEFAULT_POLICY,
        budget: BudgetLike | None = None,
    ) -> None:
        """Choose how requests are fitted.

        Args:
            model: The model's name. Default: that of the agent. Name it where a `RunConfig` names the model: the SDK does not show it to filters.
            policy: A policy's name, a configuration or a context manager, as for `palaver.fit`.
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model.
        """
        self._fitter = RequestFitter(dialect=_DIALECT, policy=policy, budget=budget, model=model)
        self._newest: ContextVar[Fit | None] = ContextVar("palaver fit", default=None)  # tools run in tasks of the run

    @property
    def fit(self) -> Fit | None:
        """The newest list that was fitted in this task."""
        return self._newest.get()

    @property
    def tools(self) -> list[FunctionTool]:
        """The tools `recall` and `search_history`, with which the model reads what is left out."""
        return [
            FunctionTool(
                name=tool.name,
                description=tool.description,
                params_json_schema=thaw(tool.parameters),
                on_invoke_tool=partial(self._answer, tool.name),
                strict_json_schema=False,
            )
            for tool in RECALL_TOOLS
        ]

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input of a call, made to fit.

        Raises:
            InvalidInput: The window of the model is not known.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        given = data.model_data
        job = partial(
            self._fitter.fit,
            list(given.input),
            model=data.agent.model or get_default_model(),
            system=given.instructions,
            tools=[_declared(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)],
        )
        fitted = await to_thread.run_sync(job)
        self._newest.set(fitted)
        return ModelInputData(input=fitted.messages, instructions=fitted.system or None)

    async def _answer(self, name: str, _context: object, arguments: str) -> str:
        return await to_thread.run_sync(recalled, self.fit, name, arguments)


def _declared(tool: FunctionTool) -> Item:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
