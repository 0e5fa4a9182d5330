"""The request types of the providers' own packages, made to be held to.

The packages write lists as ``Iterable``, which Pydantic validates only while somebody reads them, and leave their typed dicts
open. Both are right for a client and too mild for a judge: here lists are lists, and a field that no type has is refused.
"""

import json
from collections.abc import Iterable
from functools import cache
from os import PathLike
from types import UnionType
from typing import IO, Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as AnthropicBetaRequest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as AnthropicRequest
from google.genai.interactions import CreateModelInteractionParamsNonStreaming as InteractionsRequest
from google.genai.types import Content, GenerateContentConfig
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatRequest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponsesRequest
from pydantic import BaseModel, ConfigDict, TypeAdapter, with_config
from typing_extensions import TypeAliasType, TypedDict, is_typeddict

_REQUESTS = {
    "anthropic": AnthropicRequest,
    "anthropic-beta": AnthropicBetaRequest,
    "openai-chat": ChatRequest,
    "openai-responses": ResponsesRequest,
    "gemini-interactions": InteractionsRequest,
}

# Sampling parameters have left Anthropic's types; models that are older than the types still take them.
_OLDER = frozenset({"temperature", "top_k", "top_p"})

_FILES = frozenset({IO, PathLike})


def hold_to_types(profile: str, body: dict[str, Any]) -> None:
    """Hold a request to the types of its provider's package.

    Raises:
        ValidationError: It is no request to those types.
    """
    if profile == "gemini":
        _hold_gemini(body)
    else:
        known = {name: value for name, value in body.items() if profile != "anthropic" or name not in _OLDER}
        _adapter(profile).validate_python(known)


def _hold_gemini(body: dict[str, Any]) -> None:
    """Put a body's fields where Google's package has them; its models are closed by themselves."""
    config = {name: value for name, value in body.items() if name not in ("contents", "generationConfig")}
    TypeAdapter(list[Content]).validate_json(json.dumps(body["contents"]))
    GenerateContentConfig.model_validate_json(json.dumps(config | body.get("generationConfig", {})))


@cache
def _adapter(profile: str) -> TypeAdapter[Any]:
    return TypeAdapter(_strict(_REQUESTS[profile]))


def _strict(kind: Any) -> Any:  # noqa: ANN401 — a type, of which the language has no type
    """Rewrite a type: lists for iterables and closed for open typed dicts, all the way down."""
    if isinstance(kind, TypeAliasType):
        return _strict(kind.__value__)
    if is_typeddict(kind):
        return _closed(kind)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal or origin in _FILES:
        return kind
    if origin is Iterable:
        return list[_strict(inside[0])]  # type: ignore[misc]  # made at run time
    if origin in (Union, UnionType):
        return Union[tuple(_strict(each) for each in inside if not _answers(each) and not _open(each))]  # noqa: UP007 — made at run time
    rewritten = tuple(_strict(each) for each in inside)
    return origin[rewritten if len(rewritten) > 1 else rewritten[0]]


def _answers(kind: Any) -> bool:  # noqa: ANN401 — see above
    """Return the models of answers, which clients also take as content and which take any field."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        return all(_answers(each) for each in get_args(kind)[: 1 if get_origin(kind) is Annotated else None])
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _open(kind: Any) -> bool:  # noqa: ANN401 — see above
    """Return the files that clients also take as content, and the words that the client does not know."""
    return get_origin(kind) in _FILES or getattr(kind, "__name__", "") == "UnrecognizedStr"


@cache
def _closed(kind: Any) -> Any:  # noqa: ANN401 — see above
    marked = get_type_hints(kind, include_extras=True)  # the client of Google names what may be missing in texts
    fields = {
        name.removesuffix("_"): (
            Required if name in kind.__required_keys__ and get_origin(marked[name]) is not NotRequired else NotRequired
        )[_strict(hint)]
        for name, hint in get_type_hints(kind).items()
    }
    closed = TypedDict(kind.__name__, fields)  # type: ignore[misc]  # made at run time
    config: ConfigDict = getattr(kind, "__pydantic_config__", ConfigDict())
    return with_config(ConfigDict(**{"extra": "forbid", **config}))(closed)
