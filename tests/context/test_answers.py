"""Answers of summarisers as they come: scratch work, tags and broken characters around them, headings in every usual shape; and what is none."""

# ruff: noqa: RUF001 - words and punctuation of several languages

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Dialog
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.presets import PRESETS, Preset
from palaver.context.summary import HEADINGS, Summarizer, lacking, unusable
from palaver.context.summary.checks import spoken
from palaver.context.summary.cleaning import clean
from palaver.context.summary.scripts import foreign, named
from palaver.messages.normalize import is_clean


def under(form: str, headings: tuple[str, ...] = HEADINGS) -> str:
    """Put each heading into a form."""
    return "\n\n".join(form.format(heading) for heading in headings)


GOOD = under("## {}\nsomething of it")
PLAN = "I plan:\n" + under("## {}\nwhat I would write")


def refused(text: str) -> str:
    """Tell why a text is no summary."""
    return unusable(SummaryAnswer(text=text), HEADINGS, 10, 1_000)


# --- scratch work -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        f"<think>\n{PLAN}\n</think>\n{{}}",
        f"<think>{PLAN}</think>{{}}",
        f"<thinking>\n{PLAN}\n</thinking>\n\n{{}}",
        f"<thought>\n{PLAN}\n</thought>\n{{}}",
        f"<thoughts>\n{PLAN}\n</thoughts>\n{{}}",
        f"<reasoning>\n{PLAN}\n</reasoning>\n{{}}",
        f"<REASONING type='long'>\n{PLAN}\n</Reasoning>\n{{}}",
        f"<analysis>\n{PLAN}\n</analysis>\n<summary>\n{{}}\n</summary>",
        f"<seed:think>{PLAN}</seed:think>\n{{}}",
        f"[THINK]{PLAN}[/THINK]{{}}",
        f"◁think▷{PLAN}◁/think▷{{}}",
        f"{PLAN}\n</think>\n\n{{}}",  # the template began it
        f"{PLAN} So I write.</think>\n{{}}",
        f"<think>\nhm\n<think>\n{PLAN}\n</think>\nwell\n</think>\n{{}}",
        f"<think>a</think>\n<think>{PLAN}</think>\n{{}}",
        f"Let me see. <think>\n{PLAN}\n</think>\n{{}}",
        f"<think>\n```\nnever closed {PLAN}\n</think>\n{{}}",
        f"```markdown\n<think>\n{PLAN}\n</think>\n{{}}\n```",
        "<summary>\n{}\n</summary>",
        "Here is the summary:\n\n<summary>\n{}\n</summary>",
        "<summary>\n{}",
        "<output>\n```md\n{}\n```\n</output>",
    ],
)
def test_scratch_work_and_what_stands_around_is_no_part_of_an_answer(form: str) -> None:
    """DeepSeek's, Qwen's, Kimi's, Magistral's and whatever a prompt asks for; the answer behind it stays as it is, and is whole."""
    said = clean(form.format(GOOD))
    assert said.removeprefix("Let me see.").strip() == GOOD
    assert lacking(said, HEADINGS) == ()


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\n{PLAN}",
        f"<think>\n{PLAN}\n</think>",
        f"<analysis>{PLAN}</analysis>\n",
        f"{PLAN}\n</think>\n",
        f"<thought>{PLAN}</thought><reasoning>{PLAN}",
        f"```\n<think>\n{PLAN}\n```",
    ],
)
def test_what_only_thinks_is_no_answer(text: str) -> None:
    """However well it plans its sections: what never ends is no answer, and what ends with nothing behind it is an empty one."""
    assert clean(text) == ""
    assert "empty" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "## Progress\nThe parser drops `<think>` and `</think>` now.",
        "## Progress\n```\n<think>\nhm\n</think>\n```\nis what Qwen writes",
        "## Progress\nIt asks whether <think> tags are left; they are not.",
        "## Goal\nStrip tags.\n## Decisions\n- It looks for <think>\n- Never drop the table.\n- Up to </think> all goes.\n## Next\nx",
        "## Goal\nKeep port 8080.\n- It strips what ends with </think>\n## Next\nRun tests.",
        "## Goal\nKeep port 8080.\n</think> is what it strips.\n## Next\nRun tests.",
        "**Goal**\nKeep port 8080.\n</think>\n**Next**\nRun tests.",
        "## Server\n### Done\nPort 8080.\n</think>\n## Client\n### Done\nx",
        "## Goal\n<think> tags are stripped by the server.\nKeep port 8080.\n## Next\nx",
        "## Goal\n<think>\nis never closed there.\n## Next\nx",
        "## Goal\n<think>\nKeep port 8080.\n## Next\n</think>\nx",
        "## Goal\nx\n<reflection> a component of the page\n## Next\n- c",
        "Below it says:\n[THINK] mode is on\n## Next\n- c",
        "- It looks for <think>\n- Never drop the table.\n- It ends at </think>\n- Port 8080.",
        "It looks for <think>\nand ends\n- at </think>\nand keeps port 8080.",
        "## Progress\n<details><summary>more</summary>text</details>",
        "<summary>a</summary> and more",
        "I think <that> is all.",
    ],
)
def test_an_answer_may_speak_of_scratch_work(text: str) -> None:
    """In code, between backticks, amid a line, at the end of one of a list, and below a heading of the answer the tags are words like others."""
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hm\n</think>\n## Goal\nx", "## Goal\nx"),
        ("## Goal\nplan\n### Why\nhm\n</think>\n## Goal (updated)\nx", "## Goal (updated)\nx"),
        ("## Goal\nplan\n</think>\nhm\n</think>\n## Goal\nx", "## Goal\nx"),
        ("## Goal\nx\n<think>\nhm\n</think>\ny\n## Next\nz", "## Goal\nx\n\n\ny\n## Next\nz"),
        ("Well.\n<think>\nhm\n## Goal\nplan", "Well."),
    ],
)
def test_what_stands_before_an_end_goes_where_nothing_of_the_answer_is_lost(text: str, said: str) -> None:
    """Before the first heading, where all headings stand again behind it, or between two tags alone on their lines with no heading between."""
    assert clean(text) == said


