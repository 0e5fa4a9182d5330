"""What the user asked for: constraints are found in his own words, in several languages, and not in what he pasted."""

# ruff: noqa: RUF001 - sentences in several languages

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.record.asks import rules, sentences
from tests.context.test_stated import said
from tests.recorded import Recording, recordings

STATED = [
    "You must never push to main.",
    "Always use tabs in src/palaver.",
    "Do not edit tests/test_fit.py.",
    "Prefer plain functions.",
    "The request may have at most 250 ms.",
    "Write in English only.",
    "Refactor the parser without changing its API.",
    "No new dependencies please.",
    "Can you make sure you don't touch the tests?",
    "please dont rename anything",
    "I'd rather keep Python 3.11.",
    "We only use SQLite here.",
    "It should be a single file.",
    "The archive cannot exceed 5 MB.",
    "Use uv instead of pip.",
    "can you ensure we have an example that runs.",
    "We want to AVOID force push entirely, because it destroys the work of others.",
    "Du darfst niemals auf main pushen.",
    "Verwende immer Tabs.",
    "Ändere die Tests nicht, bitte keine neuen Abhängigkeiten.",
    "Die Antwort muss auf Deutsch sein.",
    "Bitte keine Kommentare im Code.",
    "Der Aufruf darf höchstens 250 ms dauern.",
    "Verwenden Sie nur Python 3.11.",
    "Kannst du bitte nur die Dokumentation anpassen?",
    "代码里禁止使用全局变量。",
    "不要修改测试文件。",
    "必须使用 Python 3.11。",
    "请用中文回答，不要用英文。",
    "响应时间不能超过 250 毫秒。",
    "只能使用标准库。",
    "テストを変更しないでください。",
    "테스트를 절대 수정하지 마세요.",
    "No modifiques los archivos de prueba.",
    "Debes responder siempre en español.",
    "Ne modifie jamais les tests.",
    "Не изменяй тесты.",
    "Non modificare mai i test.",
    "Você nunca deve alterar os testes.",
]
REPORTED = [
    "It never returns.",
    "Why does it always fail?",
    "I don't know what happens.",
    "What should I do next?",
    "I can't remember my order number.",
    "How do I use this?",
    "The server always answers with 500.",
    "It only happens on Windows.",
    "I tried to use the other one.",
    "That should work now.",
    "There must be a bug somewhere.",
    "I've been walking at least two hours a day.",
    "If documentation is required, tell me.",
    "Check whether the issue should be closed.",
    "Thanks, never mind.",
    "Es stürzt immer ab.",
    "Warum läuft das nie?",
    "Was soll ich tun?",
    "程序总是报错。",
    "为什么不能运行？",
    "我不能登录。",
    "我们应该怎么做？",
    "Never.",
]
PASTED = [
    "> You must never push.",
    "2026-01-02 10:11:12 you must set FOO",
    "[10:11:12] never do that again",
    "ERROR you must not set FOO",
    "WARNING: this option must not be used",
    "ValueError: x must be positive",
    '  File "a.py", line 3, in must_never',
    '{"rule": "never push"}',
    'assert x, "must not be empty"',
    "def never(): you must",
    "# never();\n    always = only(1);",
    "    you must indent this by four",
    "35: # Ensure the string can be evaluated",
    "@@ -1 +1 @@ never",
    "| must | never |",
    "│ must never │",
    "//  must never be called twice",
    "$ rm --never --always",
    "Personal data must not be processed without consent.[33][34]",
    'He wrote "you must never push" and left.',
    "You must never push " + "and push " * 300,
    "The controller must keep records of it. " * 20,
]


@pytest.mark.parametrize("text", STATED)
def test_what_must_or_must_not_be_is_found_word_for_word(text: str) -> None:
    """In the languages that are spoken most, as orders, as norms and as polite questions; and among other sentences."""
    assert list(rules(text)) == [text]
    assert text in list(rules(f"Thanks a lot!\n{text}\nGo on."))


