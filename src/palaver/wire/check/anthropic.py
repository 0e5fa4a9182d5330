"""What Anthropic's Messages API would refuse.

Sources: the API reference, the guides named in :mod:`palaver.wire.profiles`, and the API's own answers as quoted in the
threads beside the rules. Where the reference is milder than what some models and hosts answer, the rule is the stricter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.wire.check import answers, calls, examine, media, tools, turns
from palaver.wire.check.calls import Round
from palaver.wire.check.examine import Subject
from palaver.wire.check.media import Attachment
from palaver.wire.check.shapes.anthropic import REQUEST
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "cache_marks", "validate"]

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_SERVER_CALLS = frozenset({"server_tool_use"})
_LEAST_BUDGET = 1024  # thinking.budget_tokens: «must be ≥1024 and less than max_tokens», API reference
_LEAST_TOP_P = 0.95  # extended-thinking: «top_p between 1 and 0.95»


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Give everything in a Messages request that the API would refuse; nothing when it would take it."""
    return examine.run(request, profile, REQUEST, _CHECKS, as_history=as_history)


# --- where things stand ------------------------------------------------------------------------------------------------


def _messages(body: Place, *roles: str) -> Iterator[Place]:
    """Give the messages of these roles, or all."""
    for message in body["messages"]:
        if not roles or message["role"].text in roles:
            yield message


def _blocks(message: Place, *kinds: str) -> Iterator[Place]:
    """Give a message's blocks of these kinds, or all; content that is a string has none."""
    for block in message["content"]:
        if not kinds or block["type"].text in kinds:
            yield block


def _everywhere(body: Place, *kinds: str) -> Iterator[Place]:
    """Give the blocks of these kinds in all messages, those inside tool results after the result."""
    for message in _messages(body):
        for block in _blocks(message):
            if not kinds or block["type"].text in kinds:
                yield block
            if block["type"].text == "tool_result":
                yield from _blocks(block, *kinds)


def _last(body: Place) -> Place:
    return body["messages"][-1]


def _tools(body: Place) -> Iterator[Place]:
    """Give the caller's own tools; the provider's have a type."""
    for tool in body["tools"]:
        if tool["type"].text in ("", "custom"):
            yield tool


# --- turns -------------------------------------------------------------------------------------------------------------


def _order(subject: Subject) -> Iterator[Violation]:
    """Check that the two sides take turns; system messages between them stand aside."""
    sides = [message for message in _messages(subject.body) if message["role"].text != "system"]
    return turns.ordered(sides, subject.profile.turns)


def _system(subject: Subject) -> Iterator[Violation]:
    """Check where system messages stand (mid-conversation-system-messages, limitations)."""
    messages = list(_messages(subject.body))
    for before, message, after in zip([Place(None), *messages], messages, [*messages[1:], Place(None)], strict=False):
        if message["role"].text != "system":
            continue
        blocks = list(_blocks(before))
        served = before["role"].text == "assistant" and blocks and blocks[-1]["type"].text in _SERVER_CALLS
        if not subject.profile.turns.system_inside:
            yield message["role"].breaks(Rule.SYSTEM_PLACE, "this model takes instructions in the field system only")
        elif before["role"].text != "user" and not served:
            yield message["role"].breaks(Rule.SYSTEM_PLACE, "a system message must follow a user message")
        elif after and after["role"].text != "assistant":
            yield message["role"].breaks(
                Rule.SYSTEM_PLACE, "a system message must be the last or come before the assistant"
            )


def _ending(subject: Subject) -> Iterator[Violation]:
    """Check a request that ends on the assistant's words: whether it may, and how they may end."""
    last = _last(subject.body)
    if subject.as_history or last["role"].text != "assistant" or any(_blocks(last, "tool_use")):
        return
    if not subject.profile.turns.assistant_last:
        message = "a request may not end on the assistant's words: this model does not support prefill"
        yield last["role"].breaks(Rule.ROLE_LAST, message)
        return
    blocks = list(_blocks(last))
    if blocks and blocks[-1]["type"].text in _THOUGHTS:
        # «The final block in an assistant message cannot be `thinking`»: router-for-me/CLIProxyAPI#5321
        yield blocks[-1]["type"].breaks(Rule.THINKING_LAST, "the final message may not end in thinking")
    if not _thinks(subject.body):
        for block in _blocks(last, *_THOUGHTS):  # tailcallhq/forgecode#1853
            yield block["type"].breaks(Rule.THINKING_OFF, "thinking is off: the final message may not hold any")
    text = blocks[-1]["text"] if blocks else last["content"]
    if text.text.strip() and text.text != text.text.rstrip():
        # «final assistant content cannot end with trailing whitespace»
        yield text.breaks(Rule.TEXT_TRAILING, "the assistant's last words may not end in white space")


