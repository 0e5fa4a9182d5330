"""Anthropic's Messages API (POST /v1/messages): its fields, and the rules by which it refuses a request.

After the API reference, the request types of the ``anthropic`` package 2.14 (``message_create_params`` and what it names), the guides named in
:mod:`palaver.providers.registry`, and the API's own answers, quoted in the threads that the rules name. Where the reference is milder than what some
models and hosts answer, the rule is the stricter. Sampling parameters have left the types and are still accepted by older models; the profile
decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from palaver.providers.anthropic.blocks import CALLS, RESULTS
from palaver.providers.anthropic.write import FORCED
from palaver.wire import rules
from palaver.wire.place import ANY, OPEN, Breach, Items, Kinds, Number, Shape, Spot, Violation, one, show
from palaver.wire.rules import Attachment, Round, Subject
from palaver.wire.table import Profile

_CACHE = (None, {"type": one("ephemeral"), "ttl?": one("5m", "1h")})
_MARKED: dict[str, Shape] = {"cache_control?": _CACHE}  # which kinds may have a mark is a rule of its own
_FILE: dict[str, Shape] = {"file_id": str}
_URL: dict[str, Shape] = {"url": str}
_BASE64: dict[str, Shape] = {"media_type": str, "data": str}  # the media types are the profile's
_TEXT: dict[str, Shape] = {"text": str, "citations?": (None, [OPEN]), **_MARKED}
_SPOKEN = Kinds({"text": _TEXT})
_IMAGE: dict[str, Shape] = {
    "source": Kinds({"base64": _BASE64, "url": _URL, "file": _FILE}),
    "transformations?": (None, {"oversized_image?": one("downsize", "error")}),
    **_MARKED,
}
_DOCUMENT: dict[str, Shape] = {
    "source": Kinds({
        "base64": _BASE64, "url": _URL, "file": _FILE,
        "text": {"media_type": one("text/plain"), "data": str},
        "content": {"content": ANY},
    }),
    "citations?": (None, OPEN), "context?": (None, str), "title?": (None, str), **_MARKED,
}  # fmt: skip
_SEARCH_RESULT: dict[str, Shape] = {
    "content": [_SPOKEN], "source": str, "title": str, "citations?": OPEN, **_MARKED,
}  # fmt: skip
_RESULT_CONTENT = Kinds(
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH_RESULT,
        "tool_reference": {"tool_name": str, **_MARKED},
        "browser_state": OPEN,
    },
    elsewhere=frozenset({"thinking", "redacted_thinking", "tool_use", "tool_result"}),
)
_USER: Final[dict[str, Shape]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "tool_result": {
        "tool_use_id": str, "content?": (str, [_RESULT_CONTENT]), "is_error?": bool, "toolset_name?": (None, str), **_MARKED,
    },
    "container_upload": {"file_id": str, **_MARKED},
}  # fmt: skip
_CALLED: Shape = {"id": str, "name": str, "input": OPEN, **OPEN}
_SERVED: Shape = {"tool_use_id": str, "content": ANY, **OPEN}
_ASSISTANT: Final[dict[str, Shape]] = {
    "text": _TEXT,
    "thinking": {"thinking": str, "signature?": str, **_MARKED},  # a rule of its own asks for the signature
    "redacted_thinking": {"data": str, **_MARKED},
    "tool_use": {"id": str, "name": str, "input": OPEN, "caller?": OPEN, "toolset_name?": (None, str), **_MARKED},
    "compaction": {
        "content?": (None, str), "encrypted_content?": (None, str), "signature?": (None, str), "tool_changes?": (None, [OPEN]),
        **_MARKED,
    },
    # What the provider's own tools leave. It goes back unchanged; its inside is theirs.
    "fallback": {"from": OPEN, "to": OPEN, **OPEN},
    "mcp_tool_listing": OPEN,
    "container_upload": {"file_id": str, **_MARKED},
    **dict.fromkeys(CALLS, _CALLED),
    **dict.fromkeys(RESULTS - {"mcp_tool_result"}, _SERVED),
    "mcp_tool_result": {"tool_use_id": str, **OPEN},
}  # fmt: skip
# With the beta header inline-tools-2026-09-15 (build-with-claude/mid-conversation-system-messages).
_NAMED: Shape = {
    "tool": Kinds({"tool_definition": {"definition": OPEN}, "tool_reference": {"name": str}}, others=True),
    **_MARKED,
}
_SYSTEM: Final[dict[str, Shape]] = {"text": _TEXT, "tool_addition": _NAMED, "tool_removal": _NAMED}
_ALL = frozenset(_USER | _ASSISTANT | _SYSTEM)


def _message(blocks: dict[str, Shape], *, others: bool = False) -> Shape:
    return {"content": (str, [Kinds(blocks, elsewhere=_ALL - blocks.keys(), others=others)])}


_MESSAGE = Kinds(
    # a kind that nobody knows yet is one that the model's provider made
    {"user": _message(_USER), "assistant": _message(_ASSISTANT, others=True), "system": _message(_SYSTEM)},
    key="role",
    rule=Breach.ROLE_UNKNOWN,
)
_CUSTOM_TOOL: dict[str, Shape] = {
    "name": str, "input_schema": OPEN, "description?": str, "strict?": bool, "allowed_callers?": [str],
    "defer_loading?": bool, "eager_input_streaming?": (None, bool), "input_examples?": [OPEN], **_MARKED,
}  # fmt: skip
_TOOL = Kinds({"custom": _CUSTOM_TOOL}, default="custom", others=True)  # the provider's own tools have versions
_PARALLEL: dict[str, Shape] = {"disable_parallel_tool_use?": bool}
_DISPLAY: dict[str, Shape] = {
    "display?": (None, one("summarized", "omitted", "updates")),
    # With the beta header thinking-binding-controls-2026-08-01 (build-with-claude/preserved-thinking).
    "block_binding?": (None, {"prefix_mismatch_behavior?": (None, one("error", "drop_block"))}),
}

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

REQUEST: Final[Shape] = {
    "model": str,
    "max_tokens": Number(0, whole=True),  # 0 fills the cache and answers nothing
    "messages": Items(_MESSAGE, 1, 100_000),
    "cache_control?": _CACHE,
    "metadata?": {"user_id?": (None, str)},
    "output_config?": {
        "effort?": (None, one(*_EFFORTS)),
        "format?": (None, Kinds({"json_schema": {"schema": OPEN}})),
    },
    "stop_sequences?": [str],
    "stream?": bool,
    "system?": (str, [_SPOKEN]),
    "temperature?": Number(0, 1),
    "thinking?": Kinds({
        "enabled": {"budget_tokens": int, **_DISPLAY}, "adaptive": _DISPLAY, "disabled": {}, "between_tools": {},
    }),
    "tool_choice?": Kinds({"auto": _PARALLEL, "any": _PARALLEL, "tool": {"name": str, **_PARALLEL}, "none": {}}),
    "tools?": [_TOOL],
    "top_k?": Number(0, whole=True),
    "top_p?": Number(0, 1),
    **OPEN,
}  # fmt: skip

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
GOES_ON: Final = CALLS | RESULTS | {"compaction"}
"""The kinds of blocks after which the assistant goes on by itself when a request ends on them: that is no prefill."""
_LEAST_BUDGET = 1024  # thinking.budget_tokens: «must be ≥1024 and less than max_tokens», API reference
_LEAST_TOP_P = 0.95  # extended-thinking: «top_p between 1 and 0.95»


# --- places ------------------------------------------------------------------------------------------------


class _SentBlock(NamedTuple):
    """A block: its place, its kind, and what a result has inside."""

    at: Spot
    kind: str
    inside: tuple[_SentBlock, ...]


class _SentMessage(NamedTuple):
    """A message: its place, who speaks, and its blocks; content that is a string has none."""

    at: Spot
    role: str
    blocks: tuple[_SentBlock, ...]

    def of(self, *kinds: str) -> Iterator[Spot]:
        """Return the blocks of these kinds."""
        return (block.at for block in self.blocks if block.kind in kinds)


_NOTHING = _SentMessage(Spot(None), "", ())


class _Examined(NamedTuple):
    """A request under examination, its messages read once for all checks."""

    body: Spot
    profile: Profile
    as_history: bool
    messages: tuple[_SentMessage, ...]

    def everywhere(self, *kinds: str) -> Iterator[Spot]:
        """Return the blocks of these kinds in all messages, those inside tool results after the result."""
        return (block.at for block in self.blocks() if block.kind in kinds)

    def blocks(self) -> Iterator[_SentBlock]:
        """Return the blocks of all messages, those inside tool results after the result."""
        for message in self.messages:
            for block in message.blocks:
                yield block
                yield from block.inside


def _messages(body: Spot) -> Iterator[_SentMessage]:
    for message in body["messages"]:
        blocks = ((block, block["type"].text) for block in message["content"])
        read = tuple(_SentBlock(block, kind, _inside(block) if kind == "tool_result" else ()) for block, kind in blocks)
        yield _SentMessage(message, message["role"].text, read)


def _inside(result: Spot) -> tuple[_SentBlock, ...]:
    return tuple(_SentBlock(block, block["type"].text, ()) for block in result["content"])


def _thinks(body: Spot) -> bool:
    return body["thinking"]["type"].text in ("enabled", "adaptive")


# --- turns -------------------------------------------------------------------------------------------------------------


def _order(subject: _Examined) -> Iterator[Violation]:
    """Check that the two sides alternate, and the places of system messages (mid-conversation-system-messages, limitations)."""
    messages = subject.messages
    spoken = [each for each in messages if each.role != "system"]
    opening = next((block.kind for message in spoken[:1] for block in message.blocks), "")
    # What the provider made of the conversation before comes first (build-with-claude/compaction-on-demand).
    first = "" if opening == "compaction" else subject.profile.turns.first
    yield from rules.ordered([each.at for each in spoken], replace(subject.profile.turns, first=first))
    for before, message, after in zip([_NOTHING, *messages], messages, [*messages[1:], _NOTHING], strict=False):
        if message.role != "system":
            continue
        served = before.role == "assistant" and before.blocks and before.blocks[-1].kind.endswith("_tool_result")
        why = ""
        if not subject.profile.turns.system_inside:
            why = "this model takes instructions in the field system only"
        elif before.role != "user" and not served:
            why = "a system message must follow a user message"
        elif after.at and after.role != "assistant":
            why = "a system message must be the last or come before the assistant"
        if why:
            yield message.at["role"].breaks(Breach.SYSTEM_PLACE, why)


def _ending(subject: _Examined) -> Iterator[Violation]:
    """Check a request that ends on the assistant's words: whether it may, and how they may end."""
    last = subject.messages[-1] if subject.messages else _NOTHING
    if subject.as_history or "compaction" in subject.body or last.role != "assistant" or any(last.of("tool_use")):
        return
    ends = last.blocks[-1].kind if last.blocks else ""
    if ends in GOES_ON:  # a turn that the provider paused, or that it compacted: it goes on when it is sent back
        return
    if not subject.profile.turns.assistant_last:
        message = "a request may not end on the assistant's words: this model does not support prefill"
        yield last.at["role"].breaks(Breach.ROLE_LAST, message)
        return
    if ends in _THOUGHTS:
        # «The final block in an assistant message cannot be `thinking`»: router-for-me/CLIProxyAPI#5321
        yield last.blocks[-1].at["type"].breaks(Breach.THINKING_LAST, "the final message may not end in thinking")
    if not _thinks(subject.body):
        for block in last.of(*_THOUGHTS):  # tailcallhq/forgecode#1853
            yield block["type"].breaks(Breach.THINKING_OFF, "thinking is off: the final message may not hold any")
    text = last.blocks[-1].at["text"] if last.blocks else last.at["content"]
    if text.text.strip() and text.text != text.text.rstrip():
        # «final assistant content cannot end with trailing whitespace»
        yield text.breaks(Breach.TEXT_TRAILING, "the assistant's last words may not end in white space")


