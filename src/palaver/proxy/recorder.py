"""The recorder: writes each call to a session, after its bytes were forwarded. All of it waits for the store: it is for a thread of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from palaver.agent.turn import PARTIAL, RejectedAnswer, attempt_entry
from palaver.errors import Conflict
from palaver.ids import new_dialog_id
from palaver.log import (
    Custom,
    Entry,
    Handle,
    Instructions,
    MessageEntry,
    Node,
    Section,
    Toolset,
    ToolSpec,
    child_of,
    decode_entry,
    every_body,
)
from palaver.log.entries import ErrorEntry, ModelChange
from palaver.log.redaction import Redacted, Redactor
from palaver.messages import Message, canonical_json, words_of
from palaver.providers import APIS
from palaver.proxy.answers import AnswerCopy, decoded, read_answer
from palaver.proxy.lineage import Continuation, KnownDialog, Spoken, heard, place
from palaver.proxy.mending import Mended, RequestMender
from palaver.proxy.requests import ReadRequest, fields_of, read_request
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.store.redacting import RedactingStore, RedactLike, redacting, redactor_of
from palaver.view import View
from palaver.wire import Call, Request, passed_on

_OPEN = 64
"""The most sessions that are kept in memory. One that requests name is read from the store again."""

_DIALOGS = 256
"""The most dialogs of a session that a request is compared with: the newest."""


MENDED = "palaver.proxy.mended"
"""The custom entry before a request that was mended. It lists what was changed; the client's own messages are in the log."""


@dataclass(eq=False)
class ProxiedCall:
    """A call that passes through the proxy.

    Attributes:
        api: Its API.
        body: The body of its request, as the client sent it.
        model: The model that its path names, or empty.
        stream: Whether its path asks for a stream.
        session: The session that it names, or empty.
        keys: Its keys, which are taken out of everything that is written.
        encoding: The content encoding of the body, or empty.
        mended: What was changed in it before it was sent to the vendor, or None.
        begun: Whether its request waits to be recorded, or is.
        line: The dialog in which it is recorded; None before.
        request: Its request as it was recorded; None before.
        place: The entry that records it; None before.
        kept: The conversation that the vendor keeps and its answer belongs to, or empty.
    """

    api: str
    body: bytes
    model: str = ""
    stream: bool = False
    session: str = ""
    keys: frozenset[str] = frozenset()
    encoding: str = ""
    mended: Mended | None = None
    begun: bool = False
    line: KnownDialog | None = None
    request: Request | None = None
    place: Handle | None = None
    kept: str = ""

    @property
    def sent(self) -> bytes:
        """The body that was sent to the vendor."""
        return self.body if self.mended is None or self.mended.body is None else self.mended.body


class KeyRedactor:
    """Takes the keys of requests out of all texts, and what another redactor finds.

    Attributes:
        keys: The keys.
    """

    def __init__(self, inner: Redactor | None = None) -> None:
        """Know no keys yet."""
        self.keys: frozenset[str] = frozenset()
        self._inner = inner

    def redact(self, text: str, name: str = "") -> Redacted:
        """Return a text without secrets."""
        found: tuple[str, ...] = ()
        for key in self.keys:
            found += ("key",) * text.count(key)
            text = text.replace(key, "[redacted:key]")
        inner = Redacted(text, ()) if self._inner is None else self._inner.redact(text, name)
        return inner._replace(found=(*found, *inner.found), beginnings=())