def _filled(subject: Subject) -> Iterator[Violation]:
    """Check that every message has content and every text says something.

    «All messages must have non-empty content except for the optional final assistant message» (ding113/claude-code-hub#432).
    An empty final message asks for nothing that leaving it out would not, and is none in a history: it is refused too.
    """
    for message in _messages(subject.body):
        if isinstance(message["content"].value, list | tuple) and not len(message["content"]):
            yield message["content"].breaks(Rule.MESSAGE_EMPTY, "the message has no content")
    yield from turns.worded(_texts(subject.body), subject.profile.turns)


def _texts(body: Place) -> Iterator[Place]:
    """Give every text; the string a tool gave back may be empty and is none of them."""
    yield body["system"]
    yield from (block["text"] for block in body["system"])
    yield from (message["content"] for message in _messages(body))
    yield from (block["text"] for block in _everywhere(body, "text"))
    yield from body["stop_sequences"]  # «each stop sequence must contain non-whitespace»: BerriAI/litellm#3286


# --- calls -------------------------------------------------------------------------------------------------------------


def _rounds(body: Place) -> Iterator[Round]:
    """Give each assistant's calls with the results at the beginning of the message that follows.

    «Messages following tool_use blocks must begin with a matching number of tool_result blocks»:
    apify/tester-mcp-client#12.
    """
    messages = list(_messages(body))
    made: tuple[Place, ...] = ()
    for message in [*messages, Place(None)]:
        blocks = list(_blocks(message)) if message["role"].text == "user" else []
        leading = next((n for n, block in enumerate(blocks) if block["type"].text != "tool_result"), len(blocks))
        yield Round(made, tuple(block["tool_use_id"] for block in blocks[:leading]))
        yield Round(
            (), tuple(block["tool_use_id"] for block in blocks[leading:] if block["type"].text == "tool_result")
        )
        made = tuple(block["id"] for block in _blocks(message, "tool_use"))


def _pairing(subject: Subject) -> Iterator[Violation]:
    rounds = list(_rounds(subject.body))
    yield from calls.identified(rounds, subject.profile.calls)
    yield from calls.paired(rounds)
    yield from calls.objects(block["input"] for block in _everywhere(subject.body, "tool_use"))


def _results(subject: Subject) -> Iterator[Violation]:
    """Check what the result of a failed call holds: something, and nothing but text."""
    for result in _everywhere(subject.body, "tool_result"):
        if result["is_error"].value is not True:
            continue
        if not result["content"] or not len(result["content"].text or list(result["content"])):
            # «content cannot be empty if `is_error` is true»: jlevy/markform#153
            yield result["content"].breaks(Rule.MESSAGE_EMPTY, "the result of a failed call must say something")
        for block in _blocks(result):
            if block["type"].text not in ("", "text"):
                # «all content must be type 'text' if 'is_error' is true»: vellum-ai/vellum-assistant#18387
                yield block["type"].breaks(Rule.BLOCK_PLACE, "the result of a failed call holds text only")


# --- thinking ----------------------------------------------------------------------------------------------------------


def _thinks(body: Place) -> bool:
    return body["thinking"]["type"].text in ("enabled", "adaptive")


def _thinking(subject: Subject) -> Iterator[Violation]:
    """Check that thinking is as the model left it, as far as that shows: signed, and before the calls it led to."""
    for message in _messages(subject.body, "assistant"):
        acted = False
        for block in _blocks(message):
            kind = block["type"].text
            acted = acted or kind == "tool_use"
            signature = block["signature" if kind == "thinking" else "data"]
            if kind in _THOUGHTS and not signature.text:
                yield signature.breaks(Rule.THINKING_SIGNATURE, f"{kind} goes back with its signature only")
            if kind in _THOUGHTS and acted:
                yield block["type"].breaks(Rule.THINKING_ORDER, "thinking stands before the calls of its message")