def _filled(subject: _Examined) -> Iterator[Violation]:
    """Check that every message has content and every text says something.

    «All messages must have non-empty content except for the optional final assistant message» (ding113/claude-code-hub#432). An empty final
    message asks for nothing that leaving it out would not, and is none in a history: it is refused too.
    """
    body, contents = subject.body, [message.at["content"] for message in subject.messages]
    for content in contents:
        if isinstance(content.value, list | tuple) and not len(content):
            yield content.breaks(Breach.MESSAGE_EMPTY, "the message has no content")
    # null is a compaction that failed; «Empty string content is not allowed»: BetaCompactionBlockParam
    for block in subject.everywhere("compaction"):
        if block["content"].value == "":
            yield block["content"].breaks(Breach.MESSAGE_EMPTY, "a compaction must say something")
    texts = [body["system"], *(block["text"] for block in body["system"]), *contents]
    texts += [block["text"] for block in subject.everywhere("text")]  # the string that a tool returned may be empty
    texts += body["stop_sequences"]  # «each stop sequence must contain non-whitespace»: BerriAI/litellm#3286
    yield from rules.worded(texts, subject.profile.turns)


# --- calls -------------------------------------------------------------------------------------------------------------


def _rounds(messages: Sequence[_SentMessage]) -> Iterator[Round]:
    """Return each assistant's calls with the results at the beginning of the message that follows.

    «Messages following tool_use blocks must begin with a matching number of tool_result blocks»: apify/tester-mcp-client#12.
    """
    made: tuple[Spot, ...] = ()
    for message in (*messages, _NOTHING):
        blocks = message.blocks if message.role == "user" else ()
        leading = next((n for n, block in enumerate(blocks) if block.kind != "tool_result"), len(blocks))
        if made or leading:
            yield Round(made, tuple(block.at["tool_use_id"] for block in blocks[:leading]))
        strays = tuple(block.at["tool_use_id"] for block in blocks[leading:] if block.kind == "tool_result")
        if strays:
            yield Round((), strays)
        made = tuple(block["id"] for block in message.of("tool_use"))


