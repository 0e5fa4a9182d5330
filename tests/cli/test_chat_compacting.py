"""A chat that is compacted: by hand and by itself, with a model's summary, and what that cost."""

import json
import re
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
    assert "by the policy palaver, with a summary by " in ran.err
    assert "what a model says of it" in ran.out
    assert "You must never push." in ran.out
    assert "for summaries  1 answer: 1,234 tokens read, 56 written, $0.0123" in ran.out
    with closing(open_store(str(chats.store), create=False)) as store:
        cost = Session.open("x", store).cost
    assert (cost.prompt_tokens, cost.completion_tokens, cost.cost) == (1_234, 56, 0.0123)


def configured(chats: Chats, answers: list[object], **compact: object) -> Path:
    """Write a configuration whose one agent compacts in its own way, by hand only unless it is told otherwise."""
    agent = {
        "name": "a",
        "model_name": "m",
        "system_prompt": "hi",
        "recall": False,  # what is compacted to is small
        "invoker": {"invoker": "scripted", "script": answers},
        "compact": {"triggers": [], **compact},
    }
    path = chats.folder / "agents.yaml"
    path.write_text(json.dumps({"agent_configs": [agent]}))
    return path


def done(err: str) -> tuple[int, int, str]:
    """Read the line that says what was done: the sizes, and what follows."""
    found = re.search(r"Compacted: ([\d,]+) tokens -> ([\d,]+) (.*) /undo takes it back.", err)
    assert found is not None, err
    return int(found[1].replace(",", "")), int(found[2].replace(",", "")), found[3]


def test_by_hand_it_is_done_as_the_agent_does_it_by_itself(chats: Chats) -> None:
    """The agent's own policy, budget, focus and summariser; one line says what was done, and words behind /compact are the focus instead."""
    answers, lines = words()
    answers[1], answers[3] = f"The heron: {'word ' * 300}", f"The gull: {'word ' * 300}"
    how = {"policy": "fold", "budget": 1_000, "focus": "heron", "summarizer": True}
    config = configured(chats, [*answers, "I am sorry.", "No.", "I am sorry.", "No."], **how)
    ran = chats.pipe(f"{lines}/compact\n/view\n/undo\n/compact gull\n/view\n", "--config", config, "-s", "own")
    before, after, rest = done(ran.err)
    assert after <= 1_000 < before // 2
    assert rest.startswith("by the policy fold, without a summary: it has none of the sections")
    assert "1 exchange with 'heron' stays as it is." in ran.err
    assert "1 exchange with 'gull' stays as it is." in ran.err
    first, second = ran.out.split("# own")[1:]
    assert ("The heron" in first, "The gull" in first) == (True, False)
    assert ("The heron" in second, "The gull" in second) == (False, True)


def test_a_policy_on_the_command_line_is_that_of_compactions_too(chats: Chats) -> None:
    """--policy stands over the configuration's; without a summariser the line says so."""
    answers, lines = words()
    config = configured(chats, list(answers), policy="fold", budget=2_000)
    ran = chats.pipe(f"{lines}/compact\n", "--config", config, "--policy", "manus")
    assert done(ran.err)[2] == "by the policy manus, without a summary, for no summarizer is set."


def test_what_cannot_be_compacted_to_is_told_with_what_is_needed(chats: Chats) -> None:
    """An agent's own budget that nothing fits: the breakdown, and the chat goes on."""
    answers, lines = words()
    config = configured(chats, [*answers, "Still here."], budget=3)
    ran = chats.pipe(f"{lines}/compact\nand?\n", "--config", config)
    assert "Compacted" not in ran.err
    assert "3 tokens" in ran.err
    assert "Still here." in ran.out
    assert ran.code == 0


def test_a_summary_that_is_none_is_told_with_what_it_cost(chats: Chats) -> None:
    """The record stands alone; the reason and the tokens are said, and the chat goes on."""
    answers, lines = words()
    by = chats.script({"text": "I am sorry.", "usage": USAGE}, {"text": "No.", "usage": USAGE}, name="no.json")
    ran = chats.pipe(f"{lines}/compact\nand?\n", "-m", chats.script(*answers, "Still here."), "--summarizer", by)
    assert "no summary: it has none of the sections" in ran.err
    assert "without a summary: it has none of the sections" in ran.err
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


def test_what_is_taken_back_stays_so(chats: Chats) -> None:
    """`/undo` behind a compaction that came by itself: not the next message leads to another one, nor the next chat; many words do."""
    answers, lines = words(8)
    short = [*answers[:6], "ok", "ok", "ok"]
    config = configured(chats, list(short), policy="fold", triggers=[{"type": "tokens", "limit": 1_500}])
    first = chats.pipe("".join(lines.splitlines(keepends=True)[:6]) + "/undo\nand?\n", "--config", config, "-s", "x")
    assert first.err.count("compacted from") == 1
    assert "It stays so until it has grown by a tenth" in first.err
    config = configured(chats, ["ok", "ok"], policy="fold", triggers=[{"type": "tokens", "limit": 1_500}])
    assert "compacted from" not in chats.pipe("and?\n", "--config", config, "-s", "x").err
    assert "compacted from" in chats.pipe(f"{'word ' * 600}\n", "--config", config, "-s", "x").err


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