@pytest.mark.parametrize(
    "scratch",
    [
        "Okay, the user ran:\n```bash\npytest -q\nand it failed.",
        "Okay.\n```bash pytest```\nPlan.",
        "**Plan**\nTell it all.",
    ],
)
def test_the_end_of_scratch_work_is_one_where_every_section_stands_behind_it(scratch: str) -> None:
    """The template of a model began to think for it, and what it thought hides the end: a block never closed, a bold line. What lacks a section goes on as it was."""
    whole = "## Goal\nx\n## Next\ny"
    assert spoken(f"{scratch}\n</think>\n\n{whole}\n", ("Goal", "Next")) == whole
    for text in (
        f"{scratch}\n</think>\n\n## Goal\nx",
        f"## Goal\nx\n</think>\n{scratch}",
        f"<think>\n{scratch}\n</think>\n{whole}",
    ):
        assert spoken(text, ("Goal", "Next")) == spoken(text, ()) == clean(text)


HOSTILE = {
    "</think>": 300_000,
    "<think>": 100_000,
    "<think>x</think>": 100_000,
    "a</think>\n": 100_000,
    "# a\n</think>\n": 100_000,
    "x <think>\n": 100_000,
    "<think ": 100_000,
    "<output>": 100_000,
}


@pytest.mark.parametrize("part", HOSTILE, ids=repr)
def test_a_hostile_answer_is_read_once(part: str) -> None:
    """Many tags take a moment: where each was held against all others, the first row alone took minutes, and so the test's limit."""
    many = part * (HOSTILE[part] // len(part))
    assert len(clean(f"## a\n{many}\n</think>")) <= len(many) + 14
    assert len(clean(f"{many}\n</think>")) <= len(many) + 9


PARTS = ("<think>", "</think>", "\n", "```", "<summary>", "</summary>", "a", "# ", "|", "**", "\0", "\ud83d")


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_whatever_is_cleaned_can_be_stored(text: str) -> None:
    """What was cleaned can be stored, and does not begin with a thought but in a block of code; nothing raises, whatever stands in it."""
    said = clean(text)
    assert is_clean(said)
    assert not said.startswith("<think>") or "```" in said
    lacking(said, HEADINGS)


# --- headings -----------------------------------------------------------------------------------------------------------------

IN_CHINESE = ("用户意图", "进展", "关键决定与发现", "错误与解决", "当前状态", "下一步")
IN_GERMAN = ("Absicht des Nutzers", "Fortschritt", "Entscheidungen", "Fehler", "Stand", "Was noch zu tun ist")
IN_ARABIC = ("هدف المستخدم", "التقدم", "القرارات", "الأخطاء", "الحالة", "الخطوات")
GERMAN = "Der Nutzer will, dass die Seite schneller wird; der Cache ist an und die Tests sind grün."
OTHERS = ("Setup", "Install", "Configure", "Run it", "Test it", "Deploy")


@pytest.mark.parametrize(
    "form",
    [
        "## 🎯 {}\ndone",
        "## {} ✅\ndone",
        "## {} (updated)\ndone",
        "## {} — overview\ndone",
        "## {} - so far: done",
        "### 1) {} of the work\n- done",
        "**🎯 {} (updated)**\n- done",
        "**{} so far:** done",
        "## Updated {}\ndone",
        "| {} | done |",
        "| **{}** | done | and more |",
        "{}\n-----\ndone",
        "## {}：done",
    ],
)
def test_a_heading_that_says_more_than_its_name_is_found(form: str) -> None:
    """Signs, "(updated)", what it is of, a row of a table; the right sections in order cost no second request."""
    table = "| Section | Text |\n|---|---|\n" if form.startswith("|") else ""
    text = table + ("\n" if form.startswith("|") else "\n\n").join(form.format(heading) for heading in HEADINGS)
    assert lacking(text, HEADINGS) == ()
    assert refused(text) == ""


@pytest.mark.parametrize("preset", [each for each in PRESETS if each.headings], ids=lambda each: each.name)
def test_headings_of_every_preset_are_found_when_they_say_more(preset: type[Preset]) -> None:
    """No name of one hides that of another, also where one is a part of the other."""
    headings = preset.headings
    assert lacking(under("## {} (updated)\ndone", headings), headings) == ()
    assert lacking(under("## {}\ndone", headings[:-1]), headings) == headings[-1:]


@pytest.mark.parametrize(
    ("headings", "body"),
    [
        (IN_CHINESE, "用户要求把网站加快。"),
        (IN_ARABIC, "يريد المستخدم أن يكون الموقع أسرع."),
        (IN_GERMAN, GERMAN),
        (
            ("Intención", "Progreso", "Decisiones", "Errores", "Estado", "Pasos"),
            "El usuario quiere que la página cargue y no se rompa.",
        ),
        (("User Intent", "进展", "关键决定", "错误", "当前状态", "Next Steps"), "缓存已启用。"),
        (("What he wants", "Progress", "Decisions", "Errors & Resolutions", "State", "Next Steps"), "The cache is on."),
    ],
)
@pytest.mark.parametrize("form", ["## {}\n", "**{}**\n", "**{}:** ", "# Title\n\n### {}\n", "| {} | x"])
def test_headings_in_the_users_language_are_those_that_were_asked_for_in_order(
    headings: tuple[str, ...], body: str, form: str
) -> None:
    """As many of one level as were asked for: in another script or language, or most of them by their names; a title above counts for nothing."""
    if form.startswith("|"):
        text = "| A | B |\n|---|---|\n" + "\n".join(f"| {heading} | {body} |" for heading in headings)
    else:
        first, form = form.rsplit("\n\n", 1) if "\n\n" in form else ("", form)
        text = first + "\n\n" + "\n\n".join(form.format(heading) + body for heading in headings)
    assert lacking(text, HEADINGS) == ()
    assert refused(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Sure! I have fixed the tests. Anything else?",
        "已经修好了。还需要别的吗？",
        "I fixed it.\n\n## Next steps for you\n- run it",
        "I fixed it.\n\n## My progress today\nAll of it.",
        under("## {}\nRun `pip install` and see that it is there.", OTHERS),  # a guide of six parts
        under("## {}\nThe user has to do this and that with it.", OTHERS),
        "\n\n".join(
            f"## {heading}\n用户要求。" for heading in IN_CHINESE[:5]
        ),  # one is missing, and nobody knows which
        "\n\n".join(f"## {heading}\n用户要求。" for heading in (*IN_CHINESE, "其他")),
        "\n".join(f"## {heading}" for heading in IN_CHINESE),  # with nothing under them
        "\n".join(f"- {heading}: 好" for heading in IN_CHINESE),
        "So:\n```\n" + "\n".join(f"## {heading}\n好" for heading in IN_CHINESE) + "\n```",
        "| Section | Text |\n|---|---|\n" + "\n".join(f"| {heading} | |" for heading in HEADINGS),
        "\n".join(f"{number}. {GERMAN}" for number in range(6)),
    ],
)
def test_what_goes_on_with_the_conversation_has_none_of_the_sections(text: str) -> None:
    """A reply, a guide with as many parts, headings without words, one section too few or too many: refused as before."""
    assert "none of the sections" in refused(text)


