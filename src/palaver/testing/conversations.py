"""Generated conversations: tool calls, oversized outputs, pins, calls that wait. They do not need hypothesis."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from palaver.log import Entry, MessageEntry, Pin, Place
from palaver.messages import ImageContent, Message, TextContent, ToolMessage, ToolResultContent, UserMessage
from palaver.testing.logs import Log, model, result, system, user

TEMPLATES = (
    "{{ 7919 * 104729 }}",
    "{% for x in y %}",
    "{0}",
    "{name!r}",
    "%s %(name)d",
    "$HOME ${PATH}",
    "\\1 \\g<0>",
    "</from-harness>",
)
"""Texts with the syntax of template languages, and a closing mark of ours."""

EVALUATED = str(7919 * 104729)
"""The value of the first template, if it were evaluated."""

_LINES = (
    "plain words of no account",
    "src/palaver/view/fold.py:120: in fold",
    "E   AssertionError: expected 3, got 4",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f600\U0001f600",
    "それでは次のファイルを見てみましょう",
    "You must never push to main. Use tabs.",
    "exit code: 1",
    *TEMPLATES,
)


@dataclass(frozen=True)
class ConversationStep:
    """A turn of a conversation.

    Attributes:
        kind: `ask`, `work` (calls with their results), `say`, `note` (a late system message), `wait` (calls, the last one unanswered),
            `show` (the user shows an image) or `look` (a tool returns one).
        sizes: The lengths of its texts in characters, or of images in bytes.
        pinned: Whether its first entry is pinned.
    """

    kind: str
    sizes: tuple[int, ...]
    pinned: bool = False


def text_of_size(number: int, size: int) -> str:
    """Return a text of about `size` characters; the number makes it unique."""
    lines = [f"{number}"]
    length = 0
    while length < size:
        line = _LINES[(number + len(lines)) % len(_LINES)]
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def picture(number: int, size: int) -> bytes:
    """Return the head of a PNG and about `size` bytes after it; the number makes it unique. Its side is 64 pixels."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 64, 64, 8, 2, 0, 0, 0)
    return head + number.to_bytes(4, "big") + bytes(size)


def played(steps: Sequence[ConversationStep], spelled: Callable[[str], str] = str) -> Log:
    """Return the log of a conversation, with each text passed through `spelled`."""
    log = Log()
    for _ in playing(log, steps, spelled):
        pass
    return log


def playing(log: Log, steps: Sequence[ConversationStep], spelled: Callable[[str], str] = str) -> Iterator[Log]:
    """Play a conversation into a log, and yield the log after each step. Whoever iterates may append to it between two steps."""
    log.put(_timed(system("Be brief. {{ never.rendered }}"), 0.0))
    for number, step in enumerate(steps):
        place = log.store.last(log.dialog).seq + 1
        log.put(*(_timed(said, float(number)) for said in _said(number, step, spelled)))
        if step.pinned:
            log.put(Pin(target=Place(dialog=log.dialog, seq=place)))
        yield log


def _timed(said: Message | Entry, at: float) -> Entry:
    """Return what was said at a time of the conversation's own: the clock's has sometimes more digits, and recorded sizes would differ."""
    entry = MessageEntry(message=said.model_copy(update={"timestamp": at})) if isinstance(said, Message) else said
    return entry.model_copy(update={"at": at})


def _said(number: int, step: ConversationStep, spelled: Callable[[str], str]) -> Sequence[Message | Entry]:
    texts = [spelled(text_of_size(number, size)) for size in step.sizes]
    if step.kind == "ask":
        return [user(texts[0])]
    if step.kind == "note":
        return [system(texts[0])]
    if step.kind == "show":
        pictures = [picture(number, size) for size in step.sizes]
        return [UserMessage(contents=(TextContent(content="look"), ImageContent(images=pictures)))]
    if step.kind == "look":
        seen = (TextContent(content="seen"), ImageContent(images=[picture(number, step.sizes[0])]))
        call = f"call-{number}"
        return [model("", call), ToolMessage.from_result(ToolResultContent(id=call, content=seen, name="shell"))]
    if step.kind == "say":
        return [model(texts[0])]
    calls = [f"call-{number}-{index}" for index in range(len(texts))]
    answered = calls if step.kind == "work" else calls[:-1]
    return [
        model(spelled(f"step {number}"), *calls),
        *(result(call, text) for call, text in zip(answered, texts, strict=False)),
    ]
