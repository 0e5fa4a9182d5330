"""The columns of a profile: the rules that differ between providers. The rows are in the folders of :mod:`palaver.providers`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.wire.models import Reach
from palaver.wire.place import Shape, Violation

Dialect = Literal["openai", "anthropic", "gemini"]
"""A dialect of JSON schemas."""

Body: TypeAlias = dict[str, Any]
"""A JSON object while it is written."""

MB = 1_000_000  # providers write MB; the decimal reading is the stricter one


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Who may speak, in what order, and what a text may be.

    Attributes:
        name: The pattern of a participant's whole name; None where messages have no names.
        system: Where instructions go: a ``message`` or a ``field`` of the body.
        system_inside: Whether a system message may also come among the turns, after a user turn.
        updates: Whether changed instructions are appended to the conversation, so that what was sent stays as it is.
        first: The role of the first message; empty for any.
        alternate: Whether two neighbours may not have the same role.
        answered: Whether only the assistant may speak after results.
        assistant_last: Whether a request may end on the assistant's words (a prefill). Where it may not, a session that
            ends so is valid as a history, and becomes a request with the next user turn.
        text: ``any`` text, a ``filled`` one (not empty), or a ``visible`` one (more than white space).
        text_characters: The most characters of one text.
    """

    name: re.Pattern[str] | None = None
    system: Literal["message", "field"]
    system_inside: bool = False
    updates: bool = False
    first: str = ""
    alternate: bool = False
    answered: bool = False
    assistant_last: bool = True
    text: Literal["any", "filled", "visible"] = "any"
    text_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Tool calls in the history, and their results.

    Attributes:
        id: The pattern of a call's whole id.
        prefix: What ids begin with that are derived, because a recorded one does not suit.
        digits: How many hexadecimal digits follow.
        unique: Whether ids differ in the whole ``request`` or only within one ``turn``.
        arguments: Whether arguments are JSON in a ``string`` or an ``object``.
        most: The most calls of one turn; None for no published figure.
        media: The media types that a result may have; empty where results are text only.
    """

    id: re.Pattern[str]
    prefix: str = "call_"
    digits: int = 24
    unique: Literal["request", "turn"]
    arguments: Literal["string", "object"]
    most: int | None = None
    media: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Tool definitions.

    Attributes:
        name: The pattern of a tool's whole name.
        most: The most tools of one request; None for no published figure.
        needed: Whether tools must be defined while calls or results are in the history.
        mixed: Whether tools of the provider's own may be mixed with defined ones.
        served: Whether the model has tools of the provider's own.
        forced: Whether a tool can be forced.
        functions: Whether tools may be declared while the model thinks.
        search: The provider's own tool with which the model finds deferred tools; empty where it cannot.
        code: The provider's own tool whose code calls the caller's tools; empty where no code can.
        text: Whether a tool may take free text.
        native: The provider's own tools whose calls the caller runs, each with the name under which they come.
        groups: Whether tools may be declared in groups.
        updates: Whether changed tools are appended to the conversation: ``any`` change, or only what is ``added`` while the choice of tools leaves out
            what is withdrawn. Empty where the list of tools changes.
    """

    name: re.Pattern[str]
    most: int | None = None
    needed: bool = False
    mixed: bool = True
    served: bool = True
    forced: bool = True
    functions: bool = True
    search: str = ""
    code: str = ""
    text: bool = False
    native: Mapping[str, str] = field(default_factory=dict, hash=False)
    groups: bool = False
    updates: Literal["", "any", "added"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers that must have a structure.

    Attributes:
        native: Whether a schema may be sent in a field of its own; otherwise the instructions ask for it in words.
        beside_tools: Whether it may be sent while tools are declared.
        loose: Whether a schema may be sent that the provider does not enforce.
        after_words: Whether it may be sent while the answer continues the assistant's words.
        fields: The provider's own parameters for it, each a path into the body.
    """

    native: bool
    beside_tools: bool = True
    loose: bool = False
    after_words: bool = True
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Reasoning that a model sent and accepts again.

    Attributes:
        form: ``blocks`` with a signature inside an assistant message, ``items`` of their own, ``parts`` of a turn, ``steps`` of their own that
            any model of the maker takes, ``fields`` of a message, or ``none`` where the API takes no reasoning back.
        signed_calls: Whether the first call of every step in the current turn must have its signature, or with ``steps`` a signed one before it.
        thinking: The values of ``thinking.type`` that are accepted; empty where they are not checked.
        thinks: Whether the model thinks where a request does not say: ``always``, ``on``, ``off``, or empty where this is not known.
        efforts: The values of the effort, or of Gemini's thinking level; empty where they are not checked.
        quiet_effort: The highest effort at which thinking can be turned off; empty for any.
        sampling: Whether temperature, top_p and top_k are accepted.
        idle_sampling: Whether they are accepted only without an effort, or with the effort `none`.
        reads: Whose thinking the model reads besides its own.
        bound: Whether the provider refuses or withholds thinking after anything before it changed.
        maker: Who makes the artefacts, as recordings spell it once resellers are told apart; empty where none go back.
        field: The field of a message with its reasoning; `content` where it has a part of its own there.
        wanted: Which messages of the assistant must have the field: those with `calls`, `all`, or none.
        family: The pattern of the names of providers and models whose reasoning goes back in the field.
        same_model: Whether it goes back to the model that wrote it only.
    """

    form: Literal["blocks", "items", "parts", "steps", "fields", "none"]
    signed_calls: bool = False
    thinking: tuple[str, ...] = ()
    thinks: Literal["always", "on", "off", ""] = ""
    efforts: tuple[str, ...] = ()
    quiet_effort: str = ""
    sampling: bool = True
    idle_sampling: bool = False
    reads: tuple[Reach, ...] = ()
    bound: bool = False
    maker: str = ""
    field: str = ""
    wanted: Literal["", "calls", "all"] = ""
    family: re.Pattern[str] | None = None
    same_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLimits:
    """Images, sound and documents.

    Attributes:
        images: Image media types.
        audio: Audio media types.
        documents: Document media types.
        schemes: The URL schemes that the provider fetches; empty where it fetches nothing.
        image_bytes: The most bytes of one image, counted after base64.
        count: The most images of one request.
        side: The most pixels of an image's longer side; None for no published figure.
        crowd: With more images than this, ``crowd_side`` replaces ``side``.
        crowd_side: See ``crowd``.
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
        marks: The most marks of one request; 0 where the provider has none.
        field: The field that makes a block or tool a mark.
        places: What may have a mark: kinds of blocks, ``system`` and ``tool``.
        choice: Whether another tool choice invalidates the cached conversation.
        named: The parameter that names an explicit cache; empty where the provider has none.
        moved: The fields that such a cache has, and a request that names it has not.
        made: Whether the API makes such caches.
    """

    marks: int = 0
    field: str = ""
    places: frozenset[str] = frozenset()
    choice: bool = False
    named: str = ""
    moved: tuple[str, ...] = ()
    made: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBlocks:
    """Blocks and items that only their provider reads: they go back to it unchanged, those of unknown kinds too, unless this says why not.

    Attributes:
        known: Kinds that the API documents. One whose provider is not recorded is the API's own.
        denied: Kinds that do not go back, each with the reason.
        missing: Returns what a block needs and the request does not have, or an empty text; from its kind, its fields and the tools.
        calls: Kinds of calls whose results are blocks of their own, each with the field of its id.
        results: The pattern of the kinds of their results.
        answers: The field of a result that names the call.
        ours: Whether the caller answers them; else the provider does, in its next answer.
        code: Kinds of blocks whose code calls the caller's tools, each with the field of its id.
        led_to: The pattern of the kinds that may follow reasoning; None for any.
        compaction: The field of a compaction that says what came before; empty where the API has none.
        trigger: The kind of the item that asks for a compaction at the end of a request; empty where a field of the body does.
        window: Whether a compaction that is an answer of its own stands after messages that go with it.
        carried: Fields of texts and calls that go back with them.
        resumes: The field that continues an answer that was cut: the same request is sent again with it, without the answer so far.
        deferred: The field of a tool that the model sees only once a block shows it: until then nothing is bound to it. Empty where the API does not say so.
        shown: Returns the names of such tools that a block shows; None where none does.
    """

    known: frozenset[str] = frozenset()
    denied: Mapping[str, str] = field(default_factory=dict)
    missing: Callable[[str, Mapping[str, Any], frozenset[str]], str] = field(default=lambda _kind, _fields, _tools: "")
    calls: Mapping[str, str] = field(default_factory=dict)
    results: re.Pattern[str] | None = None
    answers: str = "tool_use_id"
    ours: bool = False
    code: Mapping[str, str] = field(default_factory=dict)
    led_to: re.Pattern[str] | None = None
    compaction: str = ""
    trigger: str = ""
    window: bool = False
    carried: frozenset[str] = frozenset()
    resumes: str = ""
    deferred: str = ""
    shown: Callable[[Mapping[str, Any]], Iterator[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class API:
    """How requests of one API are written and checked, so that the compiler and the checks know no provider.

    Attributes:
        owned: The fields that are compiled from the view and the call; no parameter may replace them.
        head: Writes the body without its conversation, from an `Outline`.
        written: Writes a `Speech` as items of the conversation; also gets the profile and the notes.
        provided: Declares one of the provider's own tools, from its row in the profile and the caller's options.
        neighbours: Returns two items as one where the API joins neighbours, or None; None where it never does.
        finished: Returns the head and, by index, the items that change with their place in the request; None where none does.
        arguments: Returns the arguments of the SDK for a body and a model; None where they are the body.
        headers: Returns the headers that a body and its call (or None) need besides those of every request; None where there are none.
        binding: The fields of a body that what a model thinks is bound to, besides the conversation.
        blocks: Which blocks and items of the provider's own go back.
        shape: The fields of a body.
        checks: The rules over more than one field, each a function of a `Subject`.
    """

    owned: frozenset[str]
    head: Callable[..., Body]
    written: Callable[..., Iterator[Body]]
    provided: Callable[..., Provided]
    neighbours: Callable[[Mapping[str, Any], Mapping[str, Any]], Body | None] | None = None
    finished: Callable[..., tuple[Body, Mapping[int, Body]]] | None = None
    arguments: Callable[[Body, str], Body] | None = None
    headers: Callable[[Mapping[str, Any], Any], Mapping[str, str]] | None = None
    binding: tuple[str, ...] = ()
    blocks: OwnBlocks = OwnBlocks()
    shape: Shape
    checks: Sequence[Callable[..., Iterator[Violation]]]


@dataclass(frozen=True, slots=True)
class Provided:
    """The provider's own tools as they are sent.

    Attributes:
        tools: Elements of the body's list of tools.
        fields: Further fields of the body.
        names: The names of the tools for all providers.
        lost: What of it the provider cannot do, with the reason; empty where it can do all.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one provider, and where it matters one model, accepts.

    Attributes:
        name: The name of its API, such as ``anthropic``.
        api: How its requests are written and checked.
        model: The model that is assumed where the caller names none.
        dialect: The dialect of its schemas, for tools and for answers: see :mod:`palaver.wire.schemas`.
        request_bytes: The most bytes of the body.
        conversation: The field of the body with the conversation.
        pieces: The list in a message that is cached piece by piece; empty where messages are cached whole.
        provided: How each tool that the provider runs itself is declared, before its options.
        columns: What is known of the model better than in palaver's own table, by column (`palaver.wire.models.ModelRow`).
        compacts_from: The smallest number of tokens from which the provider compacts a conversation on request; 0 if it does not.
    """

    name: str
    api: API = field(compare=False, repr=False)
    model: str
    dialect: Dialect
    request_bytes: int
    conversation: str
    pieces: str = ""
    provided: Mapping[str, Mapping[str, Any]] = field(hash=False)
    turns: Turns
    calls: Calls
    tools: Tools
    answers: Answers
    reasoning: Reasoning
    media: MediaLimits
    cache: Cache
    columns: Mapping[str, Any] = field(default_factory=dict, hash=False)
    compacts_from: int = 0
