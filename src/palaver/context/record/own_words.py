"""What of a user's message he wrote himself: prose, without what he pasted into it.

People paste logs, code, pages and mails into what they ask. What stands in there speaks of other things: "must be a string" in a traceback is no wish of
the user's. Nothing is understood here; these are the marks by which pasted text is known: fences, quotation marks at the beginning of lines,
elements with a name, lines that are no prose, and the words that announce it.
"""

# ruff: noqa: RUF001 - words and punctuation of several languages

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from palaver.context.record.wishes import may_state_a_wish
from palaver.view import dressed, shown

__all__ = ["is_item", "paragraphs", "spoken"]

_FENCE = re.compile(r"\s*(```+|~~~+)")
_QUOTED = re.compile(r"\s*(?:>|＞|\|)")
_OPENED = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>")
_CLOSED = re.compile(r"</([A-Za-z][\w.:-]*)>")
_OWN_ELEMENT = re.compile(
    r"instruct|rule|require|task|request|ask|quest|prompt|important|constrain|guideline|note|goal|user|b$|i$|p$|li$|ul$|ol$|br$|strong|em$"
)
"""Names of elements in which people put their own words."""

_ITEM = re.compile(r"\s*(?:[-*+•·–]|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)])\s+")
_INDENTED = re.compile(r"(?: {4}|\t)")
_LONGEST_LINE = 2_000
"""Characters of a line of somebody's own: who writes more without a break has pasted it."""

_IMPERSONAL = 500
"""Characters of a line beyond which somebody who writes himself has named himself or who he talks to."""

_PERSON = re.compile(
    r"\b(?:i|me|my|we|us|our|you|your|please|let['’]s|ich|mir|mein\w*|wir|uns\w*|du|dein\w*|sie|ihr\w*|bitte|yo|mi|tú|tu|usted|nosotros|je|mon|ma|nous|vous|votre|я|мы|ты|вы|мне|нам|тебе|вам)\b|"
    r"[我你您请們们私君]|(?:^|[.!;:]\s+|\s-\s+)(?:never|always|do not|don['’]?t|use|avoid|keep|prefer|make sure|ensure|no) ",
    re.IGNORECASE,
)
_NARROWEST = 40
"""Characters behind which lines are broken at the earliest."""

_ANNOUNCED = re.compile(
    r"\b(?:logs?|output|errors?|trace(?:back)?|stack ?trace|exception|code|snippet|diff|patch|result|response|json|yaml|config(?:uration)?|console|"
    r"print(?:s|ed)|returned|(?:gave|got)(?: me| us)?(?: back)?$|shows|showed|ausgabe|protokoll|fehler(?:meldung)?|quelltext|antwort|salida|registro|sortie|erreur|journal|вывод|лог|ошибка)\b|日志|輸出|输出|报错|错误|代码|堆栈|ログ|出力|エラー|コード",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"\b(?:document(?:ation|s)?|docs?|e-?mails?|messages?|articles?|readme|specs?|specifications?|pages?|texts?|posts?|threads?|issues?|tickets?|transcripts?|reviews?|"
    r"files?|contents?|descriptions?|quot\w+|excerpts?|dokument\w*|texte?|datei|inhalt|seite|beschreibung|auszug|documento|archivo|correo|página|courriel|fichier|extrait|документ|письмо|файл)\b|"
    r"文档|文件|邮件|文章|内容|描述|原文|文書|ファイル|メール|記事",
    re.IGNORECASE,
)
_ENDS_OPEN = re.compile(r"[:：]\s*$")
_ADDRESSED = re.compile(
    r"\s*(?:(?:now|so|ok(?:ay)?|and|then|also|but|finally|thanks?)[, ]+)*(?:please|pls|can you|could you|would you|will you|i(?:'d| would)? (?:want|need|like)|"
    r"your (?:task|job)|based on|given|using|with (?:this|that|the above)|from (?:this|that|the above)|after (?:this|that)|"
    r"bitte|kannst du|können sie|könntest du|ich (?:will|möchte|brauche)|por favor|puedes|quiero|s'il (?:te|vous) pla[iî]t|peux-tu|je veux|пожалуйста|мне нужно)\b|"
    r"\s*(?:请|麻烦|帮我|我(?:想|要|需要|希望)|现在|根据|お願い|以上)",
    re.IGNORECASE,
)
"""How somebody turns back to who is to do it."""

