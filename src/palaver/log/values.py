"""Values that are part of entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, ValidationInfo, model_serializer

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log.handles import Handle, Span
from palaver.messages import freeze
from palaver.messages.frozen import STORED
from palaver.messages.value import Stored

JsonValue: TypeAlias = Annotated[Any, AfterValidator(freeze)]
"""A value that JSON can write, read-only. Entries keep what other programs recorded, whatever its shape."""


def exact_json(value: object) -> str:
    """Return a JSON value as ASCII text, from which it comes back equal: with NUL, lone surrogates and its order of keys.

    Raises:
        InvalidInput: It does not come back equal: it has NaN or an infinity, a key that is not a string, a tuple, or another object.
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"This is not JSON: {error}.", hint="Pass dicts, lists, strings, numbers, bools and None."
        ) from error
    if not same:
        raise InvalidInput("JSON would change this value.", hint="Use lists instead of tuples, and strings as keys.")
    return text


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _json_text(text: str, info: ValidationInfo) -> str:
    if info.context is STORED:
        return text
    if not text.isascii():
        raise ValueError("it has characters outside ASCII")
    try:
        json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return text


JsonText: TypeAlias = Annotated[str, AfterValidator(_json_text)]
"""A JSON value as ASCII text, which every store keeps as it is."""


class LogValue(Stored):
    """A part of an entry. Its stored form has every field but None."""

    _sparse: ClassVar[bool] = False

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Leave out known fields that are None; a field that another version wrote is kept."""
        known = type(self).model_fields
        return {name: value for name, value in handler(self).items() if value is not None or name not in known}


class Source(LogValue):
    """Where an imported entry came from.

    Attributes:
        format: The name of the format that was read, such as `claude-code`.
        record: The format's own id of the record, or empty where it has none.
        ordinal: The record's number in its file, starting at 0.
    """

    format: str
    record: str = ""
    ordinal: int = 0


class Redaction(LogValue):
    """What was taken out of an entry before it was written; never the secret itself.

    Attributes:
        kind: Which pattern found it, such as `github-token`.
        place: Where it was: the keys and numbers on the way to the text, such as `message.contents.0.content`.
        count: How many there were.
    """

    kind: str
    place: str
    count: int = 1


class Erasure(LogValue):
    """The mark of an erased entry.

    Attributes:
        at: When, in seconds since 1970-01-01 UTC.
        receipt: The id of the receipt.
    """

    at: float
    receipt: str


class BoundTo(LogValue):
    """What the request of an answer had before it, in digests: a provider binds thinking to it.

    Attributes:
        prefix: The digest of its instructions, tools and messages, without what was bound itself.
        last: The digest of the bound content of the last answer in it that had any, or empty.
        count: How many answers in it had bound content.
    """

    prefix: str
    last: str = ""
    count: int = 0


class Section(LogValue):
    """A named part of the system instructions.

    Attributes:
        name: Its name.
        text: What it says.
        behind: Whether it follows the instructions that were said as messages, so that they stay in the provider's cache when it changes. None is
            False.
    """

    name: str
    text: str
    behind: bool | None = None


BY_MODEL, BY_CODE = "model", "code"
"""Who calls a tool: the model, or code that the model wrote and the provider runs."""


class ToolSpec(LogValue):
    """A tool as it is declared to a model.

    Attributes:
        name: The name the model calls.
        description: What the tool does, for the model.
        parameters: A JSON schema of the arguments, an object schema.
        stub: Whether the declaration was reconstructed from recorded calls because the recording lacks it.
        reads: The arguments that name a file the call reads; None for none.
        writes: The arguments that name a file the call writes; None for none.
        deferred: Whether the model searches for it before it reads the declaration, where the provider has such a search. None is False.
        callers: Who may call it: `model`, and `code` that the provider runs. None for the model.
        format: The form of its one argument, which is free text: `text`, or a grammar with its `syntax` and `definition`. None for JSON arguments.
        native: The provider's own tools whose calls it runs, each with its options, where the provider has one of them; None for none.
        group: The name of the group of tools that it belongs to, with the group's description; None for none.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    stub: bool = False
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    deferred: bool | None = None
    callers: tuple[str, ...] | None = None
    format: JsonValue = None
    native: Mapping[str, JsonValue] | None = None
    group: Mapping[str, str] | None = None


class Place(LogValue):
    """A handle as it is stored: whole dialog id, entry number, block index."""

    dialog: DialogId
    seq: int
    block: int | None = None

    @classmethod
    def of(cls, handle: Handle) -> Place:
        """Return a handle in its stored form."""
        return cls(dialog=handle.dialog, seq=handle.seq, block=handle.block)

    @property
    def handle(self) -> Handle:
        """The place as a handle."""
        return Handle(self.dialog, self.seq, self.block)


class Run(LogValue):
    """A span as it is stored: entries `start` (inclusive) to `stop` (exclusive) of a dialog."""

    dialog: DialogId
    start: int
    stop: int

    @classmethod
    def of(cls, span: Span) -> Run:
        """Return a span in its stored form."""
        return cls(dialog=span.dialog, start=span.start, stop=span.stop)

    @property
    def span(self) -> Span:
        """The run as a span."""
        return Span(self.dialog, self.start, self.stop)


class BlockEdit(LogValue):
    """A block shown in another form.

    Attributes:
        target: The block that is replaced in the view; the log keeps the original.
        text: What the model sees instead; it names the handle of the original.
        reason: Why, a word of `palaver.view.Reason`.
        reversible: Whether the handle in `text` returns all that was taken out.
        sources: The entries that `text` was made from besides the block, or None.
        trust: The lowest trust among them, the name of a `palaver.messages.Trust` in lower case; None for that of the block.
    """

    target: Place
    text: str
    reason: str
    reversible: bool = True
    sources: tuple[Run, ...] | None = None
    trust: str | None = None


class Omitted(LogValue):
    """Entries or one block that a view leaves out.

    Attributes:
        run: The entries left out, or None.
        target: The block left out, or None.
        reason: Why, a word of `palaver.view.Reason`.
        by: The policy that decided it, or `palaver` for the fold.
        messages: How many messages it had.
        size: Its size in bytes of its recorded form.
    """

    run: Run | None = None
    target: Place | None = None
    reason: str
    by: str = ""
    messages: int = 0
    size: int = 0


class Derived(LogValue):
    """A derived text in the view: a record, a summary.

    Attributes:
        text: What the model sees. It is stored, so that no past view depends on running a policy again.
        label: What it is: `record`, `summary` or `notice`.
        speaker: A value of `palaver.messages.Speaker`; a summary never speaks with the user's authority.
        trust: The lowest trust among the sources, the name of a `palaver.messages.Trust` in lower case.
        sources: The entries it was made from.
        facts: What a record says, as canonical JSON, from which the next record goes on; None where the text is all there is.
    """

    text: str
    label: str = "record"
    speaker: str = "summary"
    trust: str = "outside"
    sources: tuple[Run, ...] = ()
    facts: str | None = None
