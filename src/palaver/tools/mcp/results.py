"""What a server's tool gave, as what a model can read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import TypeAlias

import mcp_types

from palaver.errors import InvalidMessage
from palaver.messages import AudioContent, ImageContent, Media, TextContent, canonical_json, freeze
from palaver.messages.media import MediaKind, sniff
from palaver.tools.outcome import ToolReply

__all__ = ["reply"]

Part: TypeAlias = TextContent | ImageContent | AudioContent


def reply(result: mcp_types.CallToolResult) -> ToolReply:
    """Turn a result into a reply: its blocks in order, or its structured content where it has no blocks."""
    parts = tuple(part for block in result.content for part in _parts(block))
    structured = result.structured_content
    if not parts and structured is not None:
        parts = (TextContent(canonical_json(freeze(structured, "", [])).decode()),)
    content = parts[0].content if len(parts) == 1 and isinstance(parts[0], TextContent) else parts
    metadata = {} if structured is None else {"structured": structured}
    return ToolReply(content or None, is_error=bool(result.is_error), metadata=metadata)


def _parts(block: mcp_types.ContentBlock) -> Iterator[Part]:
    if isinstance(block, mcp_types.TextContent):
        yield TextContent(block.text)
    elif isinstance(block, mcp_types.ImageContent):
        yield _media(block.data, "image", block.mime_type)
    elif isinstance(block, mcp_types.AudioContent):
        yield _media(block.data, "audio", block.mime_type)
    elif isinstance(block, mcp_types.ResourceLink):
        said = f": {block.description}" if block.description else ""
        kind = f" ({block.mime_type})" if block.mime_type else ""
        yield TextContent(f"[resource {block.name!r} at {block.uri}{kind}{said}]")
    else:
        yield from _resource(block.resource)


def _resource(resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> Iterator[Part]:
    kind = f" ({resource.mime_type})" if resource.mime_type else ""
    head = f"[resource {resource.uri}{kind}]"
    if isinstance(resource, mcp_types.TextResourceContents):
        yield TextContent(f"{head}\n{resource.text}")
        return
    data = _bytes(resource.blob)
    found: MediaKind | None = next((each for each in _KINDS if sniff(data, each)), None)
    if found is not None:
        yield TextContent(head)
        yield _media(resource.blob, found, resource.mime_type or "")
        return
    try:
        yield TextContent(f"{head}\n{data.decode()}")
    except UnicodeDecodeError:
        yield TextContent(f"{head}\n({len(data):,} bytes that are no text, no image and no sound)")


_KINDS: tuple[MediaKind, ...] = ("image", "audio")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()


def _media(text: str, kind: MediaKind, media_type: str) -> Part:
    """Name bytes by what they are; what no model could be shown is said to be that."""
    try:
        media = Media.from_text(f"data:{media_type};base64,{text}", kind)
    except InvalidMessage:
        return TextContent(
            f"({kind} of type {media_type or 'unknown'} that cannot be shown, {len(text):,} characters of base64)"
        )
    return ImageContent(images=[media]) if kind == "image" else AudioContent(audio=[media])