def _pairing(subject: _Examined) -> Iterator[Violation]:
    rounds = list(_rounds(subject.messages))
    yield from rules.identified(rounds, subject.profile.calls)
    yield from rules.paired(rounds)


def _served(subject: _Examined) -> Iterator[Violation]:
    """Check that each call of the provider's own tools has its result after it, but for a turn that still goes on.

    «`web_search` tool use with id `srvtoolu_…` was found without a corresponding `web_search_tool_result` block»: build-with-claude/
    handling-stop-reasons. A paused turn ends on such a call, and a mixed one goes on with the results of the caller's tools alone.
    """
    asked: dict[str, Spot] = {}
    for message in subject.messages:
        blocks, said = message.blocks, message.role == "assistant"
        if not said and not (blocks and all(block.kind == "tool_result" for block in blocks)):
            yield from (_unserved(call) for call in asked.values())
            asked.clear()
        for block, kind, _ in blocks if said else ():
            if kind in CALLS:
                asked[block["id"].text] = block
            elif kind.endswith("_tool_result") and asked.pop(block["tool_use_id"].text, None) is None:
                yield block.breaks(Breach.PROVIDER_CALL, "the call that this could be the result of is not before it")


def _unserved(call: Spot) -> Violation:
    return call.breaks(Breach.PROVIDER_CALL, f"no result for {show(call['id'].text)} in its turn")


