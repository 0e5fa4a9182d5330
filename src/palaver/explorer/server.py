"""The server: the page's own files, the answers of `api` made in threads, long work, and every error as JSON."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from palaver.errors import (
    Ambiguous,
    Conflict,
    Erased,
    InvalidInput,
    InvalidRequest,
    NotFound,
    NotReproducible,
    PalaverError,
    StoreError,
)
from palaver.explorer.actions import ACTIONS, ASKED
from palaver.explorer.answers import ROUTES
from palaver.explorer.api import LINES, Answer, Endpoint, Explored, Raw, as_data, as_json
from palaver.explorer.door import problem
from palaver.explorer.work import WORK, Work
from palaver.tools.workers import run_in_thread

T = TypeVar("T")
_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_THREADS = 8
"""Answers that are made at once: as many connections as a store keeps."""

_PROCESSES = 2
"""Processes that work at once."""

_MEDIA = MappingProxyType(
    {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "": "text/plain"}
)
"""The media types of the page's files, by the ends of their names."""

_STATUS: Mapping[type[PalaverError], int] = MappingProxyType(
    {
        Erased: 410,
        NotFound: 404,
        NotReproducible: 404,
        Ambiguous: 409,
        Conflict: 409,
        StoreError: 500,
        InvalidRequest: 500,
    }
)
"""The statuses of errors; any other is 400."""


def application(source: Explored, answers: Sequence[Endpoint] = ROUTES) -> Starlette:
    """Return the application that answers the requests of the page."""
    limiter, places = CapacityLimiter(_THREADS), CapacityLimiter(_PROCESSES)
    routes = [Route(f"/{path}", _file(data, path)) for path, data in _files(files("palaver.explorer") / "static")]
    routes += [Route(question.pattern, _answering(question.function, source, limiter)) for question in answers]
    routes += [
        Route(question.pattern, _working(question, source, places), methods=[question.method]) for question in WORK
    ]
    routes += [Route(question.pattern, _answering(question.function, source, limiter)) for question in ASKED]
    routes += [Route(action.pattern, _acting(action, source, limiter), methods=[action.method]) for action in ACTIONS]
    routes += [Route("/api/seen", _marking(source, limiter), methods=["POST"])]
    handlers: Mapping[Any, Any] = {PalaverError: _told, HTTPException: _missed}
    made = Starlette(routes=routes, exception_handlers=handlers)
    made.router.redirect_slashes = False  # every address has one form
    return made


# --- errors ---------------------------------------------------------------------------------------------------------------------------


async def _told(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)
    return Response(as_json(as_data(error)), status, media_type="application/json")


async def _missed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - what the router raises
    kind = "NotFound" if error.status_code == HTTPStatus.NOT_FOUND else "Refused"
    response = problem(error.status_code, kind, f"There is no {request.method} {request.url.path}.")
    response.headers.update(error.headers or {})
    return response


# --- the page's files -----------------------------------------------------------------------------------------------------------------