class Recorder:
    """Records calls: each in the dialog that its conversation continues.

    Attributes:
        store: The store, which writes no key.
        mender: Mends the requests before they are sent, or None.
    """

    def __init__(
        self, store: Store, session: str = "", *, redact: RedactLike = False, mender: RequestMender | None = None
    ) -> None:
        """Record into a store.

        Args:
            store: The store.
            session: The session for all calls, by its name, id or the first digits of its id; created where there is none. Default: one for each
                session that requests name, and one for all other requests.
            redact: What takes further secrets out of everything that is written.
            mender: Mends the requests before they are sent; None to send them as they are.

        Raises:
            Ambiguous: Several sessions begin with these digits.
            Erased: The session was erased.
            StoreError: The store cannot be read or written.
        """
        self.mender = mender
        self._redactor = KeyRedactor(redactor_of(redact))
        self.store = redacting(store, self._redactor)
        self._name = session
        self._sessions: OrderedDict[str, _KnownSession] = OrderedDict()
        if session:
            self._session(session)  # a name that means none, or several, is an error at once

    def begin(self, call: ProxiedCall) -> None:
        """Record a request: what is new in its conversation, and its bytes.

        Raises:
            InvalidMessage: It is not a request of its API.
            StoreError: The store cannot be written.
        """
        self._redactor.keys |= call.keys
        body = decoded(call.body, call.encoding)
        asked = read_request(call.api, body, call.model, stream=call.stream)
        try:
            self._begin(call, asked)
        except Conflict:  # another program continued the dialog, which is read again
            self._sessions.pop(self._name or call.session, None)
            self._begin(call, asked)

    def _begin(self, call: ProxiedCall, asked: ReadRequest) -> None:
        name = self._name or call.session
        known = self._sessions.get(name)
        said = heard(known.lines if known else (), asked)  # what cannot be read makes no session
        line, said, start = self._session(name).opened(asked, said, self.store)
        dialog = line.dialog
        first = len(said.ends) - len(asked.items)  # not 0 where the vendor keeps what was said before
        entries = [*_state(dialog.view(), asked, self.store)]
        parts = [
            (end, part)
            for end, message in zip(said.ends[first + start :], asked.messages(start), strict=True)
            for part in dialog.opened.stamped(message)
        ]
        before = len(entries)
        entries += [MessageEntry(message=part) for _, part in parts]
        handles = dialog.record(*entries)[before:] if entries else ()
        line.ends |= {end: handle for (end, _), handle in zip(parts, handles, strict=True) if end >= 0}
        line.said, line.items = said, () if first else asked.items
        sent, fields = asked.body, asked.fields
        if call.mended is not None:
            dialog.record(Custom(custom_type=MENDED, data={"changes": call.mended.changes}))
            sent = call.mended.body or sent
            fields = fields_of(sent)
        made = Call(model=asked.model, stream=asked.stream)
        call.request = passed_on(sent, fields, APIS[call.api].profile(asked.model), made, dialog.view())
        call.place = dialog.calls.record(call.request)
        line.asked, line.calls, call.line, call.kept = True, False, line, asked.kept

    def end(self, call: ProxiedCall, copy: AnswerCopy) -> None:
        """Record the answer to a request: as a message where it is whole, else as an error, with the part that came.

        Raises:
            StoreError: The store cannot be written.
        """
        line, request = call.line, call.request
        if line is None or request is None:  # its request could not be recorded
            return
        line.asked = False
        message, whole, error = read_answer(copy, request)
        if message is not None and whole:
            if self.mender is not None:
                self.mender.learn(call.api, request.fields, request.model, message)
            handle = _answered(line, call, message)
            line.said.add([message])
            line.ends[line.said.ends[-1]] = handle
            line.response, line.calls = call.kept or message.response_id or "", message.is_function_call
        if error:
            facts = {"message": error, "model": request.model, "status": copy.status}
            part = [] if message is None or whole else [attempt_entry(RejectedAnswer(message, PARTIAL, error))]
            line.dialog.record(*part, ErrorEntry(error="ProviderError", data=facts))

    def _session(self, name: str) -> _KnownSession:
        known = self._sessions.get(name)
        if known is None:
            made = Session.open(self.store, name, create=True) if name else Session.create(self.store)
            known = self._sessions[name] = _KnownSession(made)
        self._sessions.move_to_end(name)
        while len(self._sessions) > _OPEN:
            self._sessions.popitem(last=False)
        return known


def _answered(line: KnownDialog, call: ProxiedCall, message: Message) -> Handle:
    """Record an answer after its call: where another program continued the dialog in between, on a branch."""
    try:
        return line.dialog.record(*(MessageEntry(message=part) for part in line.dialog.opened.stamped(message)))[-1]
    except Conflict:
        line.dialog = line.dialog.fork(at=call.place)
        return line.dialog.record(*(MessageEntry(message=part) for part in line.dialog.opened.stamped(message)))[-1]


