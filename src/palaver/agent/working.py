"""The dialog as one model call sees it, built for each call and never written back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from palaver.agent.turn import REFUSED, RejectedAnswer
from palaver.context.working import WorkingDialog
from palaver.ids import BlobId
from palaver.messages import Message, Role, Speaker, TextContent
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.view import Block, Exchange, Turn, View
from palaver.wire import Call, Memo, Profile, Request
from palaver.wire import compile as compile_request

__all__ = ["WorkingCopy", "notices", "with_notices"]


class WorkingCopy:
    """The dialog as one model call sees it: what an invoker gets.

    Attributes:
        dialog: The dialog itself.
        top_prompt: The prompt that governs the call.
    """

    def __init__(self, dialog: Dialog, view: View, prompt: Prompt | None = None, memo: Memo | None = None) -> None:
        self.dialog = dialog
        self.top_prompt = prompt
        self._view = view
        self._memo = memo

    @property
    def dialog_id(self) -> str:
        """The dialog's id."""
        return self.dialog.dialog_id

    @property
    def owner(self) -> str:
        """The agent that owns the dialog."""
        return self.dialog.owner

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model sees, as messages; instructions first."""
        return WorkingDialog(self._view).messages

    def view(self) -> View:
        """Return what the model sees."""
        return self._view

    def request(self, profile: Profile, model: str, **call: Any) -> Request:  # noqa: ANN401 - the fields of a Call
        """Compile the request for a provider.

        Raises:
            InvalidRequest: It breaks a rule of its provider: a defect of palaver.
        """
        store = self.dialog.store
        made = Call(model=model, **call)
        request = compile_request(self._view, profile, made, lambda digest: store.blob(BlobId(digest)), self._memo)
        request.check()
        return request


def notices(attempts: Sequence[RejectedAnswer], closing: str, model: str) -> Iterator[Exchange]:
    """Yield the exchanges after the conversation: refused answers with their repairs, and the request for the final answer.

    Args:
        attempts: The answers since the newest message that never became messages.
        closing: What asks for the answer when no more tools are allowed, or empty.
        model: The model.
    """
    for attempt in attempts:
        if attempt.why == REFUSED and attempt.repair:
            text = attempt.message.text_content()
            if text.strip():
                yield _answer(attempt.message, text, model)
            yield _notice(attempt.repair)
    if closing:
        yield _notice(closing)


def with_notices(view: View, after: Sequence[Exchange]) -> View:
    """Return a view with derived exchanges at its end; the same view without any."""
    return replace(view, exchanges=(*view.exchanges, *after)) if after else view


def _answer(message: Message, text: str, model: str) -> Exchange:
    """Return the text of a refused answer. Its thinking was signed for another conversation."""
    block = Block(content=TextContent(content=text), derived="notice", speaker=Speaker.MODEL, trust=Speaker.MODEL.trust)
    turn = Turn(role=Role.ASSISTANT, blocks=(block,), model=message.model or model)
    return Exchange.of((turn,), pinned=True, derived="notice")


def _notice(text: str) -> Exchange:
    """Return a notice of the harness to the model."""
    speaker = Speaker.HARNESS
    block = Block(content=TextContent(content=text), derived="notice", speaker=speaker, trust=speaker.trust)
    return Exchange.of((Turn(role=Role.USER, blocks=(block,)),), pinned=True, derived="notice")
