"""Tools in a text protocol: the model writes an action as text, and what the tool gave back comes as a user's message.

So agents spoke before providers had tools, and many do still: ReAct (Yao et al. 2022, arXiv 2210.03629) in many languages, LangChain's text and JSON agents,
dynamiq, smolagents, SWE-agent, mini-swe-agent, AutoGen, Open Interpreter, Cline. A message is known as a tool's output by the conversation, never by its
words alone: the model asked for one, and the message begins or ends like one, names what was called, or is what the instructions say an output looks
like. What is sent does not change by it; only whose words they are.
"""

# ruff: noqa: RUF001 - words and punctuation of several languages

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from palaver.messages import ToolCallContent
from palaver.view.announced import is_announced, may_be_announced
from palaver.view.proof import Proof, is_data, output_of, proof
from palaver.view.spelling import NEWEST, OWN_CODE, Spelling

__all__ = [
    "answers",
    "call_in",
    "dressed",
    "is_marked",
    "looks_like_output",
    "may_answer",
    "observes",
    "outside",
    "result_in",
    "shown",
]

_JSON_NAME = re.compile(r"\"name\"\s{0,40}:\s{0,40}\"(?P<name>[^\"\n]*)\"")
_JSON_COMMANDS = re.compile(r"\"(?:commands|keystrokes)\"\s{0,40}:\s{0,40}[\[\"]")
_JSON_INPUT = re.compile(r"\"(?:action_input|tool_input|arguments|args|input|parameters)\"\s*:")
_JSON_OWN_INPUT = re.compile(r"\"(?:action_input|tool_input)\"\s*:")
_NAMED = re.compile(r"[\w.:-]{1,100}")
_CALLED = re.compile(r"[*_`]*[\w.:-]{1,100}[\[(]")
_UNSHOWN = re.compile(r"<action\s[^>\n]{0,200}android:")
"""An element of that name which people are shown."""

_FENCE = re.compile(r"^```[\w+.#-]{0,40}[ \t]*$", re.MULTILINE)
_CLOSED = re.compile(r"</(?P<name>[a-z][\w-]{0,100})>\s*\Z")
_ENDED = re.compile(
    r"^(?:\([A-Z][\w ]{1,40}: [^\n]{0,500}\)[ \t]*\n){2,4}[\w@:~/.\[\] -]{0,80}[$#>%](?:[ \t][^\n]*)?\Z|"
    r"^\[(?:The )?command (?:finished|completed) with exit code -?\d{1,5}[^\n]{0,100}\]\Z|"
    r"^What does this output mean / what's next \(if anything, or are we done\?\)\Z|"
    r"^Now let's retry: take care not to repeat previous errors[^\n]{0,200}\Z",
    re.MULTILINE | re.IGNORECASE,
)
"""How the state of a machine stands behind an output: SWE-agent's open file, folder and prompt (`next_step_template`), OpenHands' exit code, Open
Interpreter's question (`code_output_template`), smolagents' advice behind an error."""

_END = 3_000
"""Characters in which it is seen how a text ends."""

_ECHO = re.compile(
    r"\[(?P<name>[\w.-]{1,100})(?:[ \t][^\n]{0,1000})?\][ \t]{0,4}(?:Result|Output|Response|Error)s?[ \t]{0,4}:"
)
"""How an output begins that says what it is of: Cline and Roo Code, `[read_file for 'a.py'] Result:`."""

_ASKS_THE_USER = re.compile(
    r"ask(?:_\w+)?|attempt_completion|(?:plan|act)_mode_respond|request_(?:user_input|feedback|human_\w+)|(?:get_)?(?:user|human)_input"
)
"""Names of tools to which the user gives the answer."""

_ANSWERED = re.compile(r"<(?P<closes>/?)(?P<element>answer|feedback|user_message)>")
"""Where the user's words stand in what such a tool gives back."""

_HANDS_IN = re.compile(
    r"(?:submit|exit(?:_forfeit)?|done|finish(?:ed)?|complete|terminate|final[_ ]answer|task_complete|attempt_completion|最终答案|最終答案|完成)\b(?:[\[(（].*)?",
    re.IGNORECASE | re.DOTALL,
)
_MARKS = re.compile(r"</?[\w-]{1,100}>")
_LINTED = "# Fix any errors below, if possible."
"""How aider begins what its linters say (`linter.py`)."""

_LONGEST_INPUT = 20_000
_BEFORE = " \t\r\n>*_#"
_HEAD = 400
"""Characters in which it is seen how a text begins."""

