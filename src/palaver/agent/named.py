"""Named dialogs: what an agent calls its conversations, and how things are said in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Self

from palaver.agent.inbox import beside
from palaver.errors import Conflict, InvalidInput, NoActiveDialog, UnknownDialog
from palaver.ids import DialogId
from palaver.log.entries import Inbox
from palaver.messages import Content, ImageContent, Message, Role, TextContent
from palaver.prompts import Prompt, Runtime, get_default_runtime
from palaver.session import Dialog, Session
from palaver.session.pictures import media_from
from palaver.session.words import as_mapping, said, stamped
from palaver.store import MemoryStore, Store

__all__ = ["NamedDialogs"]


class _Hands:
    """Which dialogs this process answers in: one turn at a time in each, whichever agents and objects there are for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.held: set[DialogId] = set()


_HANDS = _Hands()


class NamedDialogs:
    """The dialogs of one agent by alias, of which one is talked to.

    Attributes:
        name: The agent's name; it owns its dialogs.
        system_prompt: What opens each dialog.
        runtime: What references are resolved with.
        store: Where its dialogs lie.
    """

    def __init__(self, name: str, system_prompt: Prompt | str, store: Store | None, runtime: Runtime | None) -> None:
        self.name = name
        self.runtime = runtime or get_default_runtime()
        self.system_prompt = (
            system_prompt if isinstance(system_prompt, Prompt) else self.runtime.get_prompt(system_prompt)
        )
        self.store: Store = store or MemoryStore()
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
            raise UnknownDialog(alias, what="dialog of this agent", close=near, hint=f"It has: {known}.")
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
        switch: bool = True,
    ) -> Self:
        """Begin a dialog: a session of its own, opened by the system prompt.

        Args:
            alias: What the agent calls it.
            prompt_args: The variables of the system prompt.
            session_name: The session's name; `{agent}_{alias}` when not given.
            switch: Whether to talk to it from now on.

        Raises:
            InvalidInput: The alias is in use.
            InvalidPrompt: Variables are missing; nothing was made.
        """
        self._free(alias)
        dialog = self._opened(self.store, session_name or f"{self.name}_{alias}", prompt_args)
        return self.adopt(alias, dialog, switch=switch)

    def _opened(self, store: Store, name: str, prompt_args: Mapping[str, Any] | None) -> Dialog:
        self.system_prompt.render(as_mapping(prompt_args, "prompt_args"))  # refused before anything is made
        dialog = Session.create(store, name, owner=self.name, runtime=self.runtime).root
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
        with _HANDS.lock:
            if dialog.dialog_id not in _HANDS.held:
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

    # --- what is said in them -------------------------------------------------------------------------------------------------------

    def receive(
        self, text: str, alias: str | None = None, role: Role | str = Role.USER, name: str | None = None
    ) -> Message:
        """Take a text.

        While a turn goes on, here or in another process, it is kept in the inbox at once, and delivered at the next call of the model, or
        behind the turn's answer. So is whatever the other two ways take.
        """
        dialog = self._named(alias)
        return self._said(dialog, text, role, name, lambda: dialog.put_text(text, name=name, role=role))

    def receive_prompt(
        self,
        prompt: Prompt | str,
        prompt_args: Mapping[str, Any] | None = None,
        alias: str | None = None,
        role: Role | str = Role.USER,
        name: str | None = None,
    ) -> Message:
        """Take a prompt: it is rendered, and governs the next turn.

        Raises:
            UnknownPrompt: The runtime has no prompt of this path.
            InvalidPrompt: Variables are missing.
        """
        dialog = self._named(alias)
        found = self.runtime.get_prompt(prompt) if isinstance(prompt, str) else prompt
        text = found.render(as_mapping(prompt_args, "prompt_args"))
        return self._said(dialog, text, role, name, lambda: dialog.put_prompt(found, prompt_args, name=name, role=role))

    def receive_image(
        self,
        image: object,
        caption: str | None = None,
        alias: str | None = None,
        role: Role | str = Role.USER,
        name: str | None = None,
    ) -> Message:
        """Take an image: a path, bytes, base64, an address or a Pillow image."""
        dialog = self._named(alias)
        shown = ImageContent(images=(media_from(image),))
        contents: tuple[Content, ...] = (shown,) if caption is None else (TextContent(content=caption), shown)
        return self._said(dialog, contents, role, name, lambda: dialog.put_image(image, caption, name=name, role=role))

    def _said(
        self,
        dialog: Dialog,
        content: str | tuple[Content, ...],
        role: Role | str,
        name: str | None,
        put: Callable[[], Message],
    ) -> Message:
        """Put something into a dialog that nobody has in hand; else into its inbox."""
        with _HANDS.lock:
            if dialog.dialog_id not in _HANDS.held and not _in_turn(dialog):
                dialog.reload()
                try:
                    return put()
                except Conflict:  # another process was first: with a turn, or with something that it said
                    if not _in_turn(dialog):
                        raise
        (message,) = stamped(said(dialog.dialog_id, content, name, None, role), dialog.dialog_id, dialog.store)
        beside(dialog.store, dialog.dialog_id, Inbox(message=message))
        return message

    @contextmanager
    def _in_hand(self, dialog: Dialog) -> Iterator[None]:
        """Have a dialog to itself, in this process, for a turn.

        Raises:
            InvalidInput: A turn of it is going on.
        """
        with _HANDS.lock:
            if dialog.dialog_id in _HANDS.held:
                raise InvalidInput(
                    "This process is answering in this dialog already.",
                    hint="receive() a message for the turn that goes on, or fork the dialog.",
                )
            _HANDS.held.add(dialog.dialog_id)
        try:
            yield
        finally:
            with _HANDS.lock:
                _HANDS.held.discard(dialog.dialog_id)


def _in_turn(dialog: Dialog) -> bool:
    return dialog.store.last(dialog.dialog_id).open_turn >= 0
