"""Steps that the instructions announce: a protocol in words that nobody but its author knows.

Instructions of agents name the steps that the model writes, and the one that it is given: `Observation: the result of the action`, `RESULT: the output of the
command`, in any language and with any words. So a message that begins with such a name, behind steps of the model, is what a tool gave back.
"""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["is_announced"]

_STEP = re.compile(
    r"^[ \t>*_#`-]{0,20}(?P<open>[\[<【「]?)(?P<name>[^\W\d_][^\n:：<>\[\]【】「」|{}()\"`]{0,40}?)[ \t]{0,4}\d{0,4}[*_`]{0,4}(?:[\]>】」][ \t]{0,4}[:：]?|[:：])[*_]{0,4}(?P<what>[^\n]{0,200})",
    re.MULTILINE,
)
_GIVEN_BACK = re.compile(
    r"\b(?:results?|outputs?|responses?|returned|returns|tools?|functions?|environment|execut\w+|resultados?|salida|herramientas?|sortie|résultats?|outils?|"
    r"ergebnis\w*|ausgabe\w*|werkzeug\w*|risultat[oi]|saída|ferramentas?|результат\w*|вывод\w*|инструмент\w*)\b|"
    r"结果|結果|输出|輸出|返回|工具|环境|環境|出力|ツール|결과|출력|도구",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:users?|humans?|persons?|customers?|clients?|people|they|feedback|reviewers?|usuari[oa]s?|utilisateurs?|benutzer\w*|nutzer\w*|utenti?|пользовател\w+)\b|"
    r"用户|用戶|人类|客户|ユーザー|사용자",
    re.IGNORECASE,
)
_MOST = 200
"""Steps that are looked at; instructions that name more name something else."""


class _Step(NamedTuple):
    """A step that the instructions name.

    Attributes:
        place: Its number among the names, in the order in which each is first named.
        given: Whether it is said of it, and of no person, that a tool gives it.
    """

    place: int
    given: bool


def is_announced(told: str, said: str | None, text: str) -> bool:
    """Tell whether a text begins with a step that a tool gives, as the instructions say, behind the steps that the model was to write.

    The last step that the model wrote must stand before it in the instructions: what comes behind an answer is no output.

    Args:
        told: What the instructions say.
        said: What the model said before; None to ask only whether the text begins so.
        text: The text.
    """
    if not told:
        return False
    begun = _STEP.match(text.lstrip()[:400])
    if begun is None:
        return False
    steps = _steps(told)
    step = steps.get(_name(begun))
    if step is None or not step.given:
        return False
    if said is None:
        return True
    written = [steps[name].place for name in map(_name, _found(said)) if name in steps]
    return bool(written) and step.place not in written and written[-1] < step.place


@lru_cache(maxsize=64)
def _steps(told: str) -> dict[str, _Step]:
    steps: dict[str, _Step] = {}
    for found in _found(told):
        name, what = _name(found), found["what"]
        given = _GIVEN_BACK.search(what) is not None and _PERSON.search(what) is None
        before = steps.get(name)
        if before is None:
            steps[name] = _Step(len(steps), given)
        elif given and not before.given:
            steps[name] = before._replace(given=True)
    return steps


def _found(text: str) -> list[re.Match[str]]:
    return [found for _, found in zip(range(_MOST), _STEP.finditer(text), strict=False)]


def _name(found: re.Match[str]) -> str:
    return " ".join(found["name"].split()).casefold()