_CODE = "(code)"
"""The tool of a model that writes code and names none."""


def is_marked(text: str) -> bool:
    """Tell whether a text begins with the mark of words that stand in a user's turn and the user did not say (`palaver.wire` writes it)."""
    return text.startswith("<from-harness ")


def observes(text: str, spelling: Spelling = NEWEST) -> bool:
    """Tell whether a text begins as a tool's output does in a text protocol, or ends as one. Whether it is one, what was said before tells."""
    return _begins(text, spelling) or (spelling.structure and _ended(text))


def _begins(text: str, spelling: Spelling) -> bool:
    return spelling.observes.match(_head(text)) is not None or dressed(text, spelling)


def looks_like_output(text: str, told: str | None = "", spelling: Spelling = NEWEST) -> bool:
    """Tell whether a text looks like an output by itself, or as the instructions say: enough where it is not known what it answers."""
    return observes(text, spelling) or (spelling.structure and is_announced(told, None, text))


def may_answer(text: str, told: str | None = "", spelling: Spelling = NEWEST) -> bool:
    """Tell whether a text could be what a tool gave back, whatever stands before it: what is no such text needs no looking back.

    Args:
        text: The text.
        told: What the instructions say; None where they were erased or cannot be read.
        spelling: How protocols are spelt.
    """
    if observes(text, spelling):
        return True
    head = _head(text)
    return spelling.structure and (
        is_data(text)
        or spelling.told.match(head) is not None
        or output_of(head)[0] != ""
        or _ECHO.match(head) is not None
        or spelling.answers_code.match(head) is not None
        or may_be_announced(told, text)
    )


def answers(said: str, text: str, told: str | None = "", spelling: Spelling = NEWEST) -> bool:
    """Tell whether a user's text is the output of a tool that the model's text before it asked for.

    People are shown commands, code and JSON in answers, too, are told what action to take, and report what they saw; what they say then is theirs. So the
    surer it is that the model acted, the less the output must look like one (`palaver.view.proof`). Behind code it must begin or end as programs write it.
    Steps that the instructions name, and an output of which they say how it begins, need no words that are known here.

    Args:
        said: What the model said.
        text: What came behind it.
        told: What the instructions say; None where they were erased or cannot be read.
        spelling: How protocols are spelt.
    """
    if not spelling.structure:
        return _answered_early(said, text, spelling)
    sure, called = proof(said, spelling)
    aloud = (
        sure is Proof.FIRM
        or spelling.thought.search(said) is not None
        or _THINKS.match(said) is not None
        or (sure >= Proof.CALL and _names(told, called))
    )
    if is_announced(told, said, text, acted=sure >= Proof.CALL, aloud=aloud) or _echoes(said, text):
        return True
    head = _head(text)
    goes_on = not _hands_in(said, spelling)
    ends = goes_on and _ended(text)
    if sure and (ends or _begins(text, spelling)):
        return True
    if goes_on and sure >= Proof.CALL and (is_data(text) or (called != "" and output_of(head)[0] == called.casefold())):
        return True
    if goes_on and sure is Proof.FIRM and spelling.told.match(head) is not None:
        return True
    return _answers_code(said, text, spelling, ends=ends)


_THINKS = re.compile(r"\s*<(?:think|thinking|thoughts?|reasoning)>", re.IGNORECASE)


def _names(told: str | None, called: str) -> bool:
    """Tell whether the instructions name what is called, as those of agents do: what people are shown stands nowhere in them."""
    return bool(told and called) and re.search(rf"(?<!\w){re.escape(called)}(?!\w)", str(told)) is not None


def _answers_code(said: str, text: str, spelling: Spelling, *, ends: bool = False) -> bool:
    """Tell whether a text answers code, as programs write it."""
    if _code_in(said, spelling) is None:
        return False
    if OWN_CODE.search(said) and not (spelling.structure and _UNSHOWN.search(said)):
        pattern = spelling.answers_code
    else:
        pattern = spelling.answers_thought if spelling.thought.search(said) else spelling.answers_shown
    return ends or pattern.match(_head(text)) is not None or (spelling.structure and _linted(text))


def _answered_early(said: str, text: str, spelling: Spelling) -> bool:
    """Tell the same by the rules before the third."""
    if _begins(text, spelling) and (_acts(said, spelling) or _acts_in_json(said, spelling)):
        return True
    if spelling.action.search(said) or _named(said, spelling):
        return False  # by early rules a sentence behind the word action hid the code behind it
    return _answers_code(said, text, spelling)


