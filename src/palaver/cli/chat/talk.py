"""The state of a chat: an agent, the session it talks in, and the branch of it that is talked in. All of it lies in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count

from palaver.agent import Agent, ProviderInvoker, open_calls
from palaver.agent.turn import Turn, read_turn
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Handle, MessageEntry, Node, child_of, decode_entry
from palaver.messages import Message, Role, ToolCallContent
from palaver.models import Provider, connect_model
from palaver.models.retry import Retry
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.session.branches.rewinding import REWIND, Rewind
from palaver.store import Store
from palaver.view import held

__all__ = ["Cut", "Talk"]

MAIN = "main"
"""What the first branch is called."""

_NAME = "chat_name"
"""The key of a node's metadata that holds a branch's name."""

MODEL = "chat_model"
"""The key of a session's metadata that holds the model's string, so that a session can be taken up without naming it again."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a branch can be cut: before a message of the user.

    Attributes:
        kept: How many messages stand before it.
        gone: The messages from there on.
        looked: What going back there would do.
    """

    kept: int
    gone: tuple[Message, ...]
    looked: Rewind[Dialog]


class Talk:
    """A chat.

    Attributes:
        agent: Who answers.
        store: Where everything lies.
        spec: The model's string.
        session: The session; None before the first message.
        name: What the session is to be called when it is made, empty for a made-up name.
        workdir: The folder that the chat is held in.
        subject: Whose data the session is, or empty.
    """

    def __init__(
        self, agent: Agent, store: Store, *, spec: str, name: str = "", workdir: str = "", subject: str = ""
    ) -> None:
        self.agent = agent
        self.store = store
        self.spec = spec
        self.session: Session | None = None
        self.name = name
        self.workdir = workdir
        self.subject = subject

    # --- which session and branch -----------------------------------------------------------------------------------------------

    def begin(self) -> Dialog:
        """Give the branch that is talked in; make the session where nothing was said yet."""
        if self.session is None:
            metadata = {MODEL: self.spec} if self.spec else {}
            self.agent.system_prompt.render({})  # a prompt with variables is refused before anything is made
            self.session = Session.create(
                self.store,
                self.name,
                owner=self.agent.name,
                subject=self.subject,
                workdir=self.workdir,
                metadata=metadata,
                runtime=self.agent.runtime,
            )
            dialog = self.session.root
            if self.agent.system_prompt.prompt:
                dialog.put_prompt(self.agent.system_prompt, role=Role.SYSTEM, name="system")
            self._talk_in(dialog)
        return self.agent.current_dialog

    def take_up(self, session: Session) -> Dialog:
        """Go on with a session, in the branch with its newest entry."""
        self.session = session
        return self._talk_in(session.newest)

    @property
    def dialog(self) -> Dialog:
        """The branch that is talked in.

        Raises:
            InvalidInput: Nothing was said yet.
        """
        _ = self.held
        return self.agent.current_dialog

    @property
    def held(self) -> Session:
        """The session.

        Raises:
            InvalidInput: Nothing was said yet.
        """
        if self.session is None:
            raise InvalidInput("Nothing was said yet.", hint="Type a message first.")
        return self.session

    def _talk_in(self, dialog: Dialog) -> Dialog:
        if dialog.dialog_id not in self.agent.dialogs:
            self.agent.adopt(dialog.dialog_id, dialog, switch=False)
        self.agent.switch(dialog.dialog_id)
        return dialog

    # --- branches ---------------------------------------------------------------------------------------------------------------

    @property
    def branches(self) -> Mapping[str, Node]:
        """The branches by name, in the order in which they were made; those of sub-agents are not among them."""
        if self.session is None:
            return {}
        found: dict[str, Node] = {}
        numbers = {"fork": count(1), REWIND: count(1)}
        for node in self.store.nodes(self.session.session_id):
            if node.relation != "subagent":
                given = node.metadata.get(_NAME) or (MAIN if node.parent_id is None else "")
                if not given and node.relation in numbers:
                    given = f"{node.relation}-{next(numbers[node.relation])}"
                found[str(given) if given and given not in found else node.dialog_id[:8]] = node
        return found

    @property
    def branch(self) -> str:
        """The name of the branch that is talked in."""
        if self.session is None:
            return MAIN
        here = self.agent.current_dialog.dialog_id
        return next((name for name, node in self.branches.items() if node.dialog_id == here), here[:8])

    def switch(self, name: str) -> Dialog:
        """Talk in another branch, by its name or the first digits of its id.

        Raises:
            NotFound: There is none; the error has close matches.
        """
        branches = self.branches
        node = branches.get(name)
        if node is None and len(name) >= 6:  # noqa: PLR2004 - the fewest digits that name a dialog anywhere
            node = next((one for one in branches.values() if one.dialog_id.startswith(name)), None)
        if node is None:
            near = get_close_matches(name, branches)
            raise NotFound(name, what="branch", close=near, hint=f"There are: {', '.join(branches) or MAIN}.")
        return self._talk_in(self.held.dialog(node.dialog_id))

    def fork(self, name: str = "") -> Dialog:
        """Branch off from the end, and talk on the branch. Nothing is copied.

        Raises:
            InvalidInput: Another branch has the name.
        """
        dialog = self.dialog.reload()
        if name in self.branches:
            raise InvalidInput(f"There is a branch {name!r} already.", hint="/switch to it, or take another name.")
        ranges, kept = tuple(held(self.store, dialog.dialog_id, None)), len(dialog.messages)
        about = {_NAME: name} if name else {}
        made = child_of(self.store.node(dialog.dialog_id), ranges, kept, relation="fork", metadata=about)
        return self._talk_in(self.held.dialog(self.store.create_dialog(made).dialog_id))

    def rewind(self, cut: Cut) -> Dialog:
        """Branch off from a cut, and talk on the branch. Nothing is taken from this one.

        Raises:
            Conflict: Something was said since the cut was looked at.
        """
        return self._talk_in(cut.looked.apply())

    def cut(self, back: int) -> Cut:
        """Find the place before the user's last messages, so many of them.

        Raises:
            InvalidInput: He said fewer.
        """
        dialog = self.dialog.reload()
        places = _said_by_the_user(self.store, dialog.dialog_id)
        if back > len(places):
            raise InvalidInput(
                f"You said {counted(len(places), 'message')} in this branch.", hint=f"/rewind takes 1 to {len(places)}."
            )
        owner, seq, kept = places[-back]
        last: Handle | None = None  # what would stay last
        for span in held(self.store, dialog.dialog_id, None):
            if span.dialog == owner and span.start <= seq < span.stop:
                last = Handle(owner, seq - 1) if seq > span.start else last
                break
            last = Handle(span.dialog, span.stop - 1)
        return Cut(kept, tuple(dialog.messages[kept:]), dialog.rewind(last))

    # --- the turn -----------------------------------------------------------------------------------------------------------------

    @property
    def turn(self) -> Turn:
        """Where the turn of this branch stands."""
        return read_turn(self.store, self.dialog.dialog_id)

    @property
    def undecided(self) -> Sequence[ToolCallContent]:
        """The calls that wait for a decision, as far as the tools of this chat say."""
        return () if self.session is None else open_calls(self.dialog)

    def unfinished(self) -> str:
        """Say what is left to be done of a turn: `open`, `interrupted`, `waiting`, `failed`, or `unanswered`; empty where nothing is."""
        if self.session is None:
            return ""
        turn = self.turn
        if turn.began >= 0 and not turn.over:
            return "open" if turn.open else turn.outcome
        tail = self.dialog.tail
        return "unanswered" if turn.inbox or (tail is not None and tail.role in {Role.USER, Role.TOOL}) else ""

    # --- who answers ----------------------------------------------------------------------------------------------------------------

    def ask_model(self, spec: str) -> None:
        """Have another model answer from now on.

        Raises:
            InvalidInput: The string names none.
            MissingExtra: The package of its provider is not installed.
        """
        provider, model = connect_model(spec)
        self.use(provider, model, spec)
        if self.session is not None:
            kept = {**self.session.record.metadata, MODEL: spec}
            self.store.update_session(self.session.session_id, metadata=kept)

    def use(self, provider: Provider, model: str, spec: str) -> None:
        """Have a provider answer from now on."""
        self.agent.llm_invoker = ProviderInvoker(provider, Retry())
        self.agent.model = model
        self.spec = spec


def _said_by_the_user(store: Store, dialog_id: DialogId) -> list[tuple[DialogId, int, int]]:
    """Give the entries in which the user said something, each with the number of messages before it; reads headers, and the bodies of those."""
    found: list[tuple[DialogId, int, int]] = []
    before = 0
    for span in held(store, dialog_id, None):
        number = store.header(span.dialog, span.start - 1).number if span.start else 0
        for header in store.headers(span.dialog, span.start, span.stop):
            grown = header.number > number
            if header.kind == "message" and header.role == "user":
                entry = decode_entry(store.body(span.dialog, header.seq))
                if isinstance(entry, MessageEntry):
                    found.append((span.dialog, header.seq, before))
            before += grown
            number = header.number
    return found
