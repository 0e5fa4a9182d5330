"""The blocks a message consists of: text, images, sound, thinking, tool calls and tool results.

A block of an unknown type is kept whole as :class:`UnknownContent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Tag

from palaver.errors import InvalidMessage
from palaver.messages.frozen import EMPTY, Replaced, freeze
from palaver.messages.media import Media, MediaKind
from palaver.messages.roles import ToolKind
from palaver.messages.value import JsonObject, Value, canonical_json, listed, read_object

if TYPE_CHECKING:
    from typing import Self


MALFORMED = "malformed_arguments"
"""The key under which arguments that are not a JSON object are sent, where a provider requires one."""


class TextContent(Value):
    """Plain text."""

    type: Literal["text"] = "text"
    content: str = ""

    if TYPE_CHECKING:

        def __init__(self, content: str = "") -> None:
            """Construct a block of plain text."""


class MediaBlock(Value):
    """What blocks of images and of sounds share."""

    _kind: ClassVar[MediaKind]
    _field: ClassVar[str]
    """The field with the media."""

    @classmethod
    def _from_python(cls, values: dict[str, Any]) -> dict[str, Any]:
        return cls._read(values, Media.of)

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        return cls._read(values, Media.of_data)

    @classmethod
    def _read(cls, values: dict[str, Any], reader: Callable[[object, MediaKind], Media]) -> dict[str, Any]:
        sources = listed(values.get(cls._field), "Images and sounds")
        return values | {cls._field: tuple(reader(source, cls._kind) for source in sources)}

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read one from a file, now."""
        return cls.from_dict({cls._field: (Media.from_file(path, cls._kind),)})

    @property
    def media(self) -> tuple[Media, ...]:
        """The images or sounds."""
        found: tuple[Media, ...] = getattr(self, self._field)
        return found

    def with_media(self, media: Iterable[Media]) -> Self:
        """Return the block with other media."""
        return self.model_copy(update={self._field: tuple(media)})

    def to_base64(self) -> list[tuple[str, str]]:
        """Return (base64, type) for each, or (address, "").

        Raises:
            NotFound: The bytes of one are not in memory.
        """
        return [each.to_base64() for each in self.media]


class ImageContent(MediaBlock):
    """One or more images; the constructor accepts bytes, base64, addresses, path objects and Pillow images."""

    _kind = "image"
    _field = "images"

    type: Literal["image"] = "image"
    images: tuple[Media, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, images: Iterable[object] = ()) -> None:
            """Construct a block of images: path objects, bytes, base64, addresses, Pillow images or `Media`."""

    @classmethod
    def from_url(cls, url: str) -> ImageContent:
        """Refer to one image by its address."""
        return cls(images=(Media.from_text(url),))


class AudioContent(MediaBlock):
    """One or more sounds; the constructor accepts bytes, base64, ``file:<path>``, path objects and addresses."""

    _kind = "audio"
    _field = "audio"

    type: Literal["audio"] = "audio"
    audio: tuple[Media, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, audio: Iterable[object] = ()) -> None:
            """Construct a block of sounds: path objects, bytes, base64, addresses or `Media`."""

    @classmethod
    def from_base64(cls, data: str, mime_type: str | None = None) -> AudioContent:
        """Read one sound from base64; the claimed type counts only where its first bytes are unknown."""
        return cls(audio=(Media.from_text(data, "audio", mime_type or ""),))


