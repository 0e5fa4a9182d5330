"""Needles over compactions, and evidence of long histories."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from palaver.errors import InvalidInput
from palaver.lab import Settings, entrant, retention
from palaver.lab.evidence import evidence, haystacks, searched
from palaver.lab.needles import needles
from palaver.tokens import counter

COUNT = counter("gpt-4o")


def test_needles_are_in_view_until_they_are_cut() -> None:
    """Before any cut all are; the user's own words survive in a record, and a tail without one loses what it drops."""
    kept = needles(entrant("openhands", "gpt-4o", budget=4_000), COUNT, rounds=60)
    lost = needles(entrant("lllm", "gpt-4o", budget=4_000), COUNT, rounds=60)
    assert kept[0].cuts == lost[0].cuts == 0
    assert kept[0].in_view == kept[0].all > 0
    late, gone = kept[3], lost[3]
    assert late.places["user"][1] > 0 == gone.places["user"][1]
    assert late.in_view <= late.in_reach <= late.all
    assert kept == needles(entrant("openhands", "gpt-4o", budget=4_000), COUNT, rounds=60)


def _file(path: Path, **words: object) -> Path:
    filling = "Talk of the weather, at some length. " * 30
    sessions: list[list[dict[str, object]]] = [
        [{"role": "user", "content": f"{filling} {number}"}, {"role": "assistant", "content": f"Indeed, {number}."}]
        for number in range(12)
    ]
    sessions[2][0] = {"role": "user", "content": "My cat is called Zebulon.", "has_answer": True}
    sessions[10][0] = {"role": "user", "content": "My dog is called Amaranth.", "has_answer": True}
    one = {
        "question_id": "q1",
        "haystack_session_ids": [f"s{number}" for number in range(12)],
        "haystack_sessions": sessions,
        **words,
    }
    path.write_text(json.dumps([one]))
    return path


def test_evidence_is_what_the_view_at_the_end_shows(tmp_path: Path) -> None:
    """Of a history twice the budget the new evidence is in view and the old is not; with all in view both are."""
    path = _file(
        tmp_path / "haystack.json",
        questions=["What is the name of my cat?", "What is the name of my dog?"],
        answers=["Zebulon", "Amaranth"],
        answer_session_ids=[["s2"], ["s10"]],
    )
    (found,) = haystacks(path)
    small = evidence(found, entrant("lllm", "gpt-4o", budget=1_500), COUNT)
    assert [(each.retained, each.answered) for each in small] == [(0.0, False), (1.0, True)]
    assert [(each.any, each.all) for each in small] == [(0.0, 0.0), (1.0, 1.0)]
    whole = evidence(found, entrant("full", "gpt-4o", budget=100_000), COUNT)
    assert [(each.retained, each.answered, each.all) for each in whole] == [(1.0, True, 1.0)] * 2


def _ranks(path: Path, question_id: str = "q1") -> Path:
    """Write a history in which a search for "amber beacon cobalt" finds, the best first, the turns s1#0, s1#1, s3#0, s0#0, and nothing else.

    The answer is marked in s1#1, s0#0 and s2#0, and is said to be held by s0, s2 and s3.
    """
    said = {
        "s0": [("cobalt one two three four five six seven eight nine ten eleven", True), ("nothing", False)],
        "s1": [("amber beacon cobalt", False), ("amber beacon cobalt and then some more of it", True)],
        "s2": [("nothing of the kind", True)],
        "s3": [("cobalt and so on", False)],
    }
    one = {
        "question_id": question_id,
        "question": "amber beacon cobalt",
        "answer": "cobalt one two",
        "answer_session_ids": ["s0", "s2", "s3"],
        "haystack_session_ids": list(said),
        "haystack_sessions": [
            [{"role": "user", "content": text, "has_answer": marked} for text, marked in turns]
            for turns in said.values()
        ],
    }
    path.write_text(json.dumps([one]))
    return path


