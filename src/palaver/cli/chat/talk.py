"""The state of a chat: an agent, its session, and the branch that it talks on. All of it is in the store."""

from __future__ import annotations

from pathlib import Path

from palaver.agent import Agent, ProviderInvoker
from palaver.agent.turn import read_turn
from palaver.cli.chat.screen import Screen
from palaver.errors import InvalidInput
from palaver.log import last_of, lineage
from palaver.messages import Role
from palaver.plurals import counted
from palaver.providers import connect_model
from palaver.session import Dialog, Session
from palaver.session.branches import Rewind
from palaver.store.metadata import change_metadata

MODEL = "chat_model"
"""The key of a session's metadata that records the model, so that a session is resumed without naming it again."""


class Talk:
    """A chat.

    Attributes:
        agent: The agent that answers.
        session: The session.
        spec: The model's string.
        screen: Where the chat is shown, and messages come from.
        yes: Whether calls that need a decision run without a question.
        new: Whether the session was made for this chat.
    """

    def __init__(self, agent: Agent, dialog: Dialog | None, name: str, spec: str, screen: Screen, *, yes: bool) -> None:
        """Resume a dialog, or make a new session of this name with the agent's prompt.

        Raises:
            InvalidInput: The agent has a prompt, and so has the session.
        """
        self.agent, self.spec, self.screen, self.yes = agent, spec, screen, yes
        self.new = dialog is None
        prompt = agent.system_prompt
        if dialog is not None and prompt.prompt:
            raise InvalidInput(f"The session {dialog.session.name!r} exists.", hint="--system is for a new session.")
        dialog = dialog or Session.create(agent.store, name, owner=agent.name, workdir=str(Path.cwd())).newest
        self.session = dialog.session
        if prompt.prompt:
            dialog.put_prompt(prompt, role=Role.SYSTEM, name="system")
        self.talk_on(dialog)
        self._record_model()

    @property
    def dialog(self) -> Dialog:
        """The branch that is talked on, as it is now."""
        return self.agent.current_dialog.reload()

    def talk_on(self, dialog: Dialog) -> None:
        """Talk on a branch, and show where it ends."""
        if dialog.dialog_id not in self.agent.dialogs:
            self.agent.adopt(dialog.dialog_id, dialog, instructions="dialog", switch=False)
        self.agent.switch(dialog.dialog_id)
        if not self.new:
            last = "" if dialog.tail is None else self.screen.cut(dialog.tail.text_content(), 72)
            self.screen.note(f"Branch {dialog.dialog_id[:8]}, {counted(len(dialog.messages), 'message')}: {last}")

    def rewind(self, back: int) -> Rewind[Dialog]:
        """Preview going back to before the user's last messages, so many of them.

        Raises:
            InvalidInput: There are fewer.
        """
        messages = self.dialog.messages
        said = [index for index, message in enumerate(messages.bare()) if message.role is Role.USER]
        if not 0 < back <= len(said):
            raise InvalidInput(f"This branch has {counted(len(said), 'message')} of yours.")
        place = messages.handle(said[-back])
        before = lineage(self.agent.store.node(place.dialog), place.seq)
        return self.session.rewind(last_of(before), self.dialog)

    def unfinished(self) -> str:
        """Return what is left of a turn: `open`, `interrupted`, `waiting`, `failed` or `unanswered`; empty where nothing is."""
        turn = read_turn(self.agent.store, self.dialog.dialog_id)
        if turn.began >= 0 and not turn.over:
            return "open" if turn.open else turn.outcome
        tail = self.dialog.tail
        return "unanswered" if turn.inbox or (tail is not None and tail.role in {Role.USER, Role.TOOL}) else ""

    def ask_model(self, spec: str) -> None:
        """Have another model answer from now on.

        Raises:
            InvalidInput: The string names none.
            MissingExtra: The package of its provider is not installed.
        """
        provider, self.agent.model = connect_model(spec)
        self.agent.llm_invoker = ProviderInvoker(provider)
        self.spec = spec
        self._record_model()

    def _record_model(self) -> None:
        change_metadata(self.agent.store, self.session.session_id, lambda known: {**known, MODEL: self.spec})