def _files(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the files of the page by their paths; the page itself has the empty path, too."""
    for file in folder.iterdir():
        if file.is_dir():
            yield from _files(file, f"{above}{file.name}/")
            continue
        yield f"{above}{file.name}", file.read_bytes()
        if above + file.name == "index.html":
            yield "", file.read_bytes()


def _file(data: bytes, path: str) -> _Handler:
    kind = _MEDIA.get(path.rpartition(".")[2] if path else "html", "text/plain")
    headers = {"ETag": f'"{sha256(data).hexdigest()}"', "Cache-Control": "no-cache"}

    async def endpoint(request: Request) -> Response:
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=kind, headers=headers)

    return endpoint


# --- answers --------------------------------------------------------------------------------------------------------------------------


async def _threaded(work: Callable[[], T], limiter: CapacityLimiter) -> T:
    """Run work in a thread that nobody waits for when the program ends."""
    async with limiter:
        return await run_in_thread(work)


def _answering(function: Callable[..., Answer], source: Explored, limiter: CapacityLimiter) -> _Handler:
    known = _parameters(function)

    async def endpoint(request: Request) -> Response:
        words = _words(_asked(request), known)
        answer = await _threaded(partial(function, source, **words), limiter)
        if isinstance(answer, Raw):
            return Response(answer.data, media_type=answer.media_type)
        if not isinstance(answer, Iterator):
            return Response(as_json(answer), media_type="application/json")
        first = await _threaded(partial(next, answer, None), limiter)  # an error that comes at once has its status
        if request.method == "HEAD":
            return Response(media_type=LINES)
        return StreamingResponse(_lines(first, answer, limiter), media_type=LINES)

    return endpoint


def _working(route: Endpoint, source: Explored, places: CapacityLimiter) -> _Handler:
    known = _parameters(route.function)

    async def endpoint(request: Request) -> Response:
        work = Work(route, source.url, _words(_asked(request), known), places)
        return Response(headers=work.headers) if request.method == "HEAD" else work

    return endpoint


def _parameters(function: Callable[..., Answer]) -> list[Parameter]:
    """Return the parameters of a function after its source."""
    return list(signature(function).parameters.values())[1:]


def _asked(request: Request) -> Iterator[tuple[str, str]]:
    """Yield the parts of the path and the words of the query, with their names."""
    yield from (*request.query_params.multi_items(), *request.path_params.items())


def _words(texts: Iterable[tuple[str, str]], known: list[Parameter]) -> dict[str, str]:
    """Return words by the names of parameters."""
    given: dict[str, list[str]] = {}
    for name, word in texts:
        given.setdefault(name, []).append(word)
    words: dict[str, str] = {}
    for parameter in known:
        named = given.pop(parameter.name.removesuffix("_"), [])
        if len(named) > 1 or (not named and parameter.default is Parameter.empty):
            raise InvalidInput(f"This request needs {parameter.name.removesuffix('_')} once.")
        words.update((parameter.name, word) for word in named)
    if given:
        raise InvalidInput(f"This request has no {', '.join(given)}.")
    return words


async def _lines(first: object, rest: Iterator[object], limiter: CapacityLimiter) -> AsyncIterator[bytes]:
    """Yield values as lines, each read when the one before is sent; an error ends them as their last line."""
    value: object = first
    try:
        while value is not None:
            yield as_json(value) + b"\n"
            value = await _threaded(partial(next, rest, None), limiter)
    except PalaverError as error:
        yield as_json(as_data(error)) + b"\n"
    except Exception as error:  # noqa: BLE001 - the status is sent already: this is the only place to say it
        traceback.print_exc(file=sys.stderr)
        yield as_json(as_data(error)) + b"\n"


# --- what is sent ---------------------------------------------------------------------------------------------------------------------


async def _sent(request: Request) -> dict[str, Any]:
    """Return the body of a request, an object of JSON."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidInput("The body of this request is not a JSON object.")
    return body


def _acting(action: Endpoint, source: Explored, limiter: CapacityLimiter) -> _Handler:
    known = _parameters(action.function)
    writing = None if source.writer is None else replace(source, store=source.writer)

    async def endpoint(request: Request) -> Response:
        if writing is None:
            return problem(403, "Refused", "This page only reads the store.", "Start it with `palaver open --write`.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return problem(415, "Refused", "An action is sent as JSON, with the content type application/json.")
        said = await _sent(request)
        if wrong := [name for name, word in said.items() if not isinstance(word, str)]:
            raise InvalidInput(f"In this request, {', '.join(wrong)} is not a text.")
        words = _words([*_asked(request), *said.items()], known)
        return Response(
            as_json(await _threaded(partial(action.function, writing, **words), limiter)), media_type="application/json"
        )

    return endpoint


def _marking(source: Explored, limiter: CapacityLimiter) -> _Handler:
    async def endpoint(request: Request) -> Response:
        said = await _sent(request)
        await _threaded(partial(source.marks.put, said.get("session"), said.get("messages")), limiter)
        return Response(status_code=204)

    return endpoint
