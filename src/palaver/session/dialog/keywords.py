"""Methods that take a value's fields as keywords: the fields are written down once, in the value."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

__all__ = ["keywords_of"]

Fields = ParamSpec("Fields")
Given = ParamSpec("Given")
Asked = TypeVar("Asked")
Host = TypeVar("Host")
Answer = TypeVar("Answer")


def keywords_of(
    kind: Callable[Fields, Asked],
) -> Callable[[Callable[[Host, Asked], Answer]], Callable[Concatenate[Host, Fields], Answer]]:
    """Have a method called with the fields of what it is about: `dialog.compact(focus="x")` for `compact(CompactionWish(focus="x"))`.

    The method's signature and documentation are those of the fields, for type checkers and for `help`.

    Args:
        kind: The class of the value, a dataclass of keywords.
    """
    fields = inspect.signature(kind)
    _, _, described = (inspect.getdoc(kind) or "").partition("Attributes:\n")

    def faced(method: Callable[[Host, Asked], Answer]) -> Callable[Concatenate[Host, Fields], Answer]:
        @wraps(method)
        def called(host: Host, /, *args: Fields.args, **kwargs: Fields.kwargs) -> Answer:
            return method(host, kind(*args, **kwargs))

        waits = inspect.iscoroutinefunction(method)
        face: Callable[Concatenate[Host, Fields], Answer] = _awaited(called) if waits else called
        whole = inspect.signature(method)
        host = next(iter(whole.parameters.values()))
        told, raises, errors = (inspect.getdoc(method) or "").partition("\n\nRaises:\n")
        vars(face)["__signature__"] = whole.replace(parameters=[host, *fields.parameters.values()])
        face.__doc__ = f"{told}\n\nArgs:\n{described.rstrip()}{raises}{errors}"
        return face

    return faced


def _awaited(called: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Give the face of an asynchronous method as what it is, for whoever looks whether to await it."""

    @wraps(called)
    async def awaited(*args: Given.args, **kwargs: Given.kwargs) -> object:
        return await cast("Awaitable[object]", called(*args, **kwargs))

    return cast("Callable[Given, Answer]", awaited)
