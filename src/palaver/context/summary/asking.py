"""Asking a summariser: piece by piece, each answer read beside the loop, which waits for nothing but the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from palaver.context.summary.checks import spoken, unusable
from palaver.context.summary.request import Summarizer, SummaryAnswer, SummaryRequest
from palaver.context.summary.sections import filled, lacking
from palaver.context.summary.task import Task
from palaver.context.summary.trying import tried
from palaver.messages import Usage
from palaver.tools.aside import aside

__all__ = ["Heard", "heard"]

_LONGEST_TOKEN = 64
"""Characters that a token has at most, for prose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a summariser has answered so far.

    Attributes:
        next: What to ask now; None where nothing is left to ask.
        told: How many pieces it has read.
        text: The summary of them, with every section.
        requests: How often it was asked.
        model: The model that answered last.
        usages: What the answers read and wrote.
        refused: Why there is no summary.
        of_view: Whether an answer may be made of all that the view shows.
    """

    next: SummaryRequest | None
    told: int = 0
    text: str = ""
    requests: int = 0
    model: str = ""
    usages: tuple[Usage, ...] = ()
    refused: str = ""
    of_view: bool = False


async def heard(task: Task, summarizer: Summarizer, seconds: float) -> Heard:
    """Ask for each piece in turn, each going on from the answer before, until all is told or an answer is refused."""
    found = Heard(next=task.requests[0])
    while found.next is not None:
        answer = await tried(summarizer, found.next, seconds)
        found = await aside(partial(_read, task, found, found.next, answer))
    return found


def _read(task: Task, before: Heard, asked: SummaryRequest, answer: SummaryAnswer | str) -> Heard:
    """Take note of an answer, or of why there is none, and say what to ask next."""
    now = replace(before, next=None, requests=before.requests + 1)
    if isinstance(answer, str):
        return replace(now, refused=answer)
    usages = () if answer.usage is None else (answer.usage,)
    of_view = now.of_view or (answer.of_view and asked.view is not None)
    now = replace(now, model=answer.model, usages=(*now.usages, *usages), of_view=of_view)
    text = spoken(answer.text, asked.headings)
    missing = lacking(text, asked.headings)
    if missing and not asked.missing and not answer.calls:  # once more, for what it lacks
        return replace(now, next=asked.again(missing))
    if refused := _unusable(task, answer, text):
        return replace(now, refused=refused)
    text, told = filled(text, asked.headings), before.told + 1
    if not task.requests[told:]:
        return replace(now, text=text, told=told)
    following = replace(task.requests[told], running=text)
    if (
        task.count(following.prompt()) > task.wanted.input_tokens
    ):  # what it quotes, or its missing sections, made it longer than it counted
        return replace(
            now, refused=f"with its answer so far there are more than {task.wanted.input_tokens:,} tokens to read"
        )
    return replace(now, text=text, told=told, next=following)


def _unusable(task: Task, answer: SummaryAnswer, text: str) -> str:
    if len(text) > task.most * _LONGEST_TOKEN:  # not worth counting
        return f"it has {len(text):,} characters, and {task.most:,} tokens are free for it"
    return unusable(answer, task.wanted.headings, task.count(text), task.most)