def _fallbacks(subject: _Examined) -> Iterator[Violation]:
    """Check that nothing stays of what a model before the last fallback of an answer thought and called (build-with-claude/refusals-and-fallback)."""
    for message in subject.messages:
        last = max((at for at, block in enumerate(message.blocks) if block.kind == "fallback"), default=0)
        before = message.blocks[:last]
        answered = {block.at["tool_use_id"].text for block in before}
        for block, kind, _ in before:
            if kind in {*_THOUGHTS, "tool_use"} or (kind in CALLS and block["id"].text not in answered):
                yield block.breaks(Breach.BLOCK_PLACE, f"{kind} before a fallback may not go back")


def _results(subject: _Examined) -> Iterator[Violation]:
    """Check that the result of a failed call has text, and nothing else."""
    for result, kind, inside in subject.blocks():
        if kind != "tool_result" or result["is_error"].value is not True:
            continue
        if not result["content"].text and not len(result["content"]):
            # «content cannot be empty if `is_error` is true»: jlevy/markform#153
            yield result["content"].breaks(Breach.MESSAGE_EMPTY, "the result of a failed call must say something")
        for block in inside:
            if block.kind not in ("", "text"):
                # «all content must be type 'text' if 'is_error' is true»: vellum-ai/vellum-assistant#18387
                yield block.at["type"].breaks(Breach.BLOCK_PLACE, "the result of a failed call holds text only")


# --- thinking ----------------------------------------------------------------------------------------------------------


def _thinking(subject: _Examined) -> Iterator[Violation]:
    """Check that thinking is signed: nothing else of it shows."""
    for message in subject.messages:
        for block, kind, _ in message.blocks if message.role == "assistant" else ():
            if kind in _THOUGHTS:
                signature = block["signature" if kind == "thinking" else "data"]
                if not signature.text:
                    yield signature.breaks(Breach.THINKING_SIGNATURE, f"{kind} goes back with its signature only")


