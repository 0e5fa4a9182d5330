"""Reading, in a browser: all that was said, as a person reads it, whoever wrote it and however long it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from palaver import Session, SqliteStore
from palaver.messages import AssistantMessage, Message, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Dialog
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at

ROWS = 30_000
TURNS = 40
BOMBS = {
    "quotes": "> " * 50_000,
    "lists": "- " * 50_000,
    "brackets": "[" * 50_000,
    "emphasis": "*a **b _c__" * 5_000,
    "table": "|a|b|c|d|\n|-|-|-|-|\n" + "|w|x|y|z|\n" * 25_000,
    "wide": "|a" * 10_000 + "\n" + "|-" * 10_000 + "\n" + "|x" * 10_000,
    "fences": "```\n" * 20_000,
    "code": "```js\n" + "a = 1 + f(2) // x\n" * 500_000,
    "templates": "```js\n" + "`${\n" * 8_000,
}
MARKDOWN = """# Plan

Some *words*, **more** and `code`, ~~gone~~.

1. first
2. second

| a | b |
|---|---|
| 1 | 2 |

```python
print("<b>")  # said
```

```unheard-of
print("as it is")
```

> quoted

[link](https://example.org/x) [bad](javascript:alert(1)) ![seen](http://evil.example/x.png) <img src=x onerror=alert(1)>
"""
DRAWN = {"em": "words", "strong": "more", "code": "code", "s": "gone", "li": "first", "td": "1", "blockquote": "quoted"}


def _stocked(store: SqliteStore) -> dict[str, Dialog]:
    names = ("talk", "markdown", "long", *BOMBS)
    dialogs = {name: Session.create(store, name).root for name in names}
    talk = dialogs["talk"]
    for number in range(TURNS):
        talk.put_text(f"question {number}")
        calls = [ToolCallContent(id=f"c{which}", name="look", args={"at": f"place {number}"}) for which in range(3)]
        talk.append(AssistantMessage(contents=(TextContent(f"looking {number}"), *calls)))
        for call in reversed(calls):
            text = f"found {number} {call.id}\nand more"
            talk.append(ToolMessage.from_result(ToolResultContent(id=call.id, content=text)))
        talk.append(AssistantMessage(content=f"answer {number} " + "word " * (number * 20)))
    dialogs["markdown"].put_text("Write.")
    edit = ToolCallContent(
        id="e",
        name="Edit",
        args={"path": "a.py", "old_string": 'one\n"""two\nthree"""', "new_string": 'one\n"""2\nthree"""'},
    )
    dialogs["markdown"].append(AssistantMessage(contents=(TextContent(MARKDOWN), edit)))
    dialogs["long"].append(
        [Message(role=("user", "assistant")[number % 2], content=f"said {number}") for number in range(ROWS)]
    )
    for name, text in BOMBS.items():
        dialogs[name].put_text("Write.")
        dialogs[name].append(AssistantMessage(content=text))
        dialogs[name].put_text("The end.")
    return dialogs


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, dict[str, Dialog]]]:
    """Yield a page, and the dialogs of its sessions."""
    with looked_at(tmp_path_factory.mktemp("reading"), _stocked) as (_, tab, dialogs):
        yield tab, dialogs


def _read(tab: Tab) -> dict[int, str]:
    """Scroll from the beginning to the end, and return the words of each entry."""
    seen: dict[int, str] = {}
    tab.ask("document.getElementById('reading').scrollTop = 0")
    for _ in range(500):
        tab.settle()
        found = (
            "[...document.querySelectorAll('[data-index]')].map((one) => [Number(one.dataset.index), one.innerText])"
        )
        seen |= dict(tab.ask(found))
        if tab.ask(
            "(({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight >= scrollHeight - 2)(document.getElementById('reading'))"
        ):
            return seen
        tab.ask("document.getElementById('reading').scrollBy(0, document.getElementById('reading').clientHeight)")
    raise AssertionError("The end is never reached.")


def test_all_that_was_said_is_read_once_in_order(shown: tuple[Tab, dict[str, Dialog]]) -> None:
    """Each text is with its entry; each call is one line with the first line of its own result, which is nowhere else."""
    tab, dialogs = shown
    dialog = dialogs["talk"]
    tab.go(f"#/s/{dialog.session_id}")
    seen = _read(tab)
    for number in range(TURNS):
        asked, looked, *answers, said = (" ".join(seen[number * 6 + at].split()) for at in range(6))
        assert asked.endswith(f"question {number}")
        assert f"looking {number}" in looked
        assert re.findall(r"found \d+ c\d", looked) == [f"found {number} c{which}" for which in range(3)]
        assert answers == ["", "", ""]
        assert said.endswith(f"answer {number} {'word ' * (number * 20)}".strip())


def test_markdown_is_drawn_and_markup_is_text(shown: tuple[Tab, dict[str, Dialog]]) -> None:
    """What Markdown means has its elements, links lead to http alone, no image is loaded, and an edit is a patch."""
    tab, dialogs = shown
    words = tab.go(f"#/s/{dialogs['markdown'].session_id}")
    for name, text in DRAWN.items():
        assert text in tab.ask(f"[...document.querySelectorAll('.markdown {name}')].map((one) => one.textContent)"), (
            name
        )
    assert 'print("<b>")' in tab.text("pre.code")
    links = "[...document.querySelectorAll('.markdown a')].map((one) => [one.textContent, one.getAttribute('href')])"
    assert ["link", "https://example.org/x"] in tab.ask(links)
    assert not [href for _, href in tab.ask(links) if href and not href.startswith("https://")]
    assert "<img src=x onerror=alert(1)>" in words
    assert tab.ask("document.querySelectorAll('#reading img').length") == 0
    lines = "[...document.querySelectorAll('.tool .patch')].map((one) => one.textContent.trimEnd())"
    assert tab.ask(lines) == [" one", '-"""two', '+"""2', ' three"""']
    assert not [address for address in tab.asked if "evil" in address]
    assert tab.told == []


def test_code_is_coloured_after_it_is_shown(shown: tuple[Tab, dict[str, Dialog]]) -> None:
    """The words are the same, in the roles of their language; a text of several lines has one role on both sides of a patch; another language stays plain."""
    tab, dialogs = shown
    tab.go(f"#/s/{dialogs['markdown'].session_id}")
    tab.until("document.querySelectorAll('pre [class^=code-]').length === 6")
    pieces = (
        "[...document.querySelectorAll('.markdown pre [class^=code-]')].map((one) => [one.className, one.textContent])"
    )
    assert tab.ask(pieces) == [["code-word", "print"], ["code-text", '"<b>"'], ["code-note", "# said"]]
    assert tab.ask("[...document.querySelectorAll('pre.code')].map((one) => one.textContent)")[:2] == [
        'print("<b>")  # said\n',
        'print("as it is")\n',
    ]
    patch = "[...document.querySelectorAll('.tool .patch .code-text')].map((one) => one.textContent)"
    assert tab.ask(patch) == ['"""two', '"""2', 'three"""']
    assert tab.told == []


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_markdown_bomb_is_bounded(shown: tuple[Tab, dict[str, Dialog]], bomb: str) -> None:
    """Nesting and tables of 10^5 cells are few elements, what follows is read, and all of it is shown when asked for."""
    tab, dialogs = shown
    assert "The end." in tab.go(f"#/s/{dialogs[bomb].session_id}")
    assert tab.ask("document.querySelectorAll('*').length") <= 4_000
    assert tab.ask(
        "[...document.querySelectorAll('.said button')].some((one) => one.textContent.startsWith('Show all'))"
    )
    assert tab.told == []


def test_a_long_session_is_read_in_few_nodes(shown: tuple[Tab, dict[str, Dialog]]) -> None:
    """An address, a key and the index of prompts lead to any of 30,000 entries, and only what is near is in the page."""
    tab, dialogs = shown
    dialog = dialogs["long"]
    session = f"#/s/{dialog.session_id}"
    assert "said 15000" in tab.go(f"{session}?e={ROWS // 2}")
    assert _in_sight(tab, ROWS // 2)
    tab.ask("document.getElementById('reading').focus()")
    tab.press("n")
    tab.settle()
    assert _in_sight(tab, ROWS // 2 + 2)
    tab.press("N", "N")
    tab.settle()
    assert _in_sight(tab, ROWS // 2 - 2)
    tab.tab_to("#prompts")
    tab.press("End")
    assert "said 29998" in tab.settle()
    assert _in_sight(tab, ROWS - 2)
    assert tab.ask("document.querySelectorAll('*').length") <= 2_000
    assert f"e={dialog.dialog_id[:8]}" in json.dumps(tab.ask("location.hash"))


def _in_sight(tab: Tab, index: int) -> bool:
    place = f"document.querySelector('[data-index=\"{index}\"]').getBoundingClientRect().top"
    found = tab.ask(
        f"(({place}) >= document.getElementById('reading').getBoundingClientRect().top) && ({place}) < innerHeight"
    )
    assert isinstance(found, bool)
    return found
