"""A summariser without a model: it says what code gathered, under the headings that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from palaver.context.record.facts import Facts, Said
from palaver.context.summary.request import SummaryAnswer, SummaryRequest

__all__ = ["extract"]

_FEW = 12


async def extract(request: SummaryRequest) -> SummaryAnswer:
    """Summarise by the facts alone: deterministic, and no words but those that were said."""
    sections = [f"## {heading}\n{_under(heading, request.facts)}" for heading in request.headings]
    return SummaryAnswer(text="\n\n".join(sections), model="extract", of_view=False)


def _under(heading: str, facts: Facts) -> str:
    for word, tell in _TELLS.items():
        if word in heading.casefold():
            return tell(facts) or "Nothing."
    return "Nothing."


def _listed(lines: list[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines[-_FEW:])


def _quoted(*said: Said | None) -> list[str]:
    return [f'"{each.text}"' for each in said if each is not None]


def _intent(facts: Facts) -> str:
    return _listed(_quoted(facts.goal, *facts.asks))


def _progress(facts: Facts) -> str:
    return _listed([f"{command.run}: {command.ended}" for command in facts.commands])


def _decisions(facts: Facts) -> str:
    return _listed(_quoted(*facts.rules))


def _errors(facts: Facts) -> str:
    return _listed([f"{each.of}: {each.what} ({'resolved' if each.closed else 'open'})" for each in facts.troubles])


def _state(facts: Facts) -> str:
    return _listed([f"{file.path} ({'changed' if file.wrote else 'read'})" for file in facts.files])


def _next(facts: Facts) -> str:
    return _listed(_quoted(*facts.unanswered, facts.last))


_TELLS: Mapping[str, Callable[[Facts], str]] = MappingProxyType(
    {
        "intent": _intent,
        "goal": _intent,
        "request": _intent,
        "user": _intent,
        "task": _intent,
        "objective": _intent,
        "progress": _progress,
        "done": _progress,
        "completed": _progress,
        "decision": _decisions,
        "requirement": _decisions,
        "constraint": _decisions,
        "error": _errors,
        "failed": _errors,
        "file": _state,
        "state": _state,
        "next": _next,
        "pending": _next,
        "open": _next,
    }
)
