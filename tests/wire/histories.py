"""Common histories, for the parity corpus and for transport: each a view that real sessions have, written by hand."""

from collections.abc import Callable, Mapping
from inspect import isfunction
from typing import Final

from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    ImageContent,
    Media,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from tests.wire.pictures import gif, png
from tests.wire.scenes import BASH, Scene, at, call

CLAUDE = ("anthropic", "claude-opus-4-6")
CODEX = ("openai", "gpt-5.2")
GEMINI = ("google", "gemini-3-pro")

EDIT = ToolSpec(
    name="files.edit",
    description="Change a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "format": "uri"},
            "lines": {"type": "array"},
            "mode": {"type": ["string", "null"], "enum": ["text", None]},
            "where": {"oneOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": False,
        "$defs": {"Place": {"type": "object", "properties": {"line": {"type": "integer", "exclusiveMinimum": 0}}}},
    },
)


def plain() -> Scene:
    """Instructions, a question, an answer, a question."""
    return Scene(system=["Be brief."]).user("What is 2 + 2?").model_says("4").user("And 3 + 3?")


def sections() -> Scene:
    """Instructions in several sections."""
    return Scene(system=["You are a clerk.", "Today is Monday."]).user("hello")


def one_call() -> Scene:
    """A call with words, and its result."""
    return Scene(tools=[BASH]).user("list it").model_says("Looking.", call(command="ls"), results=["a.py\nb.py"])


def parallel_calls() -> Scene:
    """Two calls at once, without words."""
    scene = Scene(tools=[BASH]).user("compare")
    return (
        scene.model_says(call("a", command="ls x"), call("b", command="ls y"), results=["one", "two"])
        .model_says("Same.")
        .user("why?")
    )


def failed_call() -> Scene:
    """A tool that failed, and one that failed without a word."""
    scene = Scene(tools=[BASH]).user("go")
    failures = [
        ToolResultContent(id="a", content="no such file", is_error=True),
        ToolResultContent(id="b", is_error=True),
    ]
    return scene.model_says(call("a"), call("b"), results=failures)


def malformed_arguments() -> Scene:
    """Arguments that are no JSON."""
    broken = ToolCallContent(id="a", name="bash", args='{"command": "l')
    return Scene(tools=[BASH]).user("go").model_says(broken, results=["error: the arguments are no JSON"])


def images() -> Scene:
    """An image by its bytes and one by its address."""
    return Scene().user(
        "Which is larger?", ImageContent(images=(Media(data=png()), Media(url="https://example.org/a.png")))
    )


def image_in_result() -> Scene:
    """A tool that returns a picture."""
    shot = ToolResultContent(id="c1", content=(TextContent("screen.png"), ImageContent(images=(Media(data=gif()),))))
    return (
        Scene(tools=[BASH])
        .user("Show me.")
        .model_says(call(command="shot"), results=[shot])
        .model_says("There.")
        .user("Thanks.")
    )


def audio() -> Scene:
    """A spoken question."""
    return Scene().user(
        "Transcribe this.", AudioContent(audio=(Media(data=b"RIFF\x24\0\0\0WAVEfmt ", media_type="audio/wav"),))
    )


def claude_loop() -> Scene:
    """A tool loop of Claude's with signed and redacted thinking."""
    signed = ThinkingContent(content="I should look.", signature="c2lnbmVk", provider="anthropic")
    opaque = ThinkingContent(redacted="b3BhcXVl", provider="anthropic")
    scene = (
        Scene(tools=[BASH])
        .user("fix it")
        .model_says(signed, "Looking.", call("toolu_01", command="ls"), results=["a.py"], by=CLAUDE)
    )
    return scene.model_says(opaque, call("toolu_02", command="cat a.py"), results=["x = 1"], by=CLAUDE)


def codex_loop() -> Scene:
    """A tool loop of Codex's with encrypted reasoning and a commentary."""

    def reasoning(number: int) -> ThinkingContent:
        item = {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": "Plan."}],
            "encrypted_content": "gAAAA",
        }
        return ThinkingContent(provider="openai", artefact=item)

    scene = Scene(tools=[BASH]).user("fix it")
    scene.model_says(
        reasoning(1),
        TextContent.from_dict({"content": "Looking.", "phase": "commentary"}),
        call("call_1", command="ls"),
        results=["a.py"],
        by=CODEX,
    )
    return scene.model_says(reasoning(2), call("call_2", command="cat a.py"), results=["x = 1"], by=CODEX)


def gemini_loop() -> Scene:
    """A tool loop of Gemini's with thought signatures."""
    own = ToolCallContent(id="f1", name="bash", args={"command": "ls"}, artefact={"thoughtSignature": "AAAA"})
    thought = ThinkingContent(content="Plan.", provider="google", artefact={"thoughtSignature": "BBBB"})
    return Scene(tools=[BASH]).user("fix it").model_says(thought, own, results=["a.py"], by=GEMINI)


def open_call() -> Scene:
    """A call without a result, and the user's next words."""
    return (
        Scene(tools=[BASH]).user("go").model_says("Running.", call(command="sleep 100")).user("stop, do something else")
    )


def compacted() -> Scene:
    """A record and a summary in the place of what was left out, and an offloaded result."""
    scene = Scene(system=["Be brief."], tools=[BASH]).derived("goal: fix the parser\nfiles: a.py", "record")
    scene.derived("The parser was read and two tests failed.", "summary").user("go on")
    return scene.model_says(call("c1", command="cat a.py"), results=[f"[12,000 characters offloaded; recall {at(0)}]"])


def late_instructions() -> Scene:
    """Instructions inside the conversation."""
    return Scene().user("hello").model_says("Hi!").late_system("From now on answer in French.").user("How are you?")


def assistant_first() -> Scene:
    """A conversation that the assistant opens."""
    return Scene().model_says("Welcome! What can I do?").user("Nothing, thanks.")


def repeated_ids() -> Scene:
    """Every turn's call has the same id."""
    scene = Scene(tools=[BASH]).user("go")
    for command in ("ls", "pwd"):
        scene.model_says(call("shell:0", command=command), results=[command])
    return scene


def foreign_tools() -> Scene:
    """A tool whose name and schema not every provider takes."""
    return Scene(tools=[EDIT, BASH]).user("edit").model_says(call("c1", "files.edit", path="a.py"), results=["done"])


def several_speakers() -> Scene:
    """Two people, one after the other, and a harness."""
    scene = Scene().user("I want tea.", name="ann").user("And I coffee.", name="Bob B.")
    return scene.user("<system-reminder>Be polite.</system-reminder>", speaker=Speaker.HARNESS)


def ends_with_the_assistant() -> Scene:
    """A finished conversation."""
    return Scene().user("thanks").model_says("You are welcome.")


def empty_words() -> Scene:
    """An empty response, three times, and an empty text beside a call."""
    scene = Scene(tools=[BASH]).user("go").model_says("").model_says("").model_says("")
    return scene.model_says("", call(command="ls"), results=[""]).user("still there?")


HISTORIES: Final[Mapping[str, Callable[[], Scene]]] = {
    name: made for name, made in list(globals().items()) if isfunction(made) and made.__module__ == __name__
}
"""The corpus, by name."""
