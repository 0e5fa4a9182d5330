"""The blocks a message consists of: text, images, sound, thinking, tool calls and tool results.

A block of a type this version does not know is kept whole as :class:`UnknownContent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Tag

from palaver.errors import InvalidMedia, InvalidMessage
from palaver.messages.arguments import read_arguments, recorded_once, write_arguments
from palaver.messages.frozen import EMPTY
from palaver.messages.media import Media
from palaver.messages.roles import ToolKind
from palaver.messages.value import JsonObject, Value, ValueMeta

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from palaver.messages.normalize import Change

__all__ = [
    "AssistantContent",
    "AudioContent",
    "Content",
    "ImageContent",
    "SystemContent",
    "TextContent",
    "ThinkingContent",
    "ToolCallContent",
    "ToolContent",
    "ToolResultContent",
    "UnknownContent",
    "UserContent",
]


class TextContent(Value):
    """Plain text."""

    type: Literal["text"] = "text"
    content: str = ""

    if TYPE_CHECKING:

        def __init__(self, content: str = "", **more: object) -> None: ...


class _ImageMeta(ValueMeta):
    """A constructor that takes what a program has: it may read files, which validation never does."""

    def _from_python(self, values: dict[str, Any]) -> dict[str, Any]:
        if "images" in values:
            values["images"] = tuple(Media.of(source, "image") for source in _listed(values["images"]))
        return values


class _AudioMeta(ValueMeta):
    """The same for sound, where a file may also be spelt ``file:<path>``."""

    def _from_python(self, values: dict[str, Any]) -> dict[str, Any]:
        if "audio" in values:
            values["audio"] = tuple(_sound(source) for source in _listed(values["audio"]))
        return values


def _listed(value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever was passed
    """Accept any iterable of sources, refusing a single one, which iterates as characters or numbers."""
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
        raise InvalidMedia("Images and sounds are passed as a list.")
    return tuple(value)


def _sound(source: object) -> Media:
    if isinstance(source, str) and source.startswith("file:"):
        return Media.from_file(source.removeprefix("file:"), "audio")
    return Media.of(source, "audio")


class ImageContent(Value, metaclass=_ImageMeta):
    """One or more images; the constructor takes bytes, base64, addresses, path objects and Pillow images."""

    type: Literal["image"] = "image"
    images: tuple[Media, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, images: Iterable[object] = (), **more: object) -> None: ...

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn data into media, reading no file."""
        values["images"] = tuple(Media.of_data(source, "image") for source in _listed(values.get("images", ())))
        return values

    @classmethod
    def from_file(cls, path: str | Path) -> ImageContent:
        """Read one image from a file, now."""
        return cls(images=(Media.from_file(path),))

    @classmethod
    def from_url(cls, url: str) -> ImageContent:
        """Refer to one image by its address."""
        return cls(images=(Media.from_text(url),))

    def to_base64(self) -> list[tuple[str, str]]:
        """Give (base64, type) for each image, (address, "") for one that lies elsewhere.

        Raises:
            MediaUnavailable: The bytes of one are not in memory.
        """
        return [image.to_base64() for image in self.images]


class AudioContent(Value, metaclass=_AudioMeta):
    """One or more sounds; the constructor takes bytes, base64, ``file:<path>``, path objects and addresses."""

    type: Literal["audio"] = "audio"
    audio: tuple[Media, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, audio: Iterable[object] = (), **more: object) -> None: ...

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn data into media, reading no file."""
        values["audio"] = tuple(Media.of_data(source, "audio") for source in _listed(values.get("audio", ())))
        return values

    @classmethod
    def from_file(cls, path: str | Path) -> AudioContent:
        """Read one sound from a file, now."""
        return cls(audio=(Media.from_file(path, "audio"),))

    @classmethod
    def from_base64(cls, data: str, mime_type: str | None = None) -> AudioContent:
        """Take one sound as base64; the claimed type counts only where its first bytes say nothing."""
        return cls(audio=(Media.from_text(data, "audio", mime_type or ""),))

    def to_base64(self) -> list[tuple[str, str]]:
        """Give (base64, type) for each sound, (address, "") for one that lies elsewhere.

        Raises:
            MediaUnavailable: The bytes of one are not in memory.
        """
        return [sound.to_base64() for sound in self.audio]


class ThinkingContent(Value):
    """What a model thought, with what its provider needs to accept it back.

    Attributes:
        content: The text, as far as the provider shows it.
        signature: Anthropic's proof, to be sent back unchanged.
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
            **more: object,
        ) -> None: ...


