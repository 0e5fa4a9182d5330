"""The events of a turn as people see them: thinking dim, the answer plain, calls with their arguments and what came of them."""

from __future__ import annotations

from palaver.agent import (
    AgentEvent,
    AnswerRefused,
    Asking,
    CallEnded,
    CallProgress,
    CallStarting,
    Compacted,
    Delivered,
    Quarantined,
    Retrying,
)
from palaver.cli.bill import bill_of
from palaver.cli.chat.screen import Screen, one_line
from palaver.messages import ImageContent, ToolResultContent
from palaver.models import BlockEvent, TextDelta, ThinkingDelta, ToolCallDelta
from palaver.plurals import counted

__all__ = ["Showing"]

_LINES = 8
"""Lines of a tool's result that are shown; the log has all of it."""

_WIDTH = 240
"""Characters of such a line."""

_ARGUMENTS = 400
"""Characters of a call's arguments that are shown while they come."""


class Showing:
    """Shows the events of one turn."""

    def __init__(self, screen: Screen) -> None:
        """Take the screen."""
        self._screen = screen
        self._part: object = None  # what the line that is being written belongs to
        self._arguments = 0

    def event(self, event: AgentEvent) -> None:
        """Show an event; what says nothing to people is not shown."""
        match event:
            case TextDelta(text=text, index=index):
                self._more(("text", index), text, "")
            case ThinkingDelta(text=text, index=index):
                self._more(("thinking", index), text, "dim")
            case ToolCallDelta():
                self._call(event)
            case CallStarting() | CallProgress() | CallEnded():
                self._running(event)
            case BlockEvent(block=block):
                self._aside(f"[{block.type}]")
            case Asking():
                self._part = None
            case _:
                self._notice(event)

    def _notice(self, event: AgentEvent) -> None:
        match event:
            case Retrying(error=error, wait=wait):
                self._aside(
                    f"! {one_line(error.message)} Asking again{f' in {wait:.0f} s' if wait >= 1 else ''} …", "yellow"
                )
            case AnswerRefused(error=error):
                self._aside(f"! The answer was not what was asked for ({one_line(error)}); asking again …", "yellow")
            case Compacted():
                for line in _compacted(event):
                    self._aside(line, "yellow")
            case Quarantined(handle=handle, reason=reason):
                self._aside(f"! {one_line(reason)} Set aside: {handle}; asking again without it …", "yellow")
            case Delivered(message=message):
                self._aside(f"> {one_line(message.text_content())}")
            case _:
                pass

    def _aside(self, text: str, style: str = "dim") -> None:
        self._part = None
        self._screen.note(text, style)

    def _more(self, part: object, text: str, style: str) -> None:
        """Go on with a part of the answer, on a line of its own when it is another one than before."""
        if not text:
            return
        if part != self._part:
            self._screen.end_line()
            self._part = part
        if style:
            self._screen.murmur(text, style)
        else:
            self._screen.say(text)

    def _call(self, event: ToolCallDelta) -> None:
        part = ("call", event.index)
        if part != self._part:
            self._screen.end_line()
            self._part, self._arguments = part, 0
        if event.name:
            self._screen.murmur(f"-> {event.name} ", "cyan")
        left = _ARGUMENTS - self._arguments
        self._arguments += len(event.arguments)
        if left > 0:
            shown = event.arguments.replace("\n", " ")
            self._screen.murmur(shown if len(shown) <= left else f"{shown[:left]}…", "dim")

    def _running(self, event: CallStarting | CallProgress | CallEnded) -> None:
        match event:
            case CallStarting():
                self._begun()
            case CallProgress():
                self._progress(event)
            case CallEnded():
                self._result(event)

    def _begun(self) -> None:
        """Mark the line of a call that runs; the calls of an earlier answer have none."""
        if isinstance(self._part, tuple) and self._part[0] == "call":
            self._screen.murmur(" …", "dim")

    def _progress(self, event: CallProgress) -> None:
        whole = f"/{event.total:g}" if event.total is not None else ""
        far = f" {event.done:g}{whole}" if event.done is not None else ""
        self._aside(f"   {event.tool}: {one_line(event.message, _WIDTH)}{far}")

    def _result(self, event: CallEnded) -> None:
        took = f" in {event.seconds:.1f} s" if event.seconds >= 0.1 else ""  # noqa: PLR2004 - what people notice
        ending = "" if event.ending == "done" else f" [{event.ending}]"
        self._aside(f"<- {event.call.name}{ending}{took}", "red" if event.result.is_error else "cyan")
        for line in _shown(event.result):
            self._aside(f"   {line}")


def _compacted(event: Compacted) -> list[str]:
    """Say that what the model sees was made smaller, why, and what a summary of it cost."""
    long = event.trigger in {"overflow", ""}
    why = "Too long for the model" if long else event.why[:1].upper() + event.why[1:]
    lines = [f"! {why}: compacted from {event.tokens_before:,} to {event.tokens_after:,} tokens. /undo takes it back."]
    if event.usages:
        lines.append(f"  A summary, by {event.summarizer}: {bill_of(event.usages, event.summarizer)}")
    if event.refused:
        lines.append(f"  No summary: {one_line(event.refused, _WIDTH)}")
    return lines


def _shown(result: ToolResultContent) -> list[str]:
    """Give the first lines of a result, and how much more there is."""
    text = result.text()
    lines = text[: _LINES * _WIDTH * 4].splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in lines[:_LINES]]
    if not isinstance(result.content, str):
        shown += [
            f"[{counted(len(part.images), 'image')}]" for part in result.content if isinstance(part, ImageContent)
        ]
    if len(lines) > _LINES or len(text) > _LINES * _WIDTH * 4:
        shown.append(f"… {len(text):,} characters in all; the model sees what the tool gave")
    return shown