class ThinkingContent(Value):
    """What a model thought, with what its provider needs to accept it back.

    Attributes:
        content: The text, as far as the provider shows it.
        signature: Anthropic's proof, sent back unchanged.
        redacted: Anthropic's encrypted thinking, sent back in place of text.
        provider: Whose artefact this is, or empty.
        model: The model it belongs to, or empty; others refuse it.
        artefact: The provider's own item, such as OpenAI's reasoning item with its encrypted content.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"artefact"})

    type: Literal["thinking"] = "thinking"
    content: str = ""
    signature: str = ""
    redacted: str = ""
    provider: str = ""
    model: str = ""
    artefact: JsonObject = EMPTY

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str = "",
            signature: str = "",
            *,
            redacted: str = "",
            provider: str = "",
            model: str = "",
            artefact: Mapping[str, Any] = EMPTY,
        ) -> None:
            """Construct a block of what a model thought."""


class ToolCallContent(Value):
    """A tool that the model wants to run.

    Attributes:
        id: Pairs the call with its result.
        name: The tool's name.
        kind: What sort of tool, for user interfaces.
        args: The arguments; empty if they could not be read.
        raw_args: The arguments as the model wrote them, kept where writing ``args`` would give another text.
        error: Why ``raw_args`` could not be read, or None.
        artefact: What the provider wants back with the call, such as Gemini's thought signature.
        consent: Whether the provider runs it, and a person must agree first. Its result says whether they did: an error is a no.
        warned: Whether the provider warns of it, so that a person must approve it before it runs. The artefact says of what.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"args", "artefact"})
    _reread: ClassVar[str | None] = "raw_args"

    type: Literal["tool_call"] = "tool_call"
    id: str = ""
    name: str = ""
    kind: ToolKind | None = None
    args: JsonObject = EMPTY
    raw_args: str | None = None
    error: str | None = None
    artefact: JsonObject = EMPTY
    consent: bool = False
    warned: bool = False

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields
            self,
            id: str = "",  # noqa: A002 - the field's name
            name: str = "",
            kind: ToolKind | str | None = None,
            args: Mapping[str, Any] | str = EMPTY,
            *,
            raw_args: str | None = None,
            error: str | None = None,
            artefact: Mapping[str, Any] = EMPTY,
            consent: bool = False,
            warned: bool = False,
        ) -> None:
            """Construct a call; arguments may be the JSON text that the model wrote."""

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read arguments that come as text; keep unreadable ones with the reason."""
        was_text = isinstance(values.get("args"), str)
        if was_text:
            values["raw_args"] = values.pop("args")
        raw = values.get("raw_args")
        if not isinstance(raw, str) or values.get("args"):
            return values
        found: list[Replaced] = []
        try:
            args = freeze(read_object(raw), "args", found)
        except ValueError as error:
            return values | {"args": EMPTY, "error": values.get("error") or str(error)}
        if found and (was_text or not values.get("changes")):  # a stored call has recorded them
            values["changes"] = (*values.get("changes", ()), *found)
        if was_text and canonical_json(args).decode() == raw:
            values["raw_args"] = None
        return values | {"args": args}

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Leave out arguments that are read again from their text."""
        stored = super().stored_fields()
        if self.raw_args is None or self.error is not None:
            return stored
        return [item for item in stored if item[0] != "args"]

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them, even where that is malformed; else as canonical JSON."""
        return canonical_json(self.args).decode() if self.raw_args is None else self.raw_args

    @property
    def json_arguments(self) -> str:
        """The arguments as the text of a JSON object that any provider accepts; malformed ones are under ``MALFORMED``."""
        if self.error is not None:
            return canonical_json({MALFORMED: self.raw_args or ""}).decode()
        return self.arguments if self.arguments.strip() else "{}"


class UnknownContent(Value):
    """A block of a type this version does not know, kept with all its fields."""

    type: str

    if TYPE_CHECKING:

        def __init__(self, *, type: str, **more: object) -> None: ...  # noqa: A002 - the field's name

    @classmethod
    def _class_for(cls, _values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a field is named `type`
        return cls  # every name is a keyword

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("type") in _TYPES:
            raise InvalidMessage(f"A block of type {values['type']!r} has a class of its own.")
        return values


_TYPES = frozenset({"text", "image", "audio", "thinking", "tool_call", "tool_result"})


def _type_of(value: Any) -> str:  # noqa: ANN401 - a block or its fields
    """Return the branch of the union for a block; `unknown` for UnknownContent."""
    found = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    known = isinstance(found, str) and found in _TYPES and not isinstance(value, UnknownContent)
    return str(found) if known else "unknown"


ResultContent: TypeAlias = Annotated[
    Annotated[TextContent, Tag("text")]
    | Annotated[ImageContent, Tag("image")]
    | Annotated[AudioContent, Tag("audio")]
    | Annotated[UnknownContent, Tag("unknown")],
    Discriminator(_type_of),
]
"""A block inside a tool's result."""


class ToolResultContent(Value):
    """What a tool returned.

    Attributes:
        id: The id of the call it answers.
        content: Text, or blocks of text and media.
        is_error: The tool failed; the content says how.
        metadata: For the program; never sent to a model.
        terminate: The loop may stop without asking the model again; never sent either.
        name: The tool's name, if the source has it.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"metadata"})

    type: Literal["tool_result"] = "tool_result"
    id: str = ""
    content: str | tuple[ResultContent, ...] = ""
    is_error: bool = False
    metadata: JsonObject = EMPTY
    terminate: bool = False
    name: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str = "",  # noqa: A002 - the field's name
            content: str | Iterable[ResultContent] = "",
            *,
            is_error: bool = False,
            metadata: Mapping[str, Any] = EMPTY,
            terminate: bool = False,
            name: str | None = None,
        ) -> None:
            """Construct the result of the call with this id."""

    def text(self) -> str:
        """Return the text of the content, parts joined by a line break."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.content for part in self.content if isinstance(part, TextContent))


Content: TypeAlias = Annotated[
    Annotated[TextContent, Tag("text")]
    | Annotated[ImageContent, Tag("image")]
    | Annotated[AudioContent, Tag("audio")]
    | Annotated[ThinkingContent, Tag("thinking")]
    | Annotated[ToolCallContent, Tag("tool_call")]
    | Annotated[ToolResultContent, Tag("tool_result")]
    | Annotated[UnknownContent, Tag("unknown")],
    Discriminator(_type_of),
]
"""A block of a message, distinguished by ``type``."""

SystemContent: TypeAlias = TextContent
UserContent: TypeAlias = TextContent | ImageContent | AudioContent | ToolResultContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCallContent
ToolContent: TypeAlias = ToolResultContent


def words_of(content: Content) -> str:
    """Return a block's words for searching and quoting: text, a result, or a call's name and arguments, as canonical JSON unless they cannot be read."""
    match content:
        case TextContent() | ThinkingContent():
            return content.content
        case ToolCallContent():
            args = canonical_json(content.args).decode() if content.error is None else content.raw_args
            return f"{content.name} {args}"
        case ToolResultContent():
            return content.text()
        case _:
            return ""