class _KnownSession:
    """A session, and the dialogs of it that requests may continue.

    Attributes:
        session: The session.
        lines: The dialogs, in the order in which they were made.
    """

    def __init__(self, session: Session) -> None:
        """Read the dialogs."""
        self.session = session
        self._main = session.record.root
        self.lines = [line for dialog in session.dialogs[-_DIALOGS:] if (line := _read(dialog)).said.pieces]

    def opened(self, asked: ReadRequest, said: Spoken, store: Store) -> tuple[KnownDialog, Spoken, int]:
        """Return the dialog for a request, what is said in it with the request, and the index of the request's first message that it does not have."""
        instructions = _digest(_as_stored(store, asked.system), asked.tools)
        before = next(
            (line for line in reversed(self.lines) if asked.previous and line.response == asked.previous), None
        )
        if before is not None and not before.asked:
            said = before.said.upto(len(before.said.ends))
            said.add(asked.messages(0))
            before.instructions = instructions
            self._lead(before.dialog)
            return before, said, 0
        where = place(self.lines, said, instructions)
        line = self._line(where, instructions)
        return line, said, said.ends.index(where.shared) + 1 if where.shared else 0

    def _line(self, where: Continuation, instructions: bytes) -> KnownDialog:
        if where.line is not None and not where.fork:
            where.line.instructions = instructions
            self._lead(where.line.dialog)
            return where.line
        if where.line is None:
            line = KnownDialog(self._dialog(instructions), Spoken(), instructions=instructions)
        else:
            child = where.line.dialog.fork(at=where.line.ends[where.shared])
            ends = {end: handle for end, handle in where.line.ends.items() if end <= where.shared}
            line = KnownDialog(child, Spoken(), ends=ends, instructions=instructions)
        self.lines = [*self.lines, line][-_DIALOGS:]
        return line

    def _lead(self, dialog: Dialog) -> None:
        """Make a dialog that goes on the main one of its session. A question aside, such as one for a title, never goes on; a sub-agent's is never the main one."""
        if dialog.dialog_id != self._main and not _subordinate(dialog):
            self._main = dialog.dialog_id
            self.session.store.update_session(self.session.session_id, root=self._main)

    def _dialog(self, instructions: bytes) -> Dialog:
        """Return a dialog for a new conversation: the first of the session; one of a sub-agent, if an agent waits for tools; else one beside the others."""
        session, node = self.session, None
        if not self.lines and not any(len(dialog.messages) for dialog in session.dialogs):
            return session.root
        owner = f"agent-{instructions.hex()[:6]}"
        caller = next((line for line in self.lines if line.calls and line.instructions != instructions), None)
        if caller is not None:
            node = child_of(caller.dialog.opened.node, (), 0, relation="subagent", owner=owner)
        else:
            node = Node(dialog_id=new_dialog_id(session.session_id), session_id=session.session_id, owner=owner)
        return session.opened.new_dialog(node)


def _subordinate(dialog: Dialog) -> bool:
    """Return whether a dialog is a sub-agent's, or a fork of one."""
    parent = dialog.parent
    return dialog.opened.node.relation == "subagent" or (parent is not None and _subordinate(parent))


def _read(dialog: Dialog) -> KnownDialog:
    """Read a dialog of the store."""
    line, view = KnownDialog(dialog, Spoken()), dialog.view()
    for span in dialog.opened.spans():
        for seq, body in every_body(dialog.store, span):
            entry = decode_entry(body)
            if isinstance(entry, MessageEntry):
                line.said.add([entry.message])
                line.ends[line.said.ends[-1]] = Handle(span.dialog, seq)
                line.response = entry.message.response_id or ""
    line.instructions = _digest(_system(view), view.tools)
    return line


def _state(view: View, asked: ReadRequest, store: Store) -> Iterator[Entry]:
    """Yield the instructions, tools and model of a request where others are in force."""
    if _as_stored(store, asked.system) != _system(view):
        yield Instructions(sections=(Section(name="system", text=asked.system),) if asked.system else ())
    if asked.tools != view.tools:
        yield Toolset(tools=asked.tools)
    if asked.model != view.model:
        yield ModelChange(model=asked.model, provider=APIS[asked.api].maker)


def _system(view: View) -> str:
    return "\n\n".join(words_of(block.content) for block in view.system)


def _as_stored(store: Store, text: str) -> str:
    return store.redactor.redact(text).text if isinstance(store, RedactingStore) else text


def _digest(system: str, tools: Sequence[ToolSpec]) -> bytes:
    """Return the digest of instructions and tools, by which agents are told apart."""
    return sha256(canonical_json([system, [tool.name for tool in tools]])).digest()