@pytest.mark.parametrize("text", REPORTED)
def test_who_reports_asks_or_guesses_states_nothing(text: str) -> None:
    """The same words, where they say what is, or wonder what is."""
    assert list(rules(text)) == []


@pytest.mark.parametrize("text", PASTED)
def test_what_was_pasted_states_nothing(text: str) -> None:
    """Logs, code, data, tables, quotations, encyclopedias, and lines longer than anybody writes; what stands beside them counts."""
    assert list(rules(text)) == []
    assert list(rules(f"{text}\n\nPlease never do that.")) == ["Please never do that."]


@pytest.mark.parametrize(
    "block",
    [
        "```\n{}\n```",
        "~~~py\n{}\n~~~",
        "````\n```\n{}\n```\n````",
        "<log>\n{}\n</log>",
        '<file path="a">\n{}\n\n{}\n</file>',
    ],
)
def test_fences_and_elements_hold_what_is_not_the_users(block: str) -> None:
    """Whatever stands between fences or in an element with a name; what stands in one that asks is his own, and so is what is never closed."""
    rule = "You must never push."
    assert list(rules(f"Look.\n{block.format(rule, rule)}\nAlways use tabs.")) == ["Always use tabs."]
    assert list(rules(f"<instructions>\n{rule}\n</instructions>")) == [rule]
    assert list(rules(f"<log>\n{rule}")) == [rule]


@pytest.mark.parametrize(
    "announced",
    [
        "Here is the log:",
        "I get this error:",
        "the output is:",
        "Hier ist die Ausgabe:",
        "日志如下，报错：",
        "Voici la sortie:",
    ],
)
def test_what_is_announced_as_a_log_ends_where_prose_begins_again(announced: str) -> None:
    """Behind "here is the log:" nothing counts up to a paragraph of prose."""
    text = f"Fix it. {announced}\nyou must set FOO\nnever mind the rest\n\n[ERROR] must not be null\n\nBut never change the API."
    assert list(rules(text)) == ["But never change the API."]


@pytest.mark.parametrize(
    "announced", ["The spec says:", "Here is the document:", "Contents of the README:", "文档内容如下："]
)
def test_what_is_announced_as_a_document_ends_where_somebody_is_addressed(announced: str) -> None:
    """Behind "here is the document:" no prose counts before the user turns to who is to do something."""
    quoted = "A client must send a token.\n\nServers must not keep it.\n\nUse TLS only."
    assert list(rules(f"{announced}\n{quoted}")) == []
    assert list(rules(f"{announced}\n{quoted}\n\nPlease never log the token.")) == ["Please never log the token."]


def test_a_list_under_a_heading_that_says_so_is_all_constraints() -> None:
    """Whatever words its items have; the list ends where it ends."""
    text = "Add a cache.\n\n## Constraints\n- Python 3.11\n- 80 columns\n\n- camelCase in TS\n\nThe rest is up to you.\n- colours"
    assert list(rules(text)) == ["- Python 3.11", "- 80 columns", "- camelCase in TS"]


TYPED = {
    "hey can you build a todo app? use tailwind for styling, no class components pls. oh and keep it in one file. thanks!!": [
        "use tailwind for styling, no class components pls.",
        "oh and keep it in one file.",
    ],
    "lgtm, ship it. but ask me before u push anything ok?": ["lgtm, ship it. but ask me before u push anything ok?"],
    "1. use tabs\n2. no emojis\n3. max 100 cols\n4. write tests first": [
        "1. use tabs",
        "2. no emojis",
        "3. max 100 cols",
        "4. write tests first",
    ],
    "pls always run `ruff check` before u commit. also never use bare except": [
        "pls always run `ruff check` before u commit.",
        "also never use bare except",
    ],
    "why did you rename it?? revert it and leave names alone from now on": [
        "revert it and leave names alone from now on"
    ],
    "no nuts please, my kid is allergic": ["no nuts please, my kid is allergic"],
    "I need this by Friday, budget 500 EUR max": ["I need this by Friday, budget 500 EUR max"],
    "Summarize the following article: The company must pay $5M. Employees should never share data.": [],
    "translate: 'do not enter'": [],
    "Write a story where the hero must never look back.": [],
    "Explain why you should always close files": [],
    "what's your opinion, should we never use ORMs?": [],
}