class ToolCallContent(Value):
    """A tool the model wants to run.

    Attributes:
        id: Pairs the call with its result.
        name: The tool's name.
        kind: What sort of tool, for those who show it.
        args: The arguments; empty if they could not be read.
        raw_args: The arguments as the model wrote them, kept where reading and writing them would not give the same text.
        error: Why ``raw_args`` could not be read, or None.
        artefact: What the provider wants back with the call, such as Gemini's thought signature.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"args", "artefact"})

    type: Literal["tool_call"] = "tool_call"
    id: str = ""
    name: str = ""
    kind: ToolKind | None = None
    args: JsonObject = EMPTY
    raw_args: str | None = None
    error: str | None = None
    artefact: JsonObject = EMPTY

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields in the order the source documents give them
            self,
            id: str = "",  # noqa: A002 - the field's name
            name: str = "",
            kind: ToolKind | str | None = None,
            args: Mapping[str, Any] | str = EMPTY,
            *,
            raw_args: str | None = None,
            error: str | None = None,
            artefact: Mapping[str, Any] = EMPTY,
            **more: object,
        ) -> None: ...

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read arguments that come as text; what cannot be read is kept with the reason."""
        was_text = isinstance(values.get("args"), str)
        if was_text:
            values["raw_args"] = values.pop("args")
        raw = values.get("raw_args")
        if not isinstance(raw, str) or values.get("args"):
            return values
        changes: list[Change] = []
        try:
            values["args"] = read_arguments(raw, changes)
        except ValueError as error:
            return values | {"args": EMPTY, "error": values.get("error") or str(error)}
        if changes:
            values["changes"] = recorded_once(values.get("changes", ()), changes)
        if was_text and write_arguments(values["args"]) == raw:
            values["raw_args"] = None
        return values

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Leave out arguments that are read again from their text."""
        stored = super().stored_fields()
        if self.raw_args is None or self.error is not None:
            return stored
        return [item for item in stored if item[0] != "args"]

    @property
    def arguments(self) -> str:
        """The arguments as JSON text: as the model wrote them, even where that is malformed."""
        return write_arguments(self.args) if self.raw_args is None else self.raw_args


class UnknownContent(Value):
    """A block of a type this version does not know, kept with all its fields."""

    type: str

    if TYPE_CHECKING:

        def __init__(self, *, type: str, **more: object) -> None: ...  # noqa: A002 - the field's name

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Refuse a type that is known: it would be read as another block."""
        if values.get("type") in _TYPES:
            raise InvalidMessage(f"A block of type {values['type']!r} has a class of its own.")
        return values


_TYPES = ("text", "image", "audio", "thinking", "tool_call", "tool_result")


def _type_of(value: Any) -> str:  # noqa: ANN401 - a block or its fields
    """Name the branch of the union; what is not known goes to UnknownContent."""
    if isinstance(value, UnknownContent):
        return "unknown"
    found = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return found if found in _TYPES else "unknown"


ResultContent: TypeAlias = Annotated[
    Annotated[TextContent, Tag("text")]
    | Annotated[ImageContent, Tag("image")]
    | Annotated[AudioContent, Tag("audio")]
    | Annotated[UnknownContent, Tag("unknown")],
    Discriminator(_type_of),
]
"""A block that may stand inside a tool's result."""


class ToolResultContent(Value):
    """What a tool gave back.

    Attributes:
        id: The id of the call it answers.
        content: Text, or blocks of text and media.
        is_error: The tool failed; the content says how.
        metadata: For the program; never sent to a model.
        terminate: The loop may stop without asking the model again; never sent either.
        name: The tool's name, where the source gives it.
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
            **more: object,
        ) -> None: ...

    def text(self) -> str:
        """Give the text of the content, parts joined by a line break."""
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
"""A block of a message, told apart by ``type``."""

SystemContent: TypeAlias = TextContent
UserContent: TypeAlias = TextContent | ImageContent | AudioContent | ToolResultContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCallContent
ToolContent: TypeAlias = ToolResultContent