def _thinking_first(subject: _Examined) -> Iterator[Violation]:
    """Check that the turn in which tools are used begins with thinking, where it was asked for with a budget.

    «When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and
    `tool_result` blocks)»: anomalyco/opencode#3077. Adaptive thinking does not ask for it.
    """
    messages = subject.messages
    enabled = subject.body["thinking"]["type"].text == "enabled"
    if not enabled or not messages or not any(messages[-1].of("tool_result")):
        return
    said = [n for n, message in enumerate(messages) if message.role == "user" and not any(message.of("tool_result"))]
    turn = messages[max(said, default=-1) + 1 :]
    opening = next((message for message in turn if message.role == "assistant"), None)
    if opening and next((block.kind for block in opening.blocks), "") not in _THOUGHTS:
        why = "thinking is on: the turn must begin with a thinking block"
        yield opening.at["content"].breaks(Breach.THINKING_FIRST, why)


def _thinking_config(subject: _Examined) -> Iterator[Violation]:
    """Check what may be asked for together with thinking (extended-thinking, «feature compatibility»)."""
    body, config, known = subject.body, subject.body["thinking"], subject.profile.reasoning
    kind, effort = config["type"], body["output_config"]["effort"]
    if kind.text and known.thinking and kind.text not in known.thinking:
        why = f"this model takes thinking of type {' or '.join(known.thinking)}"
        yield kind.breaks(Breach.PARAMETER_REFUSED, why)
    yield from rules.efforts(effort, known.efforts)
    high = _EFFORTS.index(known.quiet_effort) if known.quiet_effort else len(_EFFORTS)
    if kind.text == "disabled" and effort.text in _EFFORTS[high + 1 :]:
        why = f"this model can be kept from thinking up to the effort {known.quiet_effort}"
        yield kind.breaks(Breach.PARAMETER_CONFLICT, why)
    if kind.text == "enabled":
        budget, limit = config["budget_tokens"], body["max_tokens"].number
        if budget.number is not None and budget.number < _LEAST_BUDGET:
            yield budget.breaks(Breach.THINKING_BUDGET, f"the budget must be at least {_LEAST_BUDGET} tokens")
        elif budget.number is not None and limit is not None and budget.number >= limit:
            yield budget.breaks(Breach.THINKING_BUDGET, "the budget must be less than max_tokens")
    if body["tool_choice"]["type"].text in FORCED:
        yield from _forced(subject)


def _forced(subject: _Examined) -> Iterator[Violation]:
    """Check a choice that forces a call: not where the model thinks with a budget, and not with models that choose by themselves.

    «Thinking may not be enabled when tool_choice forces tool use»: mastra-ai/mastra#7507. «tool_choice: type "tool" and "any" are not supported
    for this model»: build-with-claude/thinking-troubleshooting. Adaptive thinking permits it with the other models (build-with-claude/thinking).
    """
    choice = subject.body["tool_choice"]
    if subject.body["thinking"]["type"].text == "enabled":
        why = "thinking has a budget: a tool may not be forced; auto_choice=True leaves it to the model"
        yield choice.breaks(Breach.PARAMETER_CONFLICT, why)
    elif not subject.profile.tools.forced:
        why = "this model may not be forced to call a tool; auto_choice=True leaves it to the model"
        yield choice.breaks(Breach.PARAMETER_REFUSED, why)


def _sampling(subject: _Examined) -> Iterator[Violation]:
    """Check sampling parameters: newer models accept none, and thinking accepts hardly any."""
    body = subject.body
    yield from rules.unsampled(body, ("temperature", "top_k", "top_p"), subject.profile)
    if subject.profile.reasoning.sampling and _thinks(body):
        # «`temperature` may only be set to 1 when thinking is enabled»: MartialBE/one-hub#529
        if body["temperature"].number not in (None, 1):
            yield body["temperature"].breaks(Breach.PARAMETER_CONFLICT, "thinking is on: temperature must be 1")
        if body["top_k"]:
            yield body["top_k"].breaks(Breach.PARAMETER_CONFLICT, "thinking is on: top_k may not be given")
        if (top_p := body["top_p"].number) is not None and top_p < _LEAST_TOP_P:
            why = f"thinking is on: top_p must be at least {_LEAST_TOP_P}"
            yield body["top_p"].breaks(Breach.PARAMETER_CONFLICT, why)


# --- media, tools, answers, cache ----------------------------------------------------------------------------------------


