"""Scripts: whether a summary is written as the user writes. Languages of one script cannot be told apart by code; scripts can.

Only a summary with next to nothing of the user's script is refused. What he pasted is not his; each of his asks counts the same, however long it is; and
one in which lines of several scripts stand tells that he reads them all. What stays as it is in any language is not looked at: code, quotations,
paths, addresses and names with digits, dots or underscores. And who asked for another language gets it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from palaver.context.record.own_words import paragraphs

__all__ = ["foreign", "named"]

_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "HALFWIDTH": "CJK"}
"""Scripts that one language writes side by side."""
_LETTERS = 20
"""Less of the user's tells nothing, in letters of an alphabet."""
_MOST = 10_000
"""Letters of a summary that are looked at: more tell no more."""
_ASKS, _ENDS, _SENTENCE_LETTERS = 100, 2_000, 400
"""Asks that are looked at, the newest; characters of one at either end; letters of one sentence."""
_PASTED = 2_000
"""Characters of a line of somebody's own: who writes more without a break has pasted it (as `record.own_words` has it)."""
_SENTENCE = re.compile(r"[.!?:;\n\u3002\uff01\uff1f\uff1a\uff1b]+\s*")
_LATIN, _AMONG = "LATIN", 2
"""Up to twice as many Latin letters stand in a sentence of another script."""
_OTHERS = 0.25
"""A script in which so much of what the user says is written is one of his, too."""
_NEXT_TO_NONE = 0.02
"""Names of programs and words without a translation are Latin in any language, an error message is quoted bare: so little of the user's script is
found by chance at most, in a text that is not written in it."""
_WEIGHT: Mapping[str, int] = MappingProxyType({"CJK": 3, "HANGUL": 2})
"""What a letter says, in letters of an alphabet: a syllable or a word."""

_CODE = (
    re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"https?://\S+"),
)
"""What is the same in any language: blocks of code, code in a line, addresses."""
_PATHS = re.compile(
    r"(?<![A-Za-z0-9~.@+-])[A-Za-z0-9~.@+-]*[\\/_.:=#][A-Za-z0-9\\/_.:=#@+~-]+|(?<![A-Za-z])[A-Za-z]*\d[A-Za-z0-9]*|(?<!\w)--?[a-z][\w-]*"
)
"""Paths, names of code, and options are, too."""
_APOSTROPHE = "'"
_QUOTED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        '"': re.compile(r"\"[^\"\n]*\""),
        "“": re.compile(r"“[^”\n]*”"),
        "«": re.compile(r"«[^»\n]*»"),
        "„": re.compile(r"„[^“”\n]*[“”]"),
        "「": re.compile(r"「[^」\n]*」"),
        "『": re.compile(r"『[^』\n]*』"),
        "\u2018": re.compile(r"\u2018[^\u2019\n]*\u2019"),
        _APOSTROPHE: re.compile(r"'[^'\n]+'(?!\w)"),
    }
)
"""Quotations, by what opens them."""
_OPENING = re.compile(r"[\"“«„「『\u2018]|(?<!\w)'")

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "LATIN": (
            r"\b(?:in|into|to|auf|en|em|på|w|na)\s+(?:plain\s+|simple\s+)?(?:english|englisch|anglais|ingl[eé]s|inglese|german|deutsch|french"
            r"|fran[cç]ais|spanish|espa[nñ]ol|italian|portuguese|polish|dutch)|(?:用|以|使用)\s*(?:英文|英语|英語|德语|法语|西班牙语)"
            r"|(?:英文|英语|英語)(?:で|来?(?:回答|回复|回覆|答复|写|寫|总结|總結|输出|輸出|说明))|영어로|на\s+английском|по-английски|на\s+немецком|по-немецки"
            r"|на\s+французском|англійською|по-англійськи|بالإنجليزية|باللغة\s+الإنجليزية|באנגלית|अंग्रेज़ी\s+में|στα\s+αγγλικά"
        ),
        "CJK": (
            r"\b(?:in|into|to|auf|en|em)\s+(?:simplified\s+|traditional\s+)?(?:chinese|japanese|mandarin|chinesisch|japanisch|chinois|japonais)"
            r"|中文|汉语|漢語|普通话|日本語|日语|日文|на\s+китайском|по-китайски|на\s+японском|по-японски|중국어로|일본어로"
        ),
        "CYRILLIC": (
            r"\b(?:in|into|to|auf|en)\s+(?:russian|ukrainian|bulgarian|serbian|russisch|ukrainisch|russe)|俄语|俄文|ロシア語|на\s+русском|по-русски"
            r"|українською|러시아어로"
        ),
        "HANGUL": r"\b(?:in|into|to|auf|en)\s+(?:korean|koreanisch|coréen)|韩语|韓語|韩文|韓国語|한국어|한글|на\s+корейском|по-корейски",
        "ARABIC": r"\b(?:in|into|to|auf|en)\s+(?:arabic|persian|farsi|urdu|arabisch|arabe)|阿拉伯语|アラビア語|بالعربية|العربية|на\s+арабском",
        "HEBREW": r"\b(?:in|into|to|auf)\s+(?:hebrew|hebräisch)|בעברית",
        "GREEK": r"\b(?:in|into|to|auf)\s+(?:greek|griechisch)|στα\s+ελληνικά",
        "DEVANAGARI": r"\b(?:in|into|to|auf)\s+(?:hindi|marathi|nepali)|हिंदी\s+में|हिन्दी\s+में",
        "THAI": r"\b(?:in|into|to|auf)\s+thai|ภาษาไทย",
    }
)
"""How somebody asks for a language, by the script that it is written in."""