def _thinking_first(subject: Subject) -> Iterator[Violation]:
    """Check that the turn in which tools are used begins with thinking, where it was asked for with a budget.

    «When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set
    of `tool_use` and `tool_result` blocks)»: anomalyco/opencode#3077. Adaptive thinking does not ask for it.
    """
    messages = list(_messages(subject.body))
    if (
        subject.body["thinking"]["type"].text != "enabled"
        or not messages
        or not any(_blocks(messages[-1], "tool_result"))
    ):
        return
    asked = (
        n for n, each in enumerate(messages) if each["role"].text == "user" and not any(_blocks(each, "tool_result"))
    )
    turn = messages[max(asked, default=-1) + 1 :]
    opening = next((each for each in turn if each["role"].text == "assistant"), None)
    if opening and opening["content"][0]["type"].text not in _THOUGHTS:
        yield opening["content"].breaks(
            Rule.THINKING_FIRST, "thinking is on: the turn must begin with a thinking block"
        )


def _thinking_config(subject: Subject) -> Iterator[Violation]:
    """Check what may be asked for together with thinking (extended-thinking, «feature compatibility»)."""
    body, rules = subject.body, subject.profile.reasoning
    config = body["thinking"]
    if config["type"].text == "enabled":
        budget, limit = config["budget_tokens"], body["max_tokens"].number
        if not rules.manual:
            yield config["type"].breaks(Rule.PARAMETER_REFUSED, "this model takes adaptive thinking only")
        if budget.number is not None and budget.number < _LEAST_BUDGET:
            yield budget.breaks(Rule.THINKING_BUDGET, f"the budget must be at least {_LEAST_BUDGET} tokens")
        elif budget.number is not None and limit is not None and budget.number >= limit:
            yield budget.breaks(Rule.THINKING_BUDGET, "the budget must be less than max_tokens")
    if _thinks(body) and body["tool_choice"]["type"].text in ("any", "tool"):
        # «Thinking may not be enabled when tool_choice forces tool use»: mastra-ai/mastra#7507
        yield body["tool_choice"].breaks(Rule.PARAMETER_CONFLICT, "thinking is on: a tool may not be forced")


def _sampling(subject: Subject) -> Iterator[Violation]:
    """Check sampling parameters: newer models take none, and thinking takes hardly any."""
    body = subject.body
    given = [body[name] for name in ("temperature", "top_k", "top_p") if body[name]]
    if not subject.profile.reasoning.sampling:
        for each in given:
            yield each.breaks(Rule.PARAMETER_REFUSED, "this model takes no sampling parameters")
    elif _thinks(body):  # «`temperature` may only be set to 1 when thinking is enabled»: MartialBE/one-hub#529
        if body["temperature"].number not in (None, 1):
            yield body["temperature"].breaks(Rule.PARAMETER_CONFLICT, "thinking is on: temperature must be 1")
        if body["top_k"]:
            yield body["top_k"].breaks(Rule.PARAMETER_CONFLICT, "thinking is on: top_k may not be given")
        if (top_p := body["top_p"].number) is not None and top_p < _LEAST_TOP_P:
            yield body["top_p"].breaks(
                Rule.PARAMETER_CONFLICT, f"thinking is on: top_p must be at least {_LEAST_TOP_P}"
            )


