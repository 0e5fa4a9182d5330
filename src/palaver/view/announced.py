"""Steps that the instructions announce: a protocol in words that nobody but its author knows.

Instructions of agents name the steps that the model writes, and the one that it is given: `Observation: the result of the action`, `RESULT: the output of the
command`, in any language and with any words. So a message that begins with such a name, behind steps of the model, is what a tool gave back.
"""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["begins_step", "is_announced", "may_be_announced"]

_STEP = re.compile(
    r"^[ \t>*_#`-]{0,20}(?P<open>[\[<【「]?)(?P<name>[^\W\d_][^\n:：<>\[\]【】「」|{}()\"`]{0,40}?)[ \t]{0,4}\d{0,4}[*_`]{0,4}(?:[\]>】」][ \t]{0,4}[:：]?|[:：])[*_]{0,4}(?P<what>[^\n]{0,200})",
    re.MULTILINE,
)
_SMALL = r"(?:(?:the|an?|your|that|this|of|from|by|el|la|una?|del?|le|du|une|das|der|die|des|dem|vom|ein|eine[ms]?|il|lo|dello|della|o|do|da) |d?ell['’]|[ld]['’])"
"""Articles and prepositions: nothing else stands between the words of these forms, so no order to the model and no sentence of people has them."""

_TOOL = (
    r"(?:(?:shell |bash )?command|tool(?: call)?|(?:function|api) call|comando|herramienta|commande|outil|befehls?|kommandos?|werkzeugs?|strumento|ferramenta|"
    r"команд[аы]|инструмента?|工具|命令|ツール|コマンド|도구|명령)"
)
"""What only a program carries out, one of them: people, too, are told actions, and run code, scripts and queries that they were shown."""

_OUTPUT = (
    r"(?:results?|outputs?|responses?|resultado|salida|résultat|sortie|ergebnis|ausgabe|risultato|saída|результат|вывод|"
    r"(?:返回)?(?:的)?(?:结果|結果|内容|输出|輸出|出力)|결과|출력)"
)
_REPORTED = re.compile(
    rf"{_OUTPUT}|answer|console|errors?|important|logs?|messages?|notes?|problem|reply|screen|status|summary|terminal|warnings?"
)
"""What people write, too, before what they saw: such a step must be said to be given to the model, or the model acts as agents do: it thinks aloud before, or calls
what the instructions name."""

_MARKS = r"[\s.。;*_`)\]】]*"
_ACTS = re.compile(
    rf"{_MARKS}{_SMALL}{{0,2}}(?:name of {_SMALL})?(?:要?(?:执行|調用|调用|使用|运行)的)?{_TOOL}(?: (?:to|à|a|zu|da) \w+)?"
    rf"(?:[,;:(] ?(?:should be |must be )?(?:exactly )?one of\b[^\n]*)?{_MARKS}",
    re.IGNORECASE,
)
"""What is said of the step that has a program do something: that it is the command or the tool, and nothing else."""

_GIVEN = re.compile(
    rf"{_MARKS}(?:(?P<its>(?:its |其){_OUTPUT})|{_SMALL}{{0,2}}{_OUTPUT} {_SMALL}{{0,3}}(?:{_TOOL}|action|acción|azione|ação|aktion|действия)|"
    rf"{_SMALL}{{0,2}}{_TOOL}(?:['’]s|的|の|의)? ?{_OUTPUT}|(?:what )?{_SMALL}{{0,2}}{_TOOL} (?:returned|returns|gave back))"
    rf"(?P<to_you>[,;(]? ?(?:which |that |as )?you (?:will |are |will be )?(?:given|get|receive|shown)\b[^\n]*)?{_MARKS}",
    re.IGNORECASE,
)
"""What is said of the step that a program gives: that it is the output of a tool, and nothing else, but that the model is given it."""

_HEAD = 400
"""Characters in which it is seen how a text begins."""

_MOST = 200
"""Steps that are looked at; instructions that name more name something else."""


class _Step(NamedTuple):
    """A step that the instructions name.

    Attributes:
        place: Its number among the names, in the order in which each is first named.
        acts: Whether it is said to be a command or a tool.
        given: Whether it is said to be what such a one gives back.
        people: Whether people write its name, too, and it is not said to be given to the model.
    """

    place: int
    acts: bool
    given: bool
    people: bool


def begins_step(text: str) -> bool:
    """Tell whether a text begins as a step does, by any name: nothing else is announced."""
    return _begun(text) is not None


def may_be_announced(told: str | None, text: str) -> bool:
    """Tell whether a text begins with a step that a tool gives, as the instructions say, whatever stands before it.

    Args:
        told: What the instructions say; None where they were erased or cannot be read: then any step may be announced.
        text: The text.
    """
    return _given(told, text) is not None


def is_announced(told: str | None, said: str | None, text: str, *, acted: bool = False, aloud: bool = False) -> bool:
    """Tell whether a text begins with a step that a tool gives, as the instructions say, behind an action of the model.

    The last step that the model wrote must be the action, and stand before it in the instructions: what comes behind an answer is no output.

    Args:
        told: What the instructions say; None where they were erased or cannot be read: then any step but those that the model wrote may be announced.
        said: What the model said before; None where that is not known: then the name must be one that people do not write.
        text: The text.
        acted: Whether what the model said is known for an action by itself.
        aloud: Whether the model acts as agents do: it thinks aloud before, or calls what the instructions name.
    """
    step = _given(told, text)
    if step is None:
        return False
    if said is None:
        return told is None or not step.people
    own = [_name(found) for found in _found(said)]
    if told is None:
        return bool(own) and _name_of(text) not in own
    steps = _steps(told)
    written = [steps[name] for name in own if name in steps]
    if step in written:
        return False
    if step.people and not aloud:
        return False
    return acted if not written else (acted or written[-1].acts) and written[-1].place < step.place


def _given(told: str | None, text: str) -> _Step | None:
    """Give the step that a text begins with, where a tool gives it; any where it is not known what the instructions say."""
    begun = None if told == "" else _begun(text)
    if begun is None:
        return None
    if told is None:
        return _ANY
    step = _steps(told).get(_name(begun))
    return step if step is not None and step.given else None


_ANY = _Step(0, acts=False, given=True, people=False)


def _name_of(text: str) -> str:
    begun = _begun(text)
    return "" if begun is None else _name(begun)


def _begun(text: str) -> re.Match[str] | None:
    return _STEP.match(text.lstrip()[:_HEAD])


@lru_cache(maxsize=64)
def _steps(told: str) -> dict[str, _Step]:
    steps: dict[str, _Step] = {}
    before = False
    for found in _found(told):
        acts = _ACTS.fullmatch(found["what"]) is not None
        name, output = _name(found), _GIVEN.fullmatch(found["what"])
        given = output is not None and (output["its"] is None or before)
        step = steps.setdefault(name, _Step(len(steps), acts=False, given=False, people=True))
        people = output is None or (output["to_you"] is None and _REPORTED.fullmatch(name) is not None)
        steps[name] = step._replace(
            acts=step.acts or acts, given=step.given or given, people=step.people and (people or not given)
        )
        before = acts
    return steps


def _found(text: str) -> list[re.Match[str]]:
    return [found for _, found in zip(range(_MOST), _STEP.finditer(text), strict=False)]


def _name(found: re.Match[str]) -> str:
    return " ".join(found["name"].split()).casefold()
