"""The negative corpus: every rejection that the validators know, each shown by a request with that one fault."""

import pytest

from palaver.wire.check import RULES, validate
from palaver.wire.violations import Rule
from tests.wire.check.cases import anthropic, gemini, openai_chat, openai_responses
from tests.wire.check.samples import SAMPLES
from tests.wire.check.spoiling import Case

CASES = (*anthropic.CASES, *openai_chat.CASES, *openai_responses.CASES, *gemini.CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.sample}: {case.name}")
def test_a_fault_breaks_its_rule_and_no_other(case: Case) -> None:
    """A sample is taken until it is spoiled, and then refused by the one rule that names the fault."""
    sample = SAMPLES[case.sample]
    assert validate(sample.request(), sample.profile, as_history=sample.as_history) == ()
    found = validate(case.request(), case.profile(), as_history=case.history())
    assert {violation.rule for violation in found} == {case.rule}, [str(violation) for violation in found]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_of_a_validator_is_shown(name: str) -> None:
    """Each rule that a validator says it knows has a case of that provider; and no case shows a rule it does not know."""
    shown = {case.rule for case in CASES if case.profile().name == name}
    assert shown == RULES[name]


def test_every_rule_is_somebodys() -> None:
    """No rule stands in the list that no validator knows."""
    assert set(Rule) == set().union(*RULES.values())


def test_names_of_cases_differ() -> None:
    """A case is found by sample and name."""
    names = [(case.sample, case.name) for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.sample}: {case.name}")
def test_a_violation_tells_the_place(case: Case) -> None:
    """The place a violation names lies in the request, or would if the missing field were there."""
    request = case.request()
    for violation in validate(request, case.profile(), as_history=case.history()):
        first = violation.path.partition(".")[0].partition("[")[0]
        assert first in request or violation.rule is Rule.FIELD_MISSING or not first
        assert violation.message
        str(violation).encode("utf-8")
