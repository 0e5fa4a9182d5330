"""What is said to an agent: into the conversation, or into the inbox of the turn that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from palaver.agent.deciding import Deciding
from palaver.agent.hands import HANDS
from palaver.agent.inbox import beside
from palaver.errors import Conflict, InvalidInput
from palaver.log.entries import Inbox
from palaver.messages import Content, ImageContent, Message, Role, TextContent
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.session.dialog.pictures import media_from
from palaver.session.dialog.words import as_mapping, said, stamped
from palaver.store.blocks import require_no_block

__all__ = ["Hearing"]


class Hearing(Deciding):
    """Named dialogs that can be spoken to at any time, from any thread."""

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
        with HANDS.looking(dialog.store) as mine:
            if mine and dialog.dialog_id not in HANDS.held and not _in_turn(dialog):
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
            InvalidInput: A turn of it is going on, or this thread is inside a block of its store.
        """
        require_no_block(dialog.store, "A turn")
        with HANDS.lock:
            if dialog.dialog_id in HANDS.held:
                raise InvalidInput(
                    "This process is answering in this dialog already.",
                    hint="receive() a message for the turn that goes on, or fork the dialog.",
                )
            HANDS.held.add(dialog.dialog_id)
        try:
            yield
        finally:
            with HANDS.lock:
                HANDS.held.discard(dialog.dialog_id)


def _in_turn(dialog: Dialog) -> bool:
    return dialog.store.last(dialog.dialog_id).open_turn >= 0