@pytest.mark.parametrize("text", TYPED)
def test_messages_as_they_are_typed(text: str) -> None:
    """Without capitals, with several things in one line; and what is to be worked on, told or explained is nobody's wish."""
    assert list(rules(text)) == TYPED[text]


PLAN = (
    """# Implementation Plan: `reset`

## Overview

Add a command that deletes the branch. The button should be blue. Use `SilentError` for messages.

## Steps

- Use `TruncateDescription()` for truncation
- No shadow branch
- The file must never be written twice.

## Testing

Run the tests. """
    + "It goes on like this, and says what the thing does. " * 30
)
ORDERS = (
    """# AGENTS.md

## Code style

- Tabs
- No emojis

## Testing guidelines

Use pytest, not unittest.

## Git

- ask before pushing
- The file must never be written twice.

"""
    + "It goes on like this, and says what the thing does. " * 30
)


def test_a_plan_describes_and_orders_order() -> None:
    """In a long message with headings only what is forbidden or demanded counts, unless its headings say that it tells how to work."""
    assert list(rules(PLAN)) == ["- The file must never be written twice."]
    found = [
        "- Tabs",
        "- No emojis",
        "Use pytest, not unittest.",
        "- ask before pushing",
        "- The file must never be written twice.",
    ]
    assert list(rules(ORDERS)) == found


def test_wrapped_sentences_are_whole() -> None:
    """A sentence that goes on in the next line is one."""
    text = "Whatever else you do in this repository, you must never\npush to the branch main. Thank you."
    assert list(rules(text)) == ["Whatever else you do in this repository, you must never push to the branch main."]


def test_a_page_of_rules_is_bounded() -> None:
    """At most 32 of one message, the first ones."""
    text = "\n".join(f"- never do {number}" for number in range(100))
    assert list(rules(text)) == [f"- never do {number}" for number in range(32)]


@given(
    st.lists(
        st.sampled_from(
            [
                "must",
                "never",
                "<a>",
                "</a>",
                "```",
                "> ",
                ":",
                "log:",
                "\n",
                "\n\n",
                '"',
                "don't",
                "(",
                "。",
                "only",
                "x" * 90,
                "if",
                "?",
            ]
        )
    ).map(" ".join)
)
def test_what_is_found_was_said(text: str) -> None:
    """Whatever the text is: each finding stands in it, but for the breaks of lines; twice the same."""
    found = list(rules(text))
    said = " ".join(text.split())
    assert all(" ".join(rule.split()) in said for rule in found)
    assert found == list(rules(text))


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 50_000,
        "never " * 25_000,
        ("you must " * 30 + "\n") * 800,
        "```\n" * 25_000,
        "a:\n\n" * 25_000,
        "((((" * 25_000 + "must",
    ],
)
def test_a_long_text_of_anything_is_read_through(text: str) -> None:
    """No text makes it take more than its length does."""
    assert len(list(rules(text))) <= 32


@pytest.mark.parametrize("recording", recordings("claude_code", "pi", each=2))
def test_in_recorded_sessions_findings_are_few_and_word_for_word(recording: Recording) -> None:
    """Each stands in what somebody said; they are less than a quarter of his sentences."""
    found = count = heard = 0
    for text in said(recording.path):
        stated = list(rules(text))
        words = " ".join(text.split())
        assert all(" ".join(rule.split()) in words for rule in stated)
        heard += 1
        found += len(stated)
        count += sum(1 for _ in sentences(text))
    assert heard
    assert found * 4 <= count + 16
