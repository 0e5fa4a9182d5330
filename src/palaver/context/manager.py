"""Context managers: functions from a dialog to the dialog that the model sees; the dialog that they work on, and the view of its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from palaver.errors import PalaverError, PolicyFailed
from palaver.log import Handle, Span
from palaver.messages import Message, Role, TextContent
from palaver.plurals import a_type
from palaver.view import Block, Exchange, Omission, Reason, View, fold_messages

__all__ = ["ContextManager", "WorkingDialog", "managed_view"]


class _ClassName:
    """Return the name of the class for managers that set none; the class itself has no name, so that a registry refuses it."""

    def __get__(self, instance: object, owner: type) -> str:
        if instance is None:
            message = f"{owner.__name__} sets no name"
            raise AttributeError(message, name="name", obj=owner)
        return owner.__name__


class ContextManager(ABC):
    """A function from a dialog to the dialog that the model sees.

    `compose` sends the result exactly, with everything that the manager added, rewrote, reordered or redacted. The dialog itself never changes.
    Subclass it, set `name`, and register the class with a runtime to use it by name in a configuration.

    Attributes:
        name: The name in registries and records. A class without a name cannot be registered; its objects use the class name.
    """

    name: ClassVar[str] = cast("str", _ClassName())

    @abstractmethod
    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - users' managers take and return dialogs of their own kind
        """Return the dialog to send: the same object, or another one made from it."""


class WorkingDialog:
    """A dialog over a view: what a plain context manager is called with where no other dialog exists.

    Nothing that happens to it reaches the log. A message that the manager keeps, as the same object, keeps its place in the log. Every other message is the
    manager's own and is sent unchanged.

    Attributes:
        owner: The agent's name, or empty.
        dialog_id: The dialog's id.
        parent: The dialog that this one is a fork of, or None.
    """

    def __init__(self, view: View, *, owner: str = "") -> None:
        """Make a dialog of a view."""
        self._source = _AsMessages(view)
        self._messages: list[Message] = list(self._source.messages)
        self.owner = owner
        self.dialog_id = view.dialog_id
        self.parent: WorkingDialog | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, instructions first; each tool result is a message of its own."""
        return tuple(self._messages)

    @property
    def head(self) -> Message | None:
        """The first message, or None."""
        return self._messages[0] if self._messages else None

    @property
    def tail(self) -> Message | None:
        """The last message, or None."""
        return self._messages[-1] if self._messages else None

    def append(self, message: Message) -> Message:
        """Append a message."""
        self._messages.append(message)
        return message

    def put_text(
        self, text: str, name: str = "", metadata: Mapping[str, Any] | None = None, role: Role = Role.USER
    ) -> Message:
        """Append a text."""
        return self.append(
            Message(role=role, contents=(TextContent(content=text),), name=name, metadata=dict(metadata or {}))
        )

    def fork(self, last_n: int = 0, first_k: int = 1) -> WorkingDialog:
        """Return a child with the first `first_k` and the last `last_n` messages; with all of them where `last_n` is 0 or they overlap."""
        kept = self._messages
        if last_n > 0 and last_n + first_k < len(kept):
            kept = [*kept[:first_k], *kept[-last_n:]]
        return self.with_messages(kept)

    def with_messages(self, messages: Iterable[Message]) -> WorkingDialog:
        """Return a child with these messages."""
        child = WorkingDialog.__new__(WorkingDialog)
        child._source = self._source  # noqa: SLF001 - another of its own
        child._messages = list(messages)  # noqa: SLF001
        child.owner, child.dialog_id, child.parent = self.owner, self.dialog_id, self
        return child

    def view(self) -> View:
        """Return the view of its messages; the view it was made of when they are still the same."""
        return self._source.view_of(self._messages)


