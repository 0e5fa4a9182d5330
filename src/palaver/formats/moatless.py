"""moatless-tools trees: one JSON object whose nodes each have an action and its observation. Sibling nodes are a search's branches.

Based on trajectories of moatless-tools 0.0.4 (aorwall/moatless-tools, moatless/node.py). A node's answer is the response of its completion
`build_action`; without one it is made from the action. What the harness's own calls in a node cost counts for its observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, answer_fields, kept, priced, run_key, torn, word
from palaver.formats.sources import Member, SourceFile
from palaver.formats.trees import ROOT, TreeWriter
from palaver.formats.unread import Unread
from palaver.log import Instructions, Section
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    from_anthropic_dict,
    from_chat_dict,
)

NAME = "moatless"
_BUILD = "build_action"
_STATE = ("file_context", "possible_actions")
_READ = frozenset({"node_id", "parent_id", "message", "action", "observation", "completions", "output", *_STATE})
_COMPLETION = "model input response usage retries tools"
_KEYS = {
    "completions": "build_action execute_action value_function",
    "completions.build_action": _COMPLETION,
    "completions.execute_action": _COMPLETION,
    "response": "choices created id model object service_tier system_fingerprint usage",
    "response.choices": "finish_reason index logprobs message",
}


class Moatless:
    """moatless-tools trees: one conversation per file."""

    name = NAME
    title = "moatless-tools trees"
    signs = "a JSON object whose nodes have node_id, action and observation"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a tree, from 0.0 to 1.0."""
        nodes = fields.objects(source.opening.fields, "nodes")
        return 1.0 if any("node_id" in node and "parent_id" in node for node in nodes) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read each file of the source as a separate run."""
        for ordinal, member in enumerate(source.members):
            yield from _run(member, ordinal)


def _run(member: Member, ordinal: int) -> Iterator[Event]:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    numbers: dict[str, int] = {}
    parents: list[int] = []
    answer = ""
    for element in without_losses(member.elements(("nodes",)), losses):
        if element.nth < 0:
            about[element.key] = element.value
            continue
        node = element.value if isinstance(element.value, dict) else NOTHING
        place = member.place(element.path)
        losses += torn(element, place, read=False)
        if not element.whole:
            continue
        parent = node.get("parent_id")
        if parent is not None and word(parent) not in numbers:
            losses.append(
                Loss(place=place, reason=f"Its parent {word(parent)} is not before it.", code="dangling_parent")
            )
        parents.append(numbers.get(word(parent), ROOT))
        numbers.setdefault(word(node.get("node_id")), len(parents) - 1)
        answer = answer or fields.text(_response(node), "id")
    tree = TreeWriter(parents, NAME, NAME)
    agent, named = fields.mapping(about, "agent"), fields.mapping(about, "metadata")
    yield Conversation(
        key=run_key(answer, 0.0),
        ordinal=ordinal,
        main=tree.main,
        title=fields.text(named, "instance_id"),
        model=fields.text(fields.mapping(agent, "completion"), "model"),
        metadata=kept(about, {"nodes"}),
    )
    yield tree.root.branch(NAME)
    yield from losses
    if prompt := fields.text(agent, "system_prompt"):
        entry = Instructions(sections=(Section(name="system", text=prompt),), at=0.0)
        yield tree.root.put(entry, Item(0, member.place("agent"), prompt).origin("system"))
    unread, nodes = Unread(_KEYS), 0
    for element in without_losses(member.elements(("nodes",)), []):
        if element.nth >= 0 and element.whole:
            item = Item(element.nth, member.place(element.path), element.value)
            yield from tree.node(nodes, item.place, partial(_node, item, answer or NAME, unread))
            nodes += 1
    yield from unread.losses()


def _node(item: Item, key: str, unread: Unread, writer: DialogWriter) -> Iterator[Event]:
    node = item.value
    if not isinstance(node, dict):
        yield bad_record(item.place, "it is not a node")
        return
    name = f"{key}:{item.ordinal}"
    _skip(node, item.place, unread)
    if node.get("message"):
        block = TextContent(content=fields.text(node, "message"))
        user = UserMessage(id=f"{name}:user", timestamp=0.0, contents=(block,), metadata=kept(node, _READ))
        yield from writer.say(user, item.part(f"{item.ordinal}:user", node["message"]), counted=1)
    action, observation = node.get("action"), node.get("observation")
    if isinstance(action, dict):
        answer = _answer(node, action, name)
        yield from writer.say(answer, item.part(f"{item.ordinal}", [action, dict(_response(node))]), counted=1)
        if isinstance(observation, dict):
            result = _result(observation, answer.tool_calls()[0].id, name)
            yield from writer.say(result, item.part(f"{item.ordinal}:observation", observation), counted=1)
    elif not node.get("message") or action is not None or observation is not None:
        yield bad_record(item.place, "it has neither a message nor an action")


def _skip(node: Mapping[str, object], place: str, unread: Unread) -> None:
    unread.see(node.get("completions"), place, "completions")
    if "choices" in _response(node):  # of Anthropic's response, all keys are kept
        unread.see(dict(_response(node)), place, "response")
    unread.see(fields.mapping(node, "observation").get("execution_completion"), place, f"completions.{_BUILD}")
    for key in _STATE:
        if node.get(key):
            unread.skip(key, "the harness's state, which only the source has", place)
    for _ in fields.mapping(node, "completions"):
        unread.skip("completion", "the requests as they were sent, which only the source has", place)


def _response(node: Mapping[str, object]) -> Mapping[str, object]:
    return fields.mapping(_completion(node), "response")


def _completion(node: Mapping[str, object]) -> Mapping[str, object]:
    return fields.mapping(fields.mapping(node, "completions"), _BUILD)


def _answer(node: Mapping[str, object], action: Mapping[str, object], name: str) -> Message:
    """Return the model's answer: the recorded response if it has a call, or else the action."""
    response, cost = _response(node), fields.mapping(_completion(node), "usage").get("completion_cost")
    about: dict[str, Any] = {"id": name, "timestamp": 0.0, "metadata": kept(node, _READ)}
    if response.get("type") == "message":
        usage = priced(fields.mapping(response, "usage"), cost)
        answer = from_anthropic_dict(response, **{**about, "usage": usage})
    elif response.get("choices"):
        choice = next(iter(fields.objects(response, "choices")), NOTHING)
        answer = from_chat_dict(fields.mapping(choice, "message"), **{**about, **answer_fields(response, cost)})
    else:
        answer = AssistantMessage(**about, contents=())
    if answer.tool_calls():
        return answer
    thought = fields.text(action, "scratch_pad")
    kind = fields.text(action, "action_args_class").rpartition(".")[2] or fields.text(action, "action_name")
    arguments = kept(action, {"scratch_pad", "action_args_class"})
    call = ToolCallContent.from_dict({"id": f"{name}:call", "name": kind or "action", "args": arguments})
    said = answer.contents or ((TextContent(content=thought),) if thought else ())
    return answer.model_copy(update={"contents": (*said, call)})


def _result(observation: Mapping[str, object], call: str, name: str) -> Message:
    inner = fields.mapping(observation, "execution_completion")
    usage = priced(
        fields.mapping(fields.mapping(inner, "response"), "usage"),
        fields.mapping(inner, "usage").get("completion_cost"),
    )
    failed = observation.get("expect_correction") is True
    block = ToolResultContent(id=call, content=fields.text(observation, "message"), is_error=failed)
    about = kept(observation, {"message", "execution_completion", "expect_correction"})
    return ToolMessage(id=f"{name}:observation", timestamp=0.0, contents=(block,), usage=usage, metadata=about)
