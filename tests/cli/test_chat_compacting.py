"""A chat that is compacted: by hand and by itself, with a model's summary, and what that cost."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from palaver.context.summary import HEADINGS
from palaver.session import Session
from palaver.store import open_store
from tests.cli.chats import Chats
from tests.cli.commands import run

SUMMARY = "\n\n".join(f"## {heading}\nwhat a model says of it" for heading in HEADINGS)
USAGE = {"prompt_tokens": 1_234, "completion_tokens": 56, "cost": 0.0123}


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Chats over one store."""
    return Chats(tmp_path)


def words(count: int = 7) -> tuple[list[str], str]:
    """Give answers that are long, and what is typed before each."""
    return [f"Answer {number}: {'word ' * 300}" for number in range(count)], "".join(f"q{n}\n" for n in range(count))


def test_a_compaction_by_hand_has_the_summary_of_the_model_that_is_named(chats: Chats) -> None:
    """--summarizer: the summary stands in the view, beside the record; the preview says what it cost, and /cost has it, too."""
    answers, lines = words()
    by = chats.script({"text": SUMMARY, "usage": USAGE}, name="summaries.json")
    ran = chats.pipe(
        f"You must never push.\n{lines}/compact\n/view\n/cost\n",
        "-m",
        chats.script("ok", *answers),
        "-s",
        "x",
        "--summarizer",
        by,
    )
    assert "1,234 tokens read, 56 written, $0.0123" in ran.err
    assert "Compacted. /undo takes it back." in ran.err
    assert "what a model says of it" in ran.out
    assert "You must never push." in ran.out
    assert "for summaries  1 answers: 1,234 tokens read, 56 written, $0.0123" in ran.out
    with closing(open_store(str(chats.store), create=False)) as store:
        cost = Session.open("x", store).cost
    assert (cost.prompt_tokens, cost.completion_tokens, cost.cost) == (1_234, 56, 0.0123)


def test_a_summary_that_is_none_is_told_with_what_it_cost(chats: Chats) -> None:
    """The record stands alone; the reason and the tokens are said, and the chat goes on."""
    answers, lines = words()
    by = chats.script({"text": "I am sorry.", "usage": USAGE}, {"text": "No.", "usage": USAGE}, name="no.json")
    ran = chats.pipe(f"{lines}/compact\nand?\n", "-m", chats.script(*answers, "Still here."), "--summarizer", by)
    assert "no summary: it has none of the sections" in ran.err
    assert "tokens read" in ran.err
    assert "Still here." in ran.out


def test_a_chat_compacts_by_itself_and_says_so(chats: Chats) -> None:
    """At 0.8 of the budget: why, how small, and what the summary cost; as JSON the same in fields."""
    answers, lines = words(12)
    summaries = [{"text": SUMMARY, "usage": USAGE}] * 9
    by = chats.script(*summaries, name="summaries.json")
    ran = chats.pipe(lines, "-m", chats.script(*answers), "--summarizer", by, "--budget", 4_000)
    assert "more than 3,200: compacted from" in ran.err
    assert "/undo takes it back." in ran.err
    assert "1,234 tokens read, 56 written, $0.0123" in ran.err
    told = chats.pipe(lines, "-m", chats.script(*answers), "--summarizer", by, "--budget", 4_000, "--json")
    rows = [json.loads(line) for line in told.out.splitlines()]
    row = next(row for row in rows if row["type"] == "compacted")
    assert row["trigger"] == "tokens"
    assert row["tokens_after"] < row["tokens_before"]
    assert row["policy"] == "palaver"
    assert (row["cost"], row["refused"]) == ({"read": 1_234, "written": 56, "dollars": 0.0123}, "")


def test_a_configuration_says_when_and_by_whom(chats: Chats) -> None:
    """The agent's own `compact`, with its own model for the summary; --summarizer names another one."""
    answers, lines = words(8)
    config = chats.folder / "agents.yaml"
    config.write_text(
        json.dumps(
            {
                "agent_configs": [
                    {
                        "name": "a",
                        "model_name": "m",
                        "system_prompt": "hi",
                        "invoker": {"invoker": "scripted", "script": [*answers[:5], SUMMARY, *answers[5:]]},
                        "compact": {
                            "policy": "fold",
                            "triggers": [{"type": "tokens", "limit": 1_500}],
                            "summarizer": True,
                        },
                    }
                ]
            }
        )
    )
    ran = chats.pipe(f"{lines}/view\n", "--config", config)
    assert "more than 1,500: compacted from" in ran.err
    other = chats.pipe("q\n", "--config", config, "--summarizer", "nobody/x")
    assert other.code != 0
    assert "nobody" in other.err


@pytest.mark.parametrize("spec", ["", "gpt-4o-mini", "nobody/x", "scripted:/nowhere.json"])
def test_a_summariser_that_is_none_is_refused_before_anything_is_said(chats: Chats, spec: str) -> None:
    """An exit code, one line, and no session."""
    ran = chats.pipe("hi\n", "-m", chats.script("ok"), "--summarizer", spec)
    assert ran.code != 0
    assert "Traceback" not in ran.err
    assert "ok" not in ran.out


def test_the_help_says_it() -> None:
    """The option stands in --help of both commands, by the same name."""
    for command in ("chat", "compact"):
        assert "--summarizer" in run(command, "--help").out