_COMES_BACK = re.compile(
    r"\s*(?:(?:thanks?|thank you|thx|from now on|in (?:the )?future|next time|danke|ab jetzt|gracias|de ahora en adelante|merci|désormais|спасибо|отныне)\b|"
    r"谢谢|謝謝|以后|以後|从现在|今後|これから|ありがとう)",
    re.IGNORECASE,
)
"""How somebody goes on who has shown an output, besides."""

_BLOCK = "\f"
"""What stands for a block between fences."""

_QUESTION = ("?", "？")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")

_NO_PROSE = tuple(
    map(
        re.compile,
        (
            r"\s*\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\d\d/\d\d/\d{2,4} \d)",  # the time of a log
            r"\s*\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?\s*[:|\[-]?\s",
            r"\s*(?:Traceback \(most recent|File \"[^\"]*\", line|at [\w$.<>]+\(|Caused by: |[\w.]*(?:Error|Exception|Warning)(?:: |$))",
            r"\s*-{1,2}[a-zA-Z][\w-]*(?:, ?--[\w-]+)?(?:[ =]\S+)?\s{2,}\S|\s*(?:fatal|error|npm \w+|TODO|FIXME|XXX)\b(?:\(\w+\))?[:! ]",  # help of a command, tools and marks
            r"\s*(?:\$|>>>|\.\.\.|PS [A-Z]:\\|[\w.-]+@[\w.-]+[:~$ ])\s",  # what a shell shows
            r"\s*(?:line )?\d+\s?[:|]\s|\s*[+-]\s*\d+\s|\s*:\w+[^:]*:\s|\s*[│├└┌╭╰┃╎]",  # numbers of lines, fields, frames
            r"\s*(?:@@ |diff --git |index [0-9a-f]{6,}|--- a/|\+\+\+ b/|[+-]\s*[\w.]+\s*[=({\[])",
            r".*(?:[{};\\]|=>|\)\s*:)\s*$",  # how lines of code end
            r"\s*(?:(?:assert|raise|throw) .*[,(]|(?:async )?def \w+\(|class \w+[(:{]|from [\w.]+ import|(?:const|let|var) \w+ =|#include|@\w+\(|//|/\*|\*/|<!--|</)",
            r"\s*(?:[\"'][\w.$ -]+[\"']\s*:|[\w.$-]+\s*=\s*[\"'{\[]|[\w.$\[\]-]+\s*(?:==|!=|\+=|:=))",  # data and settings
            r"[^|]*\|[^|]*\|",  # a table
            r".*\w[.,)]?\[\d{1,3}\](?:[\s\[]|$)",  # what an encyclopedia proves
        ),
    )
)
_SPAN = re.compile(r"`[^`\n]*`|https?://\S+|(?<!\w)@?[\w.~-]*/[\w~*.-][\w./~*-]*|\"[^\"]*\"|“[^”]*”|「[^」]*」")
"""What stands for a word in a sentence: code between backticks, addresses, paths, quotations."""

_MARKS = re.compile(r"^\s*#{1,6}\s|[*_]{1,3}")
"""Headings and emphasis."""

_SIGNS = re.compile(r"[^\w\s.,;:!?'’\"()\-–—，。、；：！？“”‘’（）《》「」…·]")
_MOST_SIGNS = 0.08
"""The share of characters that are no letters and no punctuation of prose, above which a line is none."""


def paragraphs(text: str) -> Iterator[str]:
    """Give what the user wrote himself: each line, with those behind it into which its sentence was wrapped."""
    kept: list[str] = []
    for line in _own_lines(text.splitlines()):
        if kept and line and _wrapped(kept[-1], line):
            kept.append(line.strip())
            continue
        if kept:
            yield " ".join(kept)
        kept = [line.strip()] if line else []
    if kept:
        yield " ".join(kept)


def spoken(text: str) -> str:
    """Give what of a message its sender says himself, where it begins by showing an output; nothing of one that is an output, and the whole of any other."""
    if dressed(text):
        return ""
    if not shown(text):
        return text
    first, *lines = text.strip().splitlines(keepends=True)
    said, announced, fenced, blank = [_beside(first)], "output", False, False
    for number, line in enumerate(lines):
        mark = _FENCE.match(line) is not None
        fenced = fenced != mark
        if mark:
            announced = "log"  # it is told where the output ends
        elif not fenced and _turned_back(line.rstrip(), announced, blank=blank):
            said += lines[number:]
            break
        blank = mark or not line.strip()
    return said[0] + ("\n" if said[0] and len(said) > 1 else "") + "".join(said[1:])


