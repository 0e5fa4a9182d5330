"""Steps that the instructions announce: a protocol in words that nobody but its author knows.

Instructions of agents name the steps that the model writes, and the one that it is given: `Observation: the result of the action`, `RESULT: the output of the
command`, in any language and with any words. So a message that begins with such a name, behind steps of the model, is what a tool gave back.
"""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["begins_step", "is_announced"]

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
_EXECUTED = re.compile(
    r"\b(?:tools?|functions?|actions?|commands?|code|scripts?|programs?|apis?|calls?|called|quer(?:y|ies)|search(?:es)?|shell|terminal|console|"
    r"interpreter|sandbox|browser|environment|execut\w+|"
    r"herramientas?|funci[oó]n(?:es)?|acci[oó]n(?:es)?|comandos?|c[oó]digo|entorno|ejec\w+|outils?|fonctions?|commandes?|environnement|exécut\w+|"
    r"werkzeug\w*|funktion\w*|aktion\w*|befehl\w*|kommando\w*|umgebung|ausgeführt\w*|ausführung\w*|strument[oi]|funzion[ei]|azion[ei]|comand[oi]|"
    r"codice|ambiente|esegu\w+|esecuzion\w*|ferramentas?|funç(?:ão|ões)|aç(?:ão|ões)|инструмент\w*|функци\w*|действи\w*|команд\w*|код\w?|сред\w+|выполн\w+)\b|"
    r"工具|函数|函數|动作|動作|行动|行動|命令|代码|代碼|环境|環境|执行|執行|调用|調用|操作|ツール|関数|アクション|コマンド|コード|実行|도구|함수|행동|명령|코드|환경|실행",
    re.IGNORECASE,
)
"""Words for what a program carries out: a result of anything else is one that people report, too."""

_OWN_OUTPUT = re.compile(r"\b(?:its|their) (?:outputs?|results?|responses?)\b|其(?:输出|结果|輸出|結果)", re.IGNORECASE)
"""How an output is named that is of what was named before."""

_PERSON = re.compile(
    r"\b(?:users?|humans?|persons?|customers?|clients?|people|they|feedback|reviewers?|usuari[oa]s?|utilisateurs?|benutzer\w*|nutzer\w*|utenti?|пользовател\w+)\b|"
    r"用户|用戶|人类|客户|ユーザー|사용자",
    re.IGNORECASE,
)
_HEAD = 400
"""Characters in which it is seen how a text begins."""

_MOST = 200
"""Steps that are looked at; instructions that name more name something else."""


class _Step(NamedTuple):
    """A step that the instructions name.

    Attributes:
        place: Its number among the names, in the order in which each is first named.
        given: Whether it is said of it, and of no person, that a tool gives it: what came out, and of something that is executed.
    """

    place: int
    given: bool


def begins_step(text: str) -> bool:
    """Tell whether a text begins as a step does, by any name: nothing else is announced."""
    return _begun(text) is not None


def is_announced(told: str | None, said: str | None, text: str) -> bool:
    """Tell whether a text begins with a step that a tool gives, as the instructions say, behind the steps that the model was to write.

    The last step that the model wrote must stand before it in the instructions: what comes behind an answer is no output.

    Args:
        told: What the instructions say; None where they were erased or cannot be read: then any step but those that the model wrote may be announced.
        said: What the model said before; None to ask only whether the text begins so.
        text: The text.
    """
    if told == "":
        return False
    begun = _begun(text)
    if begun is None:
        return False
    if told is None:
        own = [] if said is None else [_name(found) for found in _found(said)]
        return said is None or (bool(own) and _name(begun) not in own)
    steps = _steps(told)
    step = steps.get(_name(begun))
    if step is None or not step.given:
        return False
    if said is None:
        return True
    written = [steps[name].place for name in map(_name, _found(said)) if name in steps]
    return bool(written) and step.place not in written and written[-1] < step.place


def _begun(text: str) -> re.Match[str] | None:
    return _STEP.match(text.lstrip()[:_HEAD])


@lru_cache(maxsize=64)
def _steps(told: str) -> dict[str, _Step]:
    steps: dict[str, _Step] = {}
    last = ""
    for found in _found(told):
        name, what = _name(found), found["what"]
        given = _GIVEN_BACK.search(what) is not None and _PERSON.search(what) is None and _executed(what, last)
        last = what
        before = steps.get(name)
        if before is None:
            steps[name] = _Step(len(steps), given)
        elif given and not before.given:
            steps[name] = before._replace(given=True)
    return steps


def _executed(what: str, before: str) -> bool:
    """Tell whether a step is of something that is executed, by what is said of it, or of the step before where it is the output of that."""
    return _EXECUTED.search(what) is not None or (
        _OWN_OUTPUT.search(what) is not None and _EXECUTED.search(before) is not None
    )


def _found(text: str) -> list[re.Match[str]]:
    return [found for _, found in zip(range(_MOST), _STEP.finditer(text), strict=False)]


def _name(found: re.Match[str]) -> str:
    return " ".join(found["name"].split()).casefold()