def test_a_search_is_scored_by_the_official_formulas(tmp_path: Path) -> None:
    """By hand: sessions rank s1, s3, s0 (each once), of which s0, s2, s3 hold the answer; turns rank s1#0, s1#1, s3#0, s0#0."""
    (history,) = haystacks(_ranks(tmp_path / "ranks.json"))
    (found,) = searched(history)
    sessions = found.sessions
    assert sessions is not None
    assert dict(sessions.any) == {5: 1.0, 10: 1.0, 50: 1.0}
    assert dict(sessions.all) == {5: 0.0, 10: 0.0, 50: 0.0}  # s2 is not found at all
    best = 1 + 1 / math.log2(2) + 1 / math.log2(3)
    assert sessions.ndcg[5] == pytest.approx((0 + 1 / math.log2(2) + 1 / math.log2(3)) / best)
    turns = found.turns
    assert turns is not None
    assert (turns.any[5], turns.all[5]) == (1.0, 0.0)
    # s0#0 stands at place 4; s1#1 is marked, but not of a session that holds the answer to this question
    assert turns.ndcg[5] == pytest.approx((0 + 0 + 0 + 1 / math.log2(4)) / (1 + 1 / math.log2(2)))


def test_an_abstention_is_not_scored(tmp_path: Path) -> None:
    """What nothing answers has no recall; the means of a file are those of its other questions."""
    (history,) = haystacks(_ranks(tmp_path / "a.json", "q1_abs"))
    (found,) = searched(history)
    assert (found.sessions, found.turns) == (None, None)
    (kept,) = evidence(history, entrant("full", "gpt-4o", budget=10_000), COUNT)
    assert (kept.retained, kept.any, kept.all) == (None, None, None)


def test_retention_over_files_names_all_that_failed(tmp_path: Path) -> None:
    """Means are over all questions that can be scored; an unreadable file, an invalid policy and one that fails are named, none is left out."""
    folder = tmp_path / "in"
    folder.mkdir()
    _ranks(folder / "a.json")
    _ranks(folder / "b.json", "q2_abs")
    (folder / "notes.txt").write_text("nothing")
    bad = f"{Path(__file__).with_name('planted.py')}:DropsTheAsk"
    asked = Settings(paths=(folder,), policies=("full", "lllm", bad), model="gpt-4o", budget=140)
    found = retention(asked)
    assert (found.histories, found.questions, dict(found.scored)) == (2, 2, {"sessions": 1, "turns": 1})
    assert found.search["sessions"]["ndcg"][5] == pytest.approx(0.6199062)
    assert [(row.policy, row.status, row.questions) for row in found.rows] == [
        ("full", "ok", 2),
        ("lllm", "ok", 2),
        (bad, "invalid", 0),
    ]
    assert {problem.kind for problem in found.problems} == {"unreadable", "invalid policy"}
    assert found.rows[0].retained == 1.0
    tight = retention(replace(asked, policies=("full", "lllm"), budget=40))
    assert [(row.policy, row.status) for row in tight.rows] == [("full", "failed"), ("lllm", "ok")]
    assert [problem.policy for problem in tight.problems if problem.kind == "policy failed"] == ["full"]
    with pytest.raises(InvalidInput, match="No history with a question"):
        retention(replace(asked, paths=(folder / "notes.txt",)))


def test_one_question_in_the_official_shape(tmp_path: Path) -> None:
    """A file with one question each is read as well."""
    path = _file(
        tmp_path / "one.json", question="What is the name of my cat?", answer="Zebulon", answer_session_ids=["s2"]
    )
    (found,) = haystacks(path)
    assert [each.turns for each in found.questions] == [frozenset({("s2", 0)})]


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    """Another shape, and a policy that gives no view at the end, are told in words."""
    (tmp_path / "other.json").write_text('[{"messages": []}]')
    with pytest.raises(InvalidInput, match="shape of LongMemEval"):
        list(haystacks(tmp_path / "other.json"))
    path = _file(tmp_path / "one.json", question="?", answer="", answer_session_ids=["s2"])
    (found,) = haystacks(path)
    with pytest.raises(InvalidInput, match="no view at the end"):
        evidence(found, entrant("full", "gpt-4o", budget=500), COUNT)
