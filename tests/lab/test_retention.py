"""Needles over compactions, and evidence of long histories."""

import json
from pathlib import Path

import pytest

from palaver.errors import InvalidInput
from palaver.lab import entrant
from palaver.lab.evidence import evidence, haystacks, searched, share
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
    assert share(small) == (0.5, 0.5)
    whole = evidence(found, entrant("full", "gpt-4o", budget=100_000), COUNT)
    assert share(whole) == (1.0, 1.0)
    hits = searched(found)
    assert [hit.any[5] for hit in hits] == [1.0, 1.0]
    assert all(hit.all[5] == 1.0 and hit.ndcg[10] > 0 for hit in hits)


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