def test_sections_in_another_order_are_named_and_not_guessed() -> None:
    """Where those that have their names are not in their places, the others are not known by theirs."""
    swapped = ("Progress", "User Intent", "决定", "错误", "状态", "Next Steps")
    assert set(lacking(under("## {}\n好", swapped), HEADINGS)) == {
        "Key Decisions & Findings",
        "Errors & Resolutions",
        "Current State",
    }


def test_the_prompt_says_in_which_language_what_is() -> None:
    """The words as the user writes, the headings as they stand: an answer that does as it is told needs no guessing."""
    said = SummaryRequest().instruction
    assert "Write in the language in which the user writes." in said
    assert "with these headings, untranslated:\n\n## User Intent" in said


# --- scripts ------------------------------------------------------------------------------------------------------------------

CONTRACT = "本合同由甲乙双方签订，甲方应在三十日内支付全部款项，乙方应按时交付货物并提供发票。" * 60
LETTER = "The parties agree that the seller shall deliver the goods within thirty days after payment. " * 40
IN_ENGLISH, CHINESE = under("## {}\nThe clauses were explained to him."), under("## {}\n已经解释了合同的条款。")


@pytest.mark.parametrize(
    ("asks", "summary", "script"),
    [
        (["Please explain the following contract clause by clause.\n\n" + CONTRACT], IN_ENGLISH, ""),
        (["Translate this for my boss, he only reads English:\n\n" + CONTRACT], IN_ENGLISH, ""),
        (["Explain:\n" + CONTRACT, *(f"Please go on with clause {n}." for n in range(9))], IN_ENGLISH, ""),
        ([CONTRACT, *(f"Please go on with clause {n}." for n in range(9))], IN_ENGLISH, ""),
        ([CONTRACT, *(f"Please go on with clause {n}." for n in range(9))], CHINESE, "LATIN"),
        (["请逐条解释下面的合同。\n\n" + LETTER, *(f"请继续解释第{n}条的内容。" for n in range(9))], CHINESE, ""),
        (["请逐条解释下面的合同。\n\n" + LETTER, *(f"请继续解释第{n}条的内容。" for n in range(9))], IN_ENGLISH, "CJK"),
        (["请把 README 里的 cache 改成 lazy loading 并且更新 changelog"] * 4, IN_ENGLISH, "CJK"),
        (
            ["请修复这个错误：\nTraceback (most recent call last):\nValueError: the value is wrong here"],
            IN_ENGLISH,
            "CJK",
        ),
        (["请让所有测试通过，不要修改测试文件。", *["ok"] * 40], IN_ENGLISH, "CJK"),
        (["继续"] * 12, IN_ENGLISH, "CJK"),
        (["Make it fast.", *(f"Go {n}." for n in range(9))], CHINESE, "LATIN"),
        (["What does 合同 mean in this sentence, please?"], IN_ENGLISH, ""),
    ],
)
def test_the_users_own_asks_tell_his_script_each_as_much_as_another(asks: list[str], summary: str, script: str) -> None:
    """What he pasted is not what he writes, however long it is; a summary in another script than his own is refused as ever."""
    assert foreign(summary, asks) == script


