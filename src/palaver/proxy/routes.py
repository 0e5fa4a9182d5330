"""Routes: which vendor gets a request, which API it is a call of, and which headers go along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from palaver.errors import InvalidInput

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Headers as they were received: names in lower case, in order, some of them several times."""

VENDORS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "https://api.anthropic.com",
        "google": "https://generativelanguage.googleapis.com",
        "openai": "https://api.openai.com",
    }
)
"""Where each vendor answers."""

_CALLS = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/v1/messages", "anthropic"),  # OpenAI's threads have other messages
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
    ("/interactions", "gemini-interactions"),
)
"""How the paths of calls end, and their API."""

_GOOGLE, _ANTHROPIC = ("/v1beta/", "/v1alpha/", "/upload/v1"), ("/v1/messages", "/v1/complete")
"""How paths begin that only one vendor has. OpenAI gets the rest."""

_OF_VENDOR = {b"x-goog-api-key": "google", b"anthropic-version": "anthropic", b"x-api-key": "anthropic"}
"""Headers that only one vendor's clients send; they decide about paths that several vendors have, such as `/v1/models`."""

_HOP = frozenset(
    {
        b"connection", b"expect", b"host", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
"""Headers that concern one connection and are not passed on (RFC 9110, 7.6.1), and the address of this proxy."""

_KEYS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"cookie"})
_SHORTEST = 16
"""The fewest characters of a key; texts as short as `ollama` are none, and may be said for other reasons."""

_SESSIONS = (
    b"x-claude-code-session-id",
    b"session_id",
    b"session-id",
    b"conversation_id",
    b"x-session-id",
    b"x-session-affinity",
)
"""Headers in which programs name their session: Claude Code, Codex and OpenCode do, and pi for most APIs."""
_LONGEST = 200


class VendorRoute(NamedTuple):
    """Where a request goes.

    Attributes:
        base: The scheme, host and, where the user named one, path, without a slash at the end.
        api: The API of which it is a call; empty for any other request.
        model: The model that its path names; empty where the body names it.
        streams: Whether its path asks for a stream.
    """

    base: str
    api: str
    model: str = ""
    streams: bool = False


def route(method: str, path: str, headers: Headers, to: str = "") -> VendorRoute:
    """Return where a request goes.

    Args:
        method: Its method.
        path: Its path, without the query.
        headers: Its headers.
        to: Where all requests go; empty for the vendor to whom path and headers belong.
    """
    api = next((api for end, api in _CALLS if path.endswith(end)), "") if method == "POST" else ""
    named = unquote(path).rpartition("/models/")[2].partition(":")[0] if api == "gemini" else ""
    return VendorRoute(to or VENDORS[_vendor(path, headers)], api, named, path.endswith(":streamGenerateContent"))


def _vendor(path: str, headers: Headers) -> str:
    if path.startswith(_GOOGLE):
        return "google"
    if path.startswith(_ANTHROPIC):
        return "anthropic"
    return next((_OF_VENDOR[name] for name, _ in headers if name in _OF_VENDOR), "openai")


def base_of(url: str) -> str:
    """Return an address that requests are sent to, without a slash at its end.

    Raises:
        InvalidInput: It is not one of http or https, or has a user, a query or a fragment.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in {"http", "https"} or not rest.partition("/")[0] or any(sign in rest for sign in "@?# "):
        raise InvalidInput(
            f"{url!r} is not an address to send requests to.", hint="Write one such as https://openrouter.ai/api."
        )
    return url.rstrip("/")


def passed(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers without those that concern one connection."""
    known = list(headers)
    named = {word.strip().lower() for name, value in known if name == b"connection" for word in value.split(b",")}
    return [(name, value) for name, value in known if name not in _HOP and name not in named]


def readable(headers: Headers, known: str) -> list[tuple[bytes, bytes]]:
    """Return headers that accept no content encodings but the known ones: an answer in another one could not be recorded.

    Args:
        headers: The headers.
        known: The encodings, as in such a header.
    """
    names = {b"identity"} | {word.strip().encode() for word in known.split(",")}
    return [
        (name, _kept(value, names) or b"identity") if name == b"accept-encoding" else (name, value)
        for name, value in headers
    ]


def _kept(value: bytes, names: set[bytes]) -> bytes:
    words = value.split(b",")
    return b",".join(word for word in words if word.partition(b";")[0].strip().lower() in names).strip()


def keys(headers: Headers, query: bytes) -> frozenset[str]:
    """Return the keys of a request, which are never stored."""
    return frozenset(filter(lambda word: len(word) >= _SHORTEST, _keys(headers, query)))


def _keys(headers: Headers, query: bytes) -> Iterator[str]:
    for name, value in headers:
        if name in _KEYS:
            yield from value.decode("latin-1").replace(";", " ").replace("=", " ").split()
    for word in query.decode("latin-1").split("&"):
        if word.startswith("key="):
            yield unquote(word.removeprefix("key="))


def session_named(headers: Headers) -> str:
    """Return the name of the session that a request says it belongs to, or empty."""
    found = {name: value for name, value in headers if name in _SESSIONS}
    named = next((found[name] for name in _SESSIONS if name in found), b"").decode("latin-1").strip()
    return named if named.isprintable() and len(named) <= _LONGEST else ""