def _hands_in(said: str, spelling: Spelling) -> bool:
    """Tell whether what a model calls ends its work, so that what comes next is as a rule another task: SWE-agent puts that behind a demonstration."""
    call = call_in(said, spelling)
    if call is None:
        return False
    name = str(call.args.get("input", ""))[:_HEAD] if call.name == _CODE else call.name
    return _HANDS_IN.fullmatch(_MARKS.sub("", name).strip()) is not None


def _acts(said: str, spelling: Spelling) -> bool:
    """Tell whether a text has an action as agents write it, rather than a sentence behind the word; by early rules."""
    found = None
    for found in spelling.action.finditer(said):  # noqa: B007 - the last one counts
        pass
    if found is None:
        return False
    name = found["name"].strip()
    if spelling.given.search(said, found.end()) is not None or _CALLED.match(name) is not None:
        return True
    if not name:
        return said[found.end() :].lstrip()[:1] in {"`", "{"}
    bare = name.strip("*_`")
    word = _NAMED.fullmatch(bare) is not None if bare else "_" in name
    return word and ("_" in bare or spelling.thought.search(said) is not None)


def _acts_in_json(said: str, spelling: Spelling) -> bool:
    """Tell whether a text has an action in JSON that is no part of a sentence; by early rules."""
    named = _named(said, spelling)
    if named is None:
        return False
    if _JSON_OWN_INPUT.search(said) is not None:
        return True
    before = said[: max(said.rfind("{", 0, named.start()), 0)].rstrip()
    line = before[before.rfind("\n") + 1 :].strip()
    fenced = line.startswith("```") and said.rstrip(" \t\r\n`").endswith("}")
    return _bare(before) in {"", "json"} or fenced or spelling.thought.search(before) is not None


def _named(said: str, spelling: Spelling) -> re.Match[str] | None:
    """Give the name of an action in JSON that has an input; None where there is none. What is nothing but a call has its name under `name`."""
    if _JSON_INPUT.search(said) is None:
        return None
    return spelling.json.search(said) or (_JSON_NAME.search(said) if spelling.structure and _whole(said) else None)


def _whole(said: str) -> bool:
    """Tell whether a text is one JSON object and nothing else."""
    bare = _bare(said).removeprefix("json").strip()
    return bare.startswith("{") and bare.endswith("}")


def _bare(text: str) -> str:
    return text.strip("` \t\r\n").casefold()


def _echoes(said: str, text: str) -> bool:
    """Tell whether a text begins with the name of what the model called in an element; not where the user gives the answer."""
    named = _ECHO.match(_head(text))
    if named is None or _ASKS_THE_USER.fullmatch(named["name"]) is not None:
        return False
    return ("_" in named["name"] or " for '" in named[0]) and f"\n<{named['name']}>" in f"\n{said}"


def dressed(text: str, spelling: Spelling = NEWEST) -> bool:
    """Tell whether a text begins with the mark of a tool's output, a command's or a harness's, whatever stands before it."""
    return (spelling.structure and _linted(text)) or spelling.dressed.match(_head(text)) is not None


def shown(text: str) -> bool:
    """Tell whether a text begins by showing an output, as people do, too: what they say behind it is theirs."""
    return NEWEST.shown.match(_head(text)) is not None


def result_in(text: str) -> str:
    """Give what of an output the tool said: without the mark in front of it, and the state of a machine behind it."""
    bare = text[-_END:].rstrip()
    ended = _ENDED.search(bare)
    if ended is not None:
        text = text[: max(len(text) - _END, 0) + ended.start()]
    head, start = _head(text), len(text) - len(text.lstrip(_BEFORE))
    element = _ELEMENT.match(head)
    if element is not None:
        inside, closing = text[start + element.end() :].rstrip(), f"</{element['name']}>"
        return inside.removesuffix(closing) if inside.endswith(closing) and dressed(text) else text
    # known by its end, it may begin in any way
    patterns = (NEWEST.observes, _ECHO) if ended is not None else (NEWEST.observes, _ECHO, NEWEST.told)
    found = next((found for pattern in patterns if (found := pattern.match(head))), None)
    marked = (0 if ended is not None else output_of(head)[1]) if found is None else found.end()
    return _BEHIND_MARK.sub("", text[start + marked :], count=1) if marked else text