# --- media, tools, cache -----------------------------------------------------------------------------------------------


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    for block in _everywhere(subject.body, "image", "document"):
        kind, source = block["type"].text, block["source"]
        if source["type"].text == "base64":
            yield media.inline("image" if kind == "image" else "document", source["data"], source["media_type"].text)
        elif source["type"].text == "url":
            limits = subject.profile.media
            yield from media.linked("image" if kind == "image" else "document", source["url"], limits, data_urls=False)


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from media.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check definitions, calls in the history and the choice between tools."""
    body, rules = subject.body, subject.profile.tools
    names = [tool["name"] for tool in body["tools"]]
    yield from tools.defined(names, rules)
    yield from tools.called((block["name"] for block in _everywhere(body, "tool_use")), rules)
    for tool in _tools(body):
        yield from tools.parameters(tool["input_schema"], rules)
    yield from tools.chosen([body["tool_choice"]["name"]], names)
    if body["tool_choice"] and not names:
        yield body["tool_choice"].breaks(Rule.TOOL_CHOICE, "there are no tools to choose from")
    if rules.needed and not names and (used := next(_everywhere(body, "tool_use", "tool_result"), None)):
        yield used.breaks(Rule.TOOLS_MISSING, "tools must be defined while calls or results are in the messages")


def _format(subject: Subject) -> Iterator[Violation]:
    """Check the structure that is asked of the answer, and what it may not stand beside."""
    body, wanted = subject.body, subject.body["output_config"]["format"]
    if not wanted:
        return
    if not subject.profile.answers.native:
        yield wanted.breaks(Rule.PARAMETER_REFUSED, "this model takes no schema for its answers")
    yield from answers.held(wanted["schema"], subject.profile.answers)
    # «Incompatible with: citations (returns 400 error), message prefilling»: build-with-claude/structured-outputs
    cited = [block for block in _everywhere(body, "document") if block["citations"]["enabled"].value is True]
    if cited:
        yield cited[0]["citations"].breaks(Rule.PARAMETER_CONFLICT, "an answer with a schema cites nothing")
    goes_on = not subject.as_history and subject.profile.turns.assistant_last
    if goes_on and _last(body)["role"].text == "assistant":
        yield wanted.breaks(Rule.PARAMETER_CONFLICT, "an answer with a schema cannot go on from the assistant's words")


def _marks(body: Place) -> Iterator[tuple[str, Place]]:
    """Give what is marked and its mark, in the order in which the provider reads them: tools, system, messages."""
    yield from (("tool", tool["cache_control"]) for tool in body["tools"])
    yield from (("system", block["cache_control"]) for block in body["system"])
    yield from ((block["type"].text, block["cache_control"]) for block in _everywhere(body))
    yield "text", body["cache_control"]  # the mark that finds the last block that can carry it


def cache_marks(subject: Subject) -> Iterator[Violation]:
    """Check cache marks: how many, on what, and the longer-lived before the shorter."""
    rules = subject.profile.cache
    marks = [(kind, mark) for kind, mark in _marks(subject.body) if mark]
    if len(marks) > rules.marks:
        yield marks[rules.marks][1].breaks(Rule.CACHE_COUNT, f"{len(marks)} cache marks, {rules.marks} are taken")
    short = False
    for kind, mark in marks:
        if kind not in rules.places:
            yield mark.breaks(Rule.CACHE_PLACE, f"{kind} may not carry a cache mark")
        if mark["ttl"].text == "1h" and short:  # headroomlabs-ai/headroom#2939
            yield mark["ttl"].breaks(Rule.CACHE_ORDER, "a mark for an hour may not follow one for five minutes")
        short = short or mark["ttl"].text != "1h"


_CHECKS = (
    _order,
    _system,
    _ending,
    _filled,
    _pairing,
    _results,
    _thinking,
    _thinking_first,
    _thinking_config,
    _sampling,
    _payloads,
    _toolset,
    _format,
    cache_marks,
)

RULES = (
    examine.RULES
    | turns.RULES
    | calls.RULES
    | media.RULES
    | tools.RULES
    | answers.RULES
    | {
        Rule.PARAMETER_REFUSED,
        Rule.ROLE_LAST,
        Rule.SYSTEM_PLACE,
        Rule.MESSAGE_EMPTY,
        Rule.TEXT_TRAILING,
        Rule.THINKING_SIGNATURE,
        Rule.THINKING_ORDER,
        Rule.THINKING_FIRST,
        Rule.THINKING_LAST,
        Rule.THINKING_OFF,
        Rule.THINKING_BUDGET,
        Rule.TOOLS_MISSING,
        Rule.CACHE_COUNT,
        Rule.CACHE_PLACE,
        Rule.CACHE_ORDER,
    }
)