def managed_view(view: View, manager: ContextManager, dialog: Any = None) -> View:  # noqa: ANN401 - whatever dialog the caller has
    """Return the view of what a plain context manager returns, with an omission for everything of `view` that it left out.

    Args:
        view: The view.
        manager: The manager.
        dialog: What it is called with; a `WorkingDialog` over the view by default.

    Raises:
        PolicyFailed: The manager raised, or returned something that has neither `view()` nor `messages`.
    """
    given: Any = WorkingDialog(view) if dialog is None else dialog
    try:
        made = manager(given)
    except PalaverError:
        raise
    except Exception as error:
        raise PolicyFailed(manager.name, error) from error
    if made is given and dialog is not None:
        return view
    if callable(getattr(made, "view", None)):
        shown: View = made.view()
    elif hasattr(made, "messages"):
        shown = _AsMessages(view).view_of(tuple(made.messages))
    else:
        hint = "Return the dialog it was called with, or one made from it; a function without return returns None."
        raise PolicyFailed(manager.name, TypeError(f"it returned {a_type(made)}, not a dialog"), hint=hint)
    return shown if shown is view else _with_omissions(view, shown, manager.name)


def _with_omissions(view: View, shown: View, by: str) -> View:
    """Return a view with an omission for each entry of another view that it does not show."""
    still = {place for exchange in shown.exchanges for place in exchange.entries()}
    still |= {_entry(block.origin) for block in shown.system if block.origin is not None}
    gone = [
        Omission(reason=Reason.MANAGER, span=Span(place.dialog, place.seq, place.seq + 1), by=by)
        for place in _entries(view)
        if place not in still
    ]
    policies = view.policies if by in view.policies else (*view.policies, by)
    return replace(
        view,
        system=shown.system,
        exchanges=shown.exchanges,
        omissions=(*view.omissions, *gone),
        policies=policies,
    )


def _entries(view: View) -> Iterator[Handle]:
    yield from (_entry(block.origin) for block in view.system if block.origin is not None)
    for exchange in view.exchanges:
        yield from exchange.entries()


def _entry(place: Handle) -> Handle:
    return Handle(place.dialog, place.seq)


class _AsMessages:
    """A view as messages, and messages as a view again: kept messages keep their place in the log."""

    def __init__(self, view: View) -> None:
        view.load()
        self._view = view
        self._blocks: dict[str, tuple[Message, tuple[Block, ...]]] = {}
        self._whole: dict[tuple[str, ...], Exchange] = {}
        for exchange, made in view.by_message():
            self._blocks |= {message.id: (message, blocks) for message, blocks in made}
            if exchange is not None:
                self._whole[tuple(message.id for message, _ in made)] = exchange
        self.messages = [message for message, _ in self._blocks.values()]

    def view_of(self, messages: Sequence[Message]) -> View:
        """Return the view of messages; the view itself when they are its own, unchanged."""
        kept = [self._kept(message) for message in messages]
        if None not in kept and [message.id for message in messages] == [message.id for message in self.messages]:
            return self._view
        folded = fold_messages(messages, self._view.dialog_id)
        system = tuple(_moved(block, kept) for block in folded.system)
        exchanges = tuple(self._exchange(exchange, messages, kept) for exchange in folded.exchanges)
        return replace(self._view, system=system, exchanges=exchanges)

    def _kept(self, message: Message) -> tuple[Block, ...] | None:
        """Return the blocks of the view that a message shows unchanged; None where it is the manager's own."""
        known = self._blocks.get(message.id)
        return known[1] if known is not None and (known[0] is message or known[0] == message) else None

    def _exchange(
        self, folded: Exchange, messages: Sequence[Message], kept: Sequence[tuple[Block, ...] | None]
    ) -> Exchange:
        """Return the exchange of the view when all of it was kept; else what the messages say, with the origins of those that were."""
        places = [place.seq for place in folded.entries()]
        whole = self._whole.get(tuple(messages[seq].id for seq in places))
        if whole is not None and all(kept[seq] is not None for seq in places):
            return whole
        turns = [replace(turn, blocks=tuple(_moved(block, kept) for block in turn.blocks)) for turn in folded.turns]
        origins = [block.origin for seq in places for block in kept[seq] or () if block.origin is not None]
        runs = [Span(place.dialog, place.seq, place.seq + 1) for place in dict.fromkeys(map(_entry, origins))]
        made = Exchange.of(turns, runs=runs, open=folded.open, messages=folded.messages)
        return replace(made, size=folded.size)


def _moved(block: Block, kept: Sequence[tuple[Block, ...] | None]) -> Block:
    """Return a folded block with its origin in the log, or without one."""
    if block.origin is None or block.origin.block is None:
        return block
    own = kept[block.origin.seq]
    if own is None:
        return replace(block, origin=None)
    was = own[block.origin.block]
    return was if was.content == block.content else replace(block, origin=was.origin)