_BEHIND_MARK = re.compile(r"\A[*_]{0,4}:?[*_]{0,4}[ \n]?")
_ELEMENT = re.compile(r"<(?P<name>[\w-]{1,60})>\n?")


def _head(text: str) -> str:
    """Give how a text begins, without emphasis, marks of headings and quotation, and empty lines before it."""
    return text.lstrip(_BEFORE)[:_HEAD]


def _linted(text: str) -> bool:
    return text[:_HEAD].lstrip().startswith(_LINTED)


def _ended(text: str) -> bool:
    """Tell whether behind a text stands the state of a machine."""
    return _ENDED.search(text[-_END:].rstrip()) is not None


def outside(text: str) -> str:
    """Give what of a text the user said, where a text protocol put it among other words.

    Some agents write all steps into one message, behind what the user asked; some give the model his answer as that of a tool.
    """
    named = _ECHO.match(_head(text))
    if named is not None and _ASKS_THE_USER.fullmatch(named["name"]) is not None:
        return "\n".join(_answered(text))
    begins = [found.end() for found in NEWEST.begins.finditer(text)]
    start = begins[-1] if begins else 0
    step = NEWEST.step.search(text, start)
    if step is None or NEWEST.observed.search(text, step.start()) is None:
        return text
    return text if NEWEST.action.search(text, step.start()) is None else text[: step.start()]


def _answered(text: str) -> Iterator[str]:
    """Give what stands in elements in which the user's words are."""
    name, start = "", 0
    for found in _ANSWERED.finditer(text):
        if name and found["closes"] and found["element"] == name:
            yield text[start : found.start()].strip()
            name = ""
        elif not name and not found["closes"]:
            name, start = found["element"], found.end()


@lru_cache(maxsize=1_024)
def call_in(text: str, spelling: Spelling = NEWEST) -> ToolCallContent | None:
    """Give the call that a model's text makes, as a call with a name and arguments; None where it makes none.

    Its id is empty: no result is found by it. Arguments that are no JSON object are given whole, as `input`.
    """
    found = list(spelling.action.finditer(text))
    named = _named(text, spelling)
    if named is not None:
        return ToolCallContent(id="", name=named["name"], args=_json_in(text[text.rfind("{", 0, named.start()) :]))
    if found:
        given = spelling.input.search(text, found[-1].end())
        return ToolCallContent(
            id="", name=found[-1]["name"].strip(" \t*_`[]"), args={} if given is None else _args(given["input"])
        )
    code = _code_in(text, spelling)
    return None if code is None else ToolCallContent(id="", name=_CODE, args={"input": code[:_LONGEST_INPUT].strip()})


def _code_in(text: str, spelling: Spelling) -> str | None:
    """Give the code that a model's text holds, what stands between marks; None where there is none."""
    other = spelling.other.search(text)
    if other is not None:
        return text[other.end() :]
    if not spelling.structure:
        return None
    whole = text if _whole(text) and _JSON_COMMANDS.search(text) else ""
    return next((code for code in (_fenced(text), _element(text), whole) if code), None)


def _fenced(text: str) -> str:
    """Give what stands between the last fences, empty where there are none: the last block of code is the one that is run."""
    code, start = "", -1
    for fence in _FENCE.finditer(text):
        if start < 0:
            start = fence.end()
        elif fence[0].strip() == "```":
            code, start = text[start : fence.start()], -1
    return code if start < 0 else text[start:]


def _element(text: str) -> str:
    """Give what stands in the element with which a text ends and that begins a line, with its marks; empty where it ends with none."""
    closed = _CLOSED.search(text[-_HEAD:])
    if closed is None:
        return ""
    start = f"\n{text}".rfind(f"\n<{closed['name']}")
    return text[start:].strip() if start >= 0 else ""


def _json_in(text: str) -> Mapping[str, Any]:
    """Give the arguments of an action that is one JSON object."""
    try:
        said, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {"input": text[:_LONGEST_INPUT]}
    names = ("action_input", "tool_input", "arguments", "args", "input", "parameters")
    value = next((said[name] for name in names if name in said), None) if isinstance(said, dict) else None
    return value if isinstance(value, dict) else {"input": value}


def _args(text: str) -> Mapping[str, Any]:
    """Give arguments as they stand behind `Action Input:`."""
    bare = text.strip().removeprefix("```json").strip("`").strip()[:_LONGEST_INPUT]
    try:
        said = json.loads(bare)
    except (ValueError, RecursionError):
        return {"input": bare}
    return said if isinstance(said, dict) else {"input": said}
