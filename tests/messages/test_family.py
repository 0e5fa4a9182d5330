"""One family: Message gives its members, by every door, and nothing else."""

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from palaver.errors import InvalidMessage
from palaver.messages import (
    AgentMessage,
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    LLMMessage,
    Message,
    Role,
    Speaker,
    SystemMessage,
    TextContent,
    ToolMessage,
    Trust,
    UserMessage,
    decode,
    encode,
)

FAMILY = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool_call": AssistantMessage,
    "tool": ToolMessage,
    "custom": CustomMessage,
    "branch_summary": BranchSummaryMessage,
    "compaction_summary": CompactionSummaryMessage,
}


def test_every_door_returns_the_member() -> None:
    """R17: constructor, model_validate, JSON, a field, and the member itself."""
    for role, member in FAMILY.items():

        class Holder(BaseModel):
            message: Message

        fields: dict[str, Any] = {"role": role, "content": "x"}
        made = [
            Message(**fields),
            Message.model_validate(fields),
            Message.model_validate_json(json.dumps(fields)),
            Message.from_dict(fields),
            Holder.model_validate({"message": fields}).message,
            Holder.model_validate_json(json.dumps({"message": fields})).message,
            member(**fields),
        ]
        assert {type(message) for message in made} == {member}
        assert {message.role for message in made} == {Role(role)}
        assert {message.content for message in made} == {"x"}


def test_members_refuse_other_roles() -> None:
    """A class and its role always agree: constructors, validation and copies refuse the rest."""
    for role, member in FAMILY.items():
        message = member(role=role, content="x")
        for other in set(Role) - {Role(role), Role.ASSISTANT, Role.TOOL_CALL}:
            with pytest.raises(InvalidMessage, match="role"):
                member(role=other, content="x")
            with pytest.raises(ValidationError):
                member.model_validate({"role": other, "content": "x"})
            with pytest.raises(InvalidMessage, match="role"):
                message.model_copy(update={"role": other})


def test_unknown_roles_are_refused() -> None:
    """The error says which roles there are; only None is no role given."""
    cases: list[object] = ["nobody", "", 7, [], {}, True]
    for word in cases:
        with pytest.raises(InvalidMessage, match="Roles are: system, user"):
            Message(role=word, content="x")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage, match="Roles are: system, user"):
            Message.from_dict({"role": word, "content": "x"})


def test_subclasses_keep_their_class() -> None:
    """A subclass with fields of its own constructs as itself, fits every field of type Message, and keeps its class in copies."""

    class Reviewed(UserMessage):
        reviewer: str = ""

    class Holder(BaseModel):
        message: Message

    fields: dict[str, Any] = {"content": "x"}
    mine = Reviewed(reviewer="ann", **fields)
    assert Holder(message=mine).message is mine
    assert type(mine.model_copy(update={"content": "y"})) is Reviewed
    stored = decode(encode(mine)[0])
    assert type(stored) is UserMessage
    assert stored.model_extra == {"reviewer": "ann"}


def test_r213_unions_tell_messages_apart() -> None:
    """R213, R214: LLMMessage and AgentMessage are unions that pydantic can read."""
    assert isinstance(Message(content="x"), LLMMessage)
    assert not isinstance(CustomMessage(), LLMMessage)
    assert isinstance(CustomMessage(), AgentMessage)
    read = TypeAdapter(list[AgentMessage]).validate_python([{"role": "custom"}, {"role": "tool", "contents": []}])
    assert [type(message) for message in read] == [CustomMessage, ToolMessage]


def test_role_and_content_go_by_position() -> None:
    """`Message("user", "hi")` and `UserMessage("hi")`."""
    assert Message("user", "hi").content == UserMessage("hi").content == "hi"
    assert Message(Role.TOOL, "x", tool_call_id="c").tool_call_id == "c"
    assert UserMessage([TextContent("a"), TextContent("b")]).text_content() == "ab"
    with pytest.raises(TypeError):
        UserMessage("a", "b")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Message("user", "a", content="b")


def test_misspelt_fields_are_refused() -> None:
    """A constructor names the close field; from_dict and copies keep what another version wrote."""
    cases: list[Any] = [Message, UserMessage, TextContent]
    for kind in cases:
        with pytest.raises(InvalidMessage, match="Did you mean 'content'"):
            kind(contnt="hi")
        later = {"type": "text", "content": "x", "contnt": "hi", "self": 1, "cls": 2}
        kept = kind.from_dict(later)
        assert kept.model_copy(update={"contnt": "ho"}).model_extra["contnt"] == "ho"
        assert {"contnt", "self", "cls"} <= kept.model_extra.keys()


def test_faults_name_place_and_reason() -> None:
    """Every finding is data: (place, fault), places as pydantic spells them."""
    with pytest.raises(InvalidMessage) as raised:
        Message(role="user", contents=[{"type": "text", "content": 7}], timestamp="soon")  # type: ignore[arg-type]
    assert [place for place, _ in raised.value.faults] == ["contents.0.text.content", "timestamp"]
    assert raised.value.__cause__ is not None


def test_r2_content_is_text_or_parts() -> None:
    """Anything else is refused by name."""
    cases: list[object] = [b"bytes", 7, object(), [b"x"], [7], [{"no": "type"}], {"type": 7}]
    for content in cases:
        with pytest.raises(InvalidMessage, match=r"neither text nor|no content part|needs a type"):
            Message(content=content)


def test_every_member_has_a_json_schema() -> None:
    """A JSON schema exists for the root and every member, for interfaces that publish one."""
    kinds: list[type[Message]] = [Message, *FAMILY.values()]
    for kind in kinds:
        assert json.dumps(kind.model_json_schema())


def test_trust_is_ordered_and_known_by_speaker() -> None:
    """DESIGN decision 9: the least of several is what a summary inherits; alone a summary is worth no more than a tool."""
    assert Trust.OUTSIDE < Trust.MODEL < Trust.HUMAN < Trust.HARNESS
    assert {speaker: speaker.trust for speaker in Speaker} == {
        Speaker.HUMAN: Trust.HUMAN,
        Speaker.MODEL: Trust.MODEL,
        Speaker.TOOL: Trust.OUTSIDE,
        Speaker.HARNESS: Trust.HARNESS,
        Speaker.SUMMARY: Trust.OUTSIDE,
    }
    spoken = {role: Message(role=role, contents=[TextContent("x")]).speaker for role in Role}
    assert spoken[Role.COMPACTION_SUMMARY] is spoken[Role.BRANCH_SUMMARY] is Speaker.SUMMARY
    assert Message(role="user", content="x", speaker="harness").speaker is Speaker.HARNESS


def test_r55_importing_messages_is_light() -> None:
    """No Pillow, no numpy, no network library comes with a message."""
    script = "import sys, palaver.messages; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "palaver" in loaded
    assert not loaded & {"PIL", "numpy", "httpx", "apsw", "tiktoken", "typer", "rich", "litellm", "asyncio"}
