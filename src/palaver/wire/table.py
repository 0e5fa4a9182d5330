"""The columns of the table: what can be said about what a provider accepts.

The rows, one for each provider, are :mod:`palaver.wire.profiles`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Answers", "Cache", "Calls", "Media", "Profile", "ProfileName", "Reasoning", "Tools", "Turns"]

ProfileName = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Who may speak, in what order, and what a text may be.

    Attributes:
        roles: Our role (system, user, assistant, tool) to the provider's.
        name: What a participant's own name must match, whole; None where messages carry no names.
        system: Where instructions go: a ``message`` like any other, or a ``field`` of the body.
        system_field: Name of that field; with ``message`` placement empty.
        system_inside: Whether a system message may also stand among the turns, after a user turn.
        first: The role that the first message must have; empty for any.
        alternate: Whether two neighbours may not have the same role.
        assistant_last: Whether a request may end on the assistant's words (a prefill). Where it may not, a session that
            ends so is valid as a history, and becomes a request with the next user turn.
        text: ``any`` text, one that is ``filled`` (not empty), or one that is ``visible`` (more than white space).
        text_characters: Characters that one text may have.
    """

    roles: Mapping[str, str] = field(hash=False)
    name: re.Pattern[str] | None = None
    system: Literal["message", "field"]
    system_field: str = ""
    system_inside: bool = False
    first: str = ""
    alternate: bool = False
    assistant_last: bool = True
    text: Literal["any", "filled", "visible"] = "any"
    text_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Tool calls in the history, and their results.

    Attributes:
        id: What the id of a call must match, whole.
        id_required: Whether every call has an id.
        unique: Ids differ in the whole ``request``, or only within one ``turn``.
        results: Where results stand: each a ``message`` after the turn, all in the next ``turn`` before anything else,
            or each an ``item`` anywhere after its call.
        arguments: Arguments are JSON written in a ``string``, or an ``object``.
        most: Calls one turn may hold, 1 where they may not be made in parallel; None for no published figure.
        media: Media types a result may hold; empty when results are text only.
    """

    id: re.Pattern[str]
    id_required: bool = True
    unique: Literal["request", "turn"]
    results: Literal["message", "turn", "item"]
    arguments: Literal["string", "object"]
    most: int | None = None
    media: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Tool definitions.

    Attributes:
        name: What a tool's name must match, whole.
        most: Tools one request may define; None for no published figure.
        schema: The dialect of parameter schemas: JSON Schema ``draft-2020-12``, OpenAI's ``subset`` of it, or ``openapi``.
        needed: Whether tools must be defined while calls or results are in the history.
        mixed: Whether tools of the provider's own may stand beside defined ones.
    """

    name: re.Pattern[str]
    most: int | None = None
    schema: Literal["draft-2020-12", "subset", "openapi"]
    needed: bool = False
    mixed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers that must have a structure.

    Attributes:
        dialect: The dialect of their schemas: see :mod:`palaver.wire.narrowing`.
        native: Whether a schema may be sent in a field of its own; otherwise the instructions ask for it in words.
        beside_tools: Whether it may be sent while tools are declared.
        loose: Whether a schema may be sent that the provider does not hold the model to.
    """

    dialect: Literal["openai", "anthropic", "gemini"]
    native: bool
    beside_tools: bool = True
    loose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Reasoning the model sent and takes back.

    Attributes:
        form: ``blocks`` with a signature inside an assistant message, ``items`` of their own, ``parts`` of a turn,
            or ``none``: the API takes no reasoning back.
        signed_calls: Whether the first call of every step in the current turn must carry its signature.
        manual: Whether thinking may be asked for with a budget (``thinking.type`` ``enabled``).
        sampling: Whether temperature, top_p and top_k are taken.
    """

    form: Literal["blocks", "items", "parts", "none"]
    signed_calls: bool = False
    manual: bool = True
    sampling: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """Images, sound and documents.

    Attributes:
        images: Image media types.
        audio: Audio media types.
        documents: Document media types.
        schemes: Schemes of addresses the provider fetches from; empty when it fetches nothing.
        image_bytes: Bytes one image may have, counted after base64.
        count: Images one request may have.
        side: Pixels the longer side of an image may have; None for no published figure.
        crowd: From more images than this on, ``crowd_side`` replaces ``side``.
        crowd_side: See there.
    """

    images: frozenset[str]
    audio: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    image_bytes: int
    count: int
    side: int | None = None
    crowd: int | None = None
    crowd_side: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Marks that tell the provider where a cacheable prefix ends.

    Attributes:
        marks: Marks one request may have; 0 when the provider has none.
        field: The field that makes a block or tool a mark.
        places: What may carry one: kinds of blocks, ``system`` and ``tool``.
        least_tokens: A prefix shorter than this is not cached, marked or not.
        lookback: Blocks a mark looks back for an older entry; None for no limit.
        choice: Whether another choice between the tools is another prefix: then nothing of the conversation is found in the cache.
    """

    marks: int = 0
    field: str = ""
    places: frozenset[str] = frozenset()
    least_tokens: int = 0
    lookback: int | None = None
    choice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one provider, and where it matters one model, accepts.

    Attributes:
        name: The API: ``openai-chat``, ``openai-responses``, ``anthropic`` or ``gemini``.
        model: A model of the provider, to stand for it where nobody names one.
        request_bytes: Bytes the body may have.
    """

    name: ProfileName
    model: str
    request_bytes: int
    turns: Turns
    calls: Calls
    tools: Tools
    answers: Answers
    reasoning: Reasoning
    media: Media
    cache: Cache
