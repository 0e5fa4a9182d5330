"""Named dialogs: what an agent calls its conversations."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Self

from palaver.agent.hands import HANDS
from palaver.errors import InvalidInput, NoActiveDialog, NotFound, UnknownDialog
from palaver.messages import Role
from palaver.prompts import Prompt, Runtime, get_default_runtime
from palaver.session import Dialog, Session
from palaver.session.dialog.words import as_mapping
from palaver.store import Store
from palaver.store.connect import StoreLike, opened_store

__all__ = ["NamedDialogs"]


def _registered(runtime: Runtime, path: str) -> Prompt:
    """Give a prompt by its path; whoever gave the words themselves is told how that is done."""
    try:
        return runtime.get_prompt(path)
    except NotFound as error:
        hint = "A text names a registered prompt; its words themselves are given as Prompt(path=..., prompt=...)."
        raise NotFound(path, what="prompt", close=error.close, hint=hint) from error


class NamedDialogs:
    """The dialogs of one agent by alias, of which one is talked to.

    Attributes:
        name: The agent's name; it owns its dialogs.
        system_prompt: What opens each dialog.
        runtime: What references are resolved with.
        store: Where its dialogs lie.
    """

    def __init__(
        self, name: str, system_prompt: Prompt | str, store: StoreLike | None, runtime: Runtime | None
    ) -> None:
        self.name = name
        self.runtime = runtime or get_default_runtime()
        self.system_prompt = (
            system_prompt if isinstance(system_prompt, Prompt) else _registered(self.runtime, system_prompt)
        )
        self.store: Store = opened_store(store, create=True)[0]
        self._kept = store is not None
        self._aliases: dict[str, Dialog] = {}
        self._active: str | None = None

    # --- which there are --------------------------------------------------------------------------------------------------------

    @property
    def dialogs(self) -> dict[str, Dialog]:
        """Its dialogs by alias, a copy."""
        return dict(self._aliases)

    @property
    def active_alias(self) -> str | None:
        """The alias of the dialog that is talked to, or None."""
        return self._active

    @property
    def current_dialog(self) -> Dialog:
        """The dialog that is talked to.

        Raises:
            NoActiveDialog: There is none; the error is a RuntimeError too.
        """
        return self._named(None)

    def _named(self, alias: str | None) -> Dialog:
        if alias is None:
            if self._active is None:
                raise NoActiveDialog(f"The agent {self.name!r} talks to no dialog.")
            return self._aliases[self._active]
        if alias not in self._aliases:
            known = ", ".join(self._aliases) or "none"
            near = get_close_matches(alias, self._aliases)
            said = " To say something and be answered: respond(input=...)." if not near and " " in alias.strip() else ""
            raise UnknownDialog(alias, what="dialog of this agent", close=near, hint=f"It has: {known}.{said}")
        return self._aliases[alias]

    def _free(self, alias: str) -> None:
        if alias in self._aliases:
            raise InvalidInput(
                f"The agent {self.name!r} has a dialog {alias!r} already.", hint="Switch to it, or close it."
            )

    # --- making and leaving them --------------------------------------------------------------------------------------------------

    def open(
        self,
        alias: str,
        prompt_args: Mapping[str, Any] | None = None,
        session_name: str | None = None,
        *,
        subject: str = "",
        switch: bool = True,
    ) -> Self:
        """Begin a dialog: a session of its own, opened by the system prompt.

        Args:
            alias: What the agent calls it.
            prompt_args: The variables of the system prompt.
            session_name: The session's name; `{agent}_{alias}` when not given.
            subject: Whose data it is: who is talked with, most often. His memory is the agent's memory there.
            switch: Whether to talk to it from now on.

        Raises:
            InvalidInput: The alias is in use.
            InvalidPrompt: Variables are missing; nothing was made.
        """
        self._free(alias)
        dialog = self._opened(self.store, session_name or f"{self.name}_{alias}", prompt_args, subject)
        return self.adopt(alias, dialog, switch=switch)

    def _opened(self, store: Store, name: str, prompt_args: Mapping[str, Any] | None, subject: str = "") -> Dialog:
        self.system_prompt.render(as_mapping(prompt_args, "prompt_args"))  # refused before anything is made
        dialog = Session.create(store, name, owner=self.name, subject=subject, runtime=self.runtime).root
        dialog.put_prompt(self.system_prompt, prompt_args, role=Role.SYSTEM, name="system")
        return dialog

    def resume(
        self, reference: str, alias: str | None = None, *, dialog: str | None = None, switch: bool = True
    ) -> Self:
        """Take up a session of its store: `respond()` goes on with its turn, if that was cut off or waits.

        Args:
            reference: The session's id or name, or the first digits of its id.
            alias: What the agent calls the dialog; the reference when not given.
            dialog: Which dialog, by its id; when not given the newest that this agent owns, else the newest.
            switch: Whether to talk to it from now on.

        Raises:
            InvalidInput: The alias is in use.
            UnknownSession: There is no such session.
        """
        self._free(alias or reference)
        session = Session.open(reference, self.store, runtime=self.runtime)
        if dialog is not None:
            return self.adopt(alias or reference, session.dialog(dialog), switch=switch)
        own = [one for one in session.dialogs if one.owner == self.name]
        newest = max(own, key=lambda one: self.store.last(one.dialog_id).at, default=session.newest)
        return self.adopt(alias or reference, newest, switch=switch)

    def adopt(self, alias: str, dialog: Dialog, *, switch: bool = True) -> Self:
        """Call a dialog by an alias that the program made or opened itself.

        Raises:
            InvalidInput: The alias is in use.
        """
        self._free(alias)
        self._aliases[alias] = dialog
        return self.switch(alias) if switch else self

    def switch(self, alias: str) -> Self:
        """Talk to another of its dialogs.

        Raises:
            UnknownDialog: There is none of this alias; the error, a KeyError too, lists those that there are.
        """
        self._named(alias)
        self._active = alias
        return self

    def fork(self, alias: str, child_alias: str, last_n: int = 0, first_k: int = 1, *, switch: bool = True) -> Self:
        """Branch off from one of its dialogs; as `Dialog.fork`.

        Raises:
            UnknownDialog: There is none of this alias.
            InvalidInput: The child's alias is in use.
        """
        self._free(child_alias)
        dialog = self._named(alias)
        with HANDS.looking(dialog.store) as mine:
            if mine and dialog.dialog_id not in HANDS.held:
                dialog.reload()
        return self.adopt(child_alias, dialog.fork(last_n, first_k), switch=switch)

    def close(self, alias: str) -> Dialog:
        """Let go of an alias; the dialog stays where it lies, and is given back.

        Raises:
            UnknownDialog: There is none of this alias.
        """
        dialog = self._named(alias)
        del self._aliases[alias]
        self._active = None if self._active == alias else self._active
        return dialog
