"""Scripts: whether a summary is written as the user writes. Languages of one script cannot be told apart by code; scripts can.

Only a summary with next to nothing of the user's script is refused. What stays as it is in any language is not looked at: code, quotations, paths,
addresses and names with digits, dots or underscores. And who asked for another language gets it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

__all__ = ["foreign"]

_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "HALFWIDTH": "CJK"}
"""Scripts that one language writes side by side."""
_LETTERS = 20
"""Less of the user's tells nothing, in letters of an alphabet."""
_MOST = 10_000
"""Letters that are looked at: more tell no more."""
_NEXT_TO_NONE = 0.02
"""Names of programs and words without a translation are Latin in any language, an error message is quoted bare: so little of the user's script is
found by chance at most, in a text that is not written in it."""
_WEIGHT: Mapping[str, int] = MappingProxyType({"CJK": 3, "HANGUL": 2})
"""What a letter says, in letters of an alphabet: a syllable or a word."""

_ASIDE = (
    re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"https?://\S+"),
    re.compile(
        r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|「[^」\n]*」|『[^』\n]*』|\u2018[^\u2019\n]*\u2019|(?<!\w)'[^'\n]+'(?!\w)"
    ),
    re.compile(r"[A-Za-z0-9~.@+-]*[\\/_.:=#][A-Za-z0-9\\/_.:=#@+~-]+|[A-Za-z]*\d[A-Za-z0-9]*|(?<!\w)--?[a-z][\w-]*"),
)
"""What is the same in any language: blocks of code, code in a line, addresses, quotations; paths, names of code, and options."""

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


def foreign(summary: str, said: Iterable[str]) -> str:
    """Give the script of the user's words where a summary has next to nothing of it, such as `CYRILLIC`; else an empty text.

    Args:
        summary: The summary.
        said: What the user said.
    """
    words = " ".join(said)
    theirs = _scripts(_bare(words))
    if theirs.total() < _LETTERS:
        return ""
    ((script, letters),) = theirs.most_common(1)
    prose = "\n".join(line for line in summary.splitlines() if not line.startswith("#"))  # headings were given
    ours = _scripts(_bare(prose))
    if letters * 2 < theirs.total() or not ours or ours[script] > _NEXT_TO_NONE * ours.total():
        return ""
    ((instead, _),) = ours.most_common(1)
    wished = _NAMES.get(instead)
    return "" if wished is not None and re.search(wished, words, re.IGNORECASE) else script


def _bare(text: str) -> str:
    """Give a text without what is the same in any language."""
    for form in _ASIDE:
        text = form.sub(" ", text)
    return text


def _scripts(text: str) -> Counter[str]:
    """Weigh the letters of a text by script: the first word of a letter's name in Unicode."""
    found: Counter[str] = Counter()
    for letter in text[:_MOST]:
        if letter.isalpha():
            name = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
            script = _TOGETHER.get(name, name)
            found[script] += _WEIGHT.get(script, 1)
    return found