def is_item(paragraph: str) -> bool:
    """Tell whether it is an item of a list."""
    return _ITEM.match(paragraph) is not None


def _own_lines(lines: Sequence[str]) -> Iterator[str]:
    """Give the lines of the user's own; an empty one where something was left out, and between paragraphs."""
    closed = {name.casefold() for line in lines for name in _CLOSED.findall(line)}
    element = announced = ""  # what goes on: an element by its name, and what was announced
    blank = True
    for line in _unfenced(lines):
        if line == _BLOCK:
            announced = "log" if announced == "output" else announced
            yield ""
        elif element:
            element = "" if f"</{element}>" in line.casefold() else element
        elif (name := _pasted_element(line)) in closed:
            element = "" if f"</{name}>" in line.casefold() else name
        elif line and dressed(line):
            announced = "document"
            yield ""
        elif line and shown(line):
            announced = "output"
            yield _beside(line)
        elif line and not (announced and not _turned_back(line, announced, blank=blank)):
            own = not _matters(line) or _own(line, blank=blank)
            announced = _announces(line) if own else ""
            yield line if own else ""
        else:
            yield ""
        blank = line in {"", _BLOCK}


def _unfenced(lines: Sequence[str]) -> Iterator[str]:
    """Give the lines that stand between no fences; `_BLOCK` for each block, and an empty one for each line of nothing but spaces."""
    fence = ""
    for line in lines:
        marked = _FENCE.match(line)
        if fence:
            fence = "" if marked and marked[1].startswith(fence) and not line.strip().strip("`~") else fence
        elif marked:
            fence = marked[1]
            yield _BLOCK
        else:
            yield line if line.strip() else ""


def _matters(line: str) -> bool:
    """Tell whether anything depends on whose words a line is."""
    return _ENDS_OPEN.search(line) is not None or may_state_a_wish(line)


def _pasted_element(line: str) -> str:
    """Give the name of the element that a line opens, where it is one of those in which others' words stand."""
    found = _OPENED.match(line)
    name = found[1].casefold() if found else ""
    return "" if not name or _OWN_ELEMENT.search(name) else name


def _own(line: str, *, blank: bool) -> bool:
    if len(line) > _LONGEST_LINE or _QUOTED.match(line) or (len(line) > _IMPERSONAL and not _PERSON.search(line)):
        return False
    if _INDENTED.match(line) and blank and not _ITEM.match(line):
        return False
    return _prose(line)


def _prose(line: str) -> bool:
    text = _ITEM.sub("", line, count=1)
    bare = _MARKS.sub("", _SPAN.sub("x", text))
    if any(form.match(bare) for form in _NO_PROSE):
        return False
    return len(_SIGNS.findall(bare)) <= max(1, _MOST_SIGNS * len(bare))


def _announces(line: str) -> str:
    """Tell what a line says that follows: `log`, `document`, or nothing."""
    if not _ENDS_OPEN.search(line):
        return ""
    last = re.split(r"[.!?。！？]\s*", line.rstrip(" :："))[-1][-80:]
    if _ANNOUNCED.search(last):
        return "log"
    return "document" if _DOCUMENT.search(last) else ""


def _beside(line: str) -> str:
    """Give the sentences to somebody that stand in the line that shows an output, behind it."""
    said = " ".join(
        part for part in _SENTENCE.split(line.strip())[1:] if part.endswith(_QUESTION) or _PERSON.search(part)
    )
    return said if said and _own(said, blank=False) else ""


def _turned_back(line: str, announced: str, *, blank: bool) -> bool:
    """Tell whether the user speaks again: behind an empty line, with prose; behind a document only where he turns to who is to do it."""
    if not blank or not _own(line, blank=blank):
        return False
    if announced == "log" or _ADDRESSED.match(line) is not None:
        return True
    return announced == "output" and (line.rstrip().endswith(_QUESTION) or _COMES_BACK.match(line) is not None)


def _wrapped(before: str, line: str) -> bool:
    """Tell whether a line goes on with the sentence of the one before."""
    ended = before.rstrip().endswith((".", "!", "?", ":", ";", "。", "！", "？", "：", "；"))
    return len(before) >= _NARROWEST and not ended and line.strip()[0].islower() and not _ITEM.match(line)