_KNOWN: Mapping[str, str] = MappingProxyType({"CJK": "Chinese, Japanese or Korean", "HANGUL": "Korean"})
"""How scripts are called that are known by their languages."""


def foreign(summary: str, said: Iterable[str]) -> str:
    """Give the script of the user's words where a summary has next to nothing of it, such as `CYRILLIC`; else an empty text.

    Args:
        summary: The summary.
        said: What the user said, each ask by itself, the oldest first.
    """
    asks = tuple(said)
    theirs = _theirs(asks[-_ASKS:])
    if not theirs:
        return ""
    script = max(theirs, key=lambda name: theirs[name])
    prose = "\n".join(line for line in summary.splitlines() if not line.startswith("#"))  # headings were given
    ours = _scripts(_bare(prose), _MOST)
    if 2 * theirs[script] < sum(theirs.values()) or not ours or ours[script] > _NEXT_TO_NONE * ours.total():
        return ""
    ((instead, _),) = ours.most_common(1)
    if theirs.get(instead, 0.0) >= _OTHERS * sum(theirs.values()):
        return ""
    wished = _NAMES.get(instead)
    return "" if wished is not None and re.search(wished, " ".join(asks), re.IGNORECASE) else script


def named(script: str) -> str:
    """Give the name of a script as people know it: of the languages that are written in it, or of its letters."""
    return _KNOWN.get(script, f"{script.capitalize()} letters")


def _theirs(asks: Sequence[str]) -> Mapping[str, float]:
    """Give the scripts in which the user writes, each with the number of his asks in it; nothing where he says too little."""
    own = [" ".join(_own(ask)) for ask in asks]
    told = [scripts for ask in own if (scripts := _written(ask))]
    if not told and (scripts := _written("\n".join(own))):  # so little each time that only all of it tells
        told = [scripts]
    found: dict[str, float] = {}
    for scripts in told:
        for script in scripts:
            found[script] = found.get(script, 0.0) + 1 / len(scripts)
    return found


def _own(ask: str) -> Iterator[str]:
    """Give the sentences of an ask that the user wrote himself; all of it where he wrote none."""
    text = ask if len(ask) <= 2 * _ENDS else f"{ask[:_ENDS]}\n\n{ask[-_ENDS:]}"
    lines = [f"{line}\n" for line in paragraphs(text) if len(line) <= _PASTED]
    yield from lines or [text]


def _written(ask: str) -> tuple[str, ...]:
    """Give the scripts in which the sentences of an ask are written; nothing where it says too little."""
    found: Counter[str] = Counter()
    for sentence in _SENTENCE.split(_bare(ask)):
        letters = _scripts(sentence, _SENTENCE_LETTERS)
        found[_of(letters)] += letters.total()
    if found.total() < _LETTERS:
        return ()
    return tuple(script for script, weight in found.items() if 2 * weight >= _LETTERS)


def _of(letters: Counter[str]) -> str:
    """Give the script of a sentence: words of other languages stand among those of any, and nearly all of them are in Latin letters."""
    (first, most), *others = letters.most_common(2) or [("", 0)]
    if first == _LATIN and others and _AMONG * others[0][1] >= most:
        return others[0][0]
    return first


def _bare(text: str) -> str:
    """Give a text without what is the same in any language."""
    for form in _CODE:
        text = form.sub(" ", text)
    return _PATHS.sub(" ", _unquoted(text))


def _unquoted(text: str) -> str:
    """Give a text without its quotations. What closes one is looked for once a line: behind a mark that nothing closes, no other of its kind is closed."""
    kept: list[str] = []
    at, open_until = 0, dict.fromkeys(_QUOTED, 0)
    for opening in _OPENING.finditer(text):
        mark, start = opening[0], opening.start()
        if start < max(at, open_until[mark]):
            continue
        if quoted := _QUOTED[mark].match(text, start):
            kept.append(text[at:start])
            at = quoted.end()
        elif mark != _APOSTROPHE:  # which the next one may close, and looks no farther than that
            end = text.find("\n", start)
            open_until[mark] = len(text) if end < 0 else end
    return " ".join([*kept, text[at:]])


def _scripts(text: str, most: int) -> Counter[str]:
    """Weigh the letters of a text by script, at most so many."""
    found: Counter[str] = Counter()
    for letter in islice(filter(str.isalpha, text), most):
        script = _script(letter)
        found[script] += _WEIGHT.get(script, 1)
    return found


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str:
    """Give the script of a letter: the first word of its name in Unicode."""
    name = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
    return _TOGETHER.get(name, name)
