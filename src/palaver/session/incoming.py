"""Convert callers' input: tools, prompts and images."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from palaver import tools
from palaver.dialects.tools import tool_specs
from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import Media
from palaver.messages.media import sniff
from palaver.plurals import a_type
from palaver.prompts import Prompt, StringFormatterRenderer
from palaver.prompts.render import VerbatimRenderer


def tools_of(given: Iterable[Any]) -> tuple[ToolSpec, ...]:
    """Read the tools of a request: schemas of any dialect, and functions.

    Raises:
        InvalidInput: A value is neither, or two have the same name.
    """
    several = given if isinstance(given, str | bytes | Mapping) else list(given)
    if isinstance(several, list) and any(map(callable, several)):
        return tuple(
            spec
            for tool in several
            for spec in (tools.Toolbox([tool]).specs if callable(tool) else tool_specs([tool])[1])
        )
    return tool_specs(several)[1]


def rendered(prompt: Prompt, prompt_args: Mapping[str, Any] | None) -> str:
    """Return the text of a prompt with a caller's arguments.

    Raises:
        TypeError: The arguments are not a mapping.
        InvalidInput: Variables are missing, or there are arguments although the prompt is a plain text or has no variables.
    """
    if not isinstance(prompt_args, Mapping | None):
        raise TypeError(f"prompt_args is a mapping, not {a_type(prompt_args)}.")
    args = prompt_args or {}
    if args and not prompt.template_vars and isinstance(prompt.renderer, StringFormatterRenderer | VerbatimRenderer):
        raise InvalidInput(
            f"The prompt {prompt.path!r} has no variables for {', '.join(map(str, args))}.",
            hint="A string is not a template: pass a Prompt, or leave out prompt_args.",
        )
    return prompt.render(args)


def media_from(image: object) -> Media:
    """Return the media value of a path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.

    A string that is the base64 of an image is that image, even where a file has such a name. Any other string that is not an address names
    a file.

    Raises:
        MissingFile: A string or path names no file.
        InvalidMessage: It is not an image that palaver knows.
    """
    if not isinstance(image, str) or image.startswith(("http://", "https://")) or image[:5].lower() == "data:":
        return Media.of(image)
    decoded = _decoded(image)
    if decoded and sniff(decoded, "image") is not None:
        return Media.from_bytes(decoded)
    if decoded and not Path(image).exists():
        raise InvalidMessage(f"{image[:40]!r} is not a file, and as base64 it is not an image that palaver knows.")
    return Media.from_file(image)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