def _attachments(subject: _Examined) -> Iterator[Violation | Attachment]:
    for block in subject.everywhere("image", "document"):
        kind, source = "image" if block["type"].text == "image" else "document", block["source"]
        if source["type"].text == "base64":
            yield rules.inline(kind, source["data"], source["media_type"].text)  # type: ignore[arg-type] # one of two
        elif source["type"].text == "url":
            yield from rules.linked(kind, source["url"], subject.profile.media, data_urls=False)  # type: ignore[arg-type] # the same


def _payloads(subject: _Examined) -> Iterator[Violation]:
    yield from rules.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: _Examined) -> Iterator[Violation]:
    """Check definitions, calls in the history and the choice between tools."""
    body, limits = subject.body, subject.profile.tools
    names = [tool["name"] for tool in body["tools"]]
    yield from rules.defined(names, limits)
    yield from rules.called((block["name"] for block in subject.everywhere("tool_use")), limits)
    added = [block["tool"]["definition"] for block in subject.everywhere("tool_addition")]
    yield from rules.called((tool["name"] for tool in added), limits)
    for tool in (*body["tools"], *added):
        if tool and tool["type"].text in ("", "custom"):
            yield from rules.parameters(tool["input_schema"], "anthropic")
    yield from rules.chosen([body["tool_choice"]["name"]], [*names, *(tool["name"] for tool in added)])
    if body["tool_choice"] and not names:
        yield body["tool_choice"].breaks(Breach.TOOL_CHOICE, "there are no tools to choose from")
    if limits.needed and not names and (used := next(subject.everywhere("tool_use", "tool_result"), None)):
        yield used.breaks(Breach.TOOLS_MISSING, "tools must be defined while calls or results are in the messages")


def _format(subject: _Examined) -> Iterator[Violation]:
    """Check the structure of the answer, and fields that conflict with it."""
    wanted = subject.body["output_config"]["format"]
    if not wanted:
        return
    if not subject.profile.answers.native:
        yield wanted.breaks(Breach.PARAMETER_REFUSED, "this model takes no schema for its answers")
    yield from rules.held(wanted["schema"], "anthropic")
    # «Incompatible with: citations (returns 400 error), message prefilling»: build-with-claude/structured-outputs
    cited = [block for block in subject.everywhere("document") if block["citations"]["enabled"].value is True]
    if cited:
        yield cited[0]["citations"].breaks(Breach.PARAMETER_CONFLICT, "an answer with a schema cites nothing")
    goes_on = not subject.as_history and subject.profile.turns.assistant_last
    if goes_on and subject.messages and subject.messages[-1].role == "assistant":
        yield wanted.breaks(
            Breach.PARAMETER_CONFLICT, "an answer with a schema cannot go on from the assistant's words"
        )


def _cache_marks(subject: _Examined) -> Iterator[Violation]:
    """Check cache marks in the order in which the provider reads them: how many, on what, and the longer-lived before the shorter."""
    body, limits = subject.body, subject.profile.cache
    marks = [("tool", tool["cache_control"]) for tool in body["tools"]]
    marks += [("system", block["cache_control"]) for block in body["system"]]
    marks += [(kind, block["cache_control"]) for block, kind, _ in subject.blocks()]
    marks.append(("text", body["cache_control"]))  # the mark that finds the last block that can have it
    marks = [(kind, mark) for kind, mark in marks if mark]
    if len(marks) > limits.marks:
        yield marks[limits.marks][1].breaks(Breach.CACHE_COUNT, f"{len(marks)} cache marks, {limits.marks} are taken")
    short = False
    for kind, mark in marks:
        if kind not in limits.places:
            yield mark.breaks(Breach.CACHE_PLACE, f"{kind} may not carry a cache mark")
        if mark["ttl"].text == "1h" and short:  # headroomlabs-ai/headroom#2939
            yield mark["ttl"].breaks(Breach.CACHE_ORDER, "a mark for an hour may not follow one for five minutes")
        short = short or mark["ttl"].text != "1h"


_CHECKS: Final = (
    _order, _ending, _filled, _pairing, _served, _fallbacks, _results, _thinking, _thinking_first, _thinking_config, _sampling, _payloads, _toolset,
    _format, _cache_marks,
)  # fmt: skip


def _checked(subject: Subject) -> Iterator[Violation]:
    """Check a request against every rule."""
    read = _Examined(subject.body, subject.profile, subject.as_history, tuple(_messages(subject.body)))
    return chain.from_iterable(check(read) for check in _CHECKS)


CHECKS: Final = (_checked,)