@pytest.mark.parametrize("marks", ["“”", "«»", "„“", "„”", "「」", "『』", "\u2018\u2019", '""', "''"])
def test_quotations_are_in_nobodys_script_and_marks_that_nothing_closes_are_no_quotations(marks: str) -> None:
    """A summary whose English stands in quotations is in the user's script; the same words behind marks of which none is closed on their line are its own."""
    opening, closing = marks[0], marks[1]
    asks = ["请让所有测试通过，不要修改测试文件。"]
    quoted = f"{opening}The value is wrong{closing} "
    assert foreign(f"{quoted * 20}测试失败了", asks) == ""
    assert foreign(f"{opening}\n{'The value is wrong. ' * 20}\n{closing}", asks) == "CJK"
    assert foreign(f"{opening}\n{'The value is wrong. ' * 20} {quoted}", asks) == "CJK"
    assert foreign(f"{opening} {opening}The value is wrong{closing} 测试失败了", asks) == ""


@pytest.mark.parametrize("mark", ["“", "«", "„", "「", "『", "\u2018", '"', "'", "„ « “ 「 『 "])
def test_marks_that_nothing_closes_cost_their_own_length(mark: str) -> None:
    """Very many of them, in a summary and in what the user says: were each of them looked for to the end of the line, this would take many minutes."""
    many = mark * (200_000 // len(mark))
    asks = ["请让所有测试通过，不要修改测试文件。"]
    assert foreign(many, asks) == ""
    assert foreign(f"{many}\nThe value is wrong.", asks) == "CJK"
    assert foreign("测试失败了", [many, *asks]) == ""


def test_scripts_are_called_as_people_call_them() -> None:
    """By the languages, or by the letters."""
    assert named("CJK") == "Chinese, Japanese or Korean"
    assert (named("HANGUL"), named("CYRILLIC")) == ("Korean", "Cyrillic letters")


# --- what cannot be stored ----------------------------------------------------------------------------------------------------


def said(text: str) -> Summarizer:
    """Give a summariser that says this."""

    async def answer(request: SummaryRequest, /) -> SummaryAnswer:
        del request
        return SummaryAnswer(text=text)

    return answer


def talked() -> Dialog:
    """Give a dialog of which most leaves."""
    dialog = Dialog(owner="a")
    dialog.put_text("Make the site faster. You must never push to main.")
    for number in range(20):
        dialog.put_text(f"answer {number} " + "word " * 120, role="assistant")
        dialog.put_text(f"Go on, {number}.")
    return dialog


class Loose(str):
    """A text of a class of its own, as some libraries give."""

    __slots__ = ()


@pytest.mark.parametrize("make", [str, Loose], ids=["str", "Loose"])
@pytest.mark.parametrize("given_", [True, False], ids=["given", "made"])
def test_a_summary_with_broken_characters_is_cleaned_and_committed(make: Callable[[str], str], *, given_: bool) -> None:
    """NUL and half an emoji, of a summariser or of one's own: replaced as in every text that comes in; what is committed reads back as it was."""
    dialog, text = talked(), make(GOOD + "\ncut off \ud83d and \0 here")
    made = dialog.compact(summary=text, budget=2_500) if given_ else dialog.compact(summarizer=said(text), budget=2_500)
    assert made.refused == ""
    assert made.summary.endswith("cut off \ufffd and \ufffd here")
    made.approve()
    assert dialog.view().exchanges == made.composed.view.exchanges
    assert dialog.compact(budget=1_500).attempt is not None
