"""Overflows are told by their wording, whoever says it; limits of rates are none."""

import pytest

from palaver.models.overflow import WORDINGS, Wording, about_rates, overflow_in

RATES = {
    "OpenAI": "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. "
    "Please try again in 8s.",
    "OpenAI, one request": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 41211. The "
    "input or output tokens must be reduced in order to run successfully.",
    "OpenAI, by the day": "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "Groq": "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute "
    "(TPM): Limit 12000, Requested 14137, please reduce your message size and try again.",
    "Anthropic": "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    "Anthropic, older": "Number of request tokens has exceeded your per-model limit",
    "Bedrock": "ThrottlingException: Too many tokens, please wait before trying again.",
    "Bedrock, by the day": "Too many tokens per day, please wait before trying again.",
    "Cerebras": "Tokens per minute limit exceeded - too many tokens processed",
    "Gemini": "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000",
    "Copilot": "This request exceeds the limit of 30000 tokens per minute",
    "plain": "Too many requests. Please slow down.",
}
OTHERS = {
    "a long parameter": "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 90 instead.",
    "a large answer": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    "Groq's answer": "max_completion_tokens must be less than or equal to 40960, the maximum value for max_completion_tokens is less than the "
    "context_window for this model",
    "TGI's answer": "Input validation error: `max_new_tokens` must be <= 192. Given: 200",
    "many tools": "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    "a crash": "model runner crashed unexpectedly",
    "context as a word": "Invalid value in context of tool_choice; for context see the documentation.",
    "an image": "image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes",
    "a long id": "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
    "nothing": "",
}


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.by)
def test_each_wording_is_recognised_with_its_figures(wording: Wording) -> None:
    """The example of each row is found, and by no row before it that would lose the figures it gives."""
    found = overflow_in(wording.example)
    assert found is not None
    own = wording.pattern.search(wording.example)
    assert own is not None
    for name, text in own.groupdict().items():
        if text is not None:
            assert getattr(found, name) == int("".join(filter(str.isdigit, text)))


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.by)
def test_each_wording_has_a_source(wording: Wording) -> None:
    """A thread as owner/name#number, a file of a repository, or a page."""
    assert "#" in wording.seen or ":" in wording.seen or "." in wording.seen.partition("/")[0]


def test_figures_are_read_whatever_their_spelling() -> None:
    """With and without commas, in brackets, asked before limit or after."""
    found = overflow_in("prompt is too long: 201,130 tokens > 200,000 maximum")
    assert found is not None
    assert (found.asked, found.limit) == (201_130, 200_000)
    found = overflow_in("Input length (265330) exceeds model's maximum context length (262144).")
    assert found is not None
    assert (found.asked, found.limit) == (265_330, 262_144)


@pytest.mark.parametrize("text", RATES.values(), ids=RATES)
def test_a_limit_of_rates_is_no_overflow(text: str) -> None:
    """A conversation is not shortened for a minute that is used up, even where the words are about tokens."""
    assert about_rates(text)
    assert overflow_in(text) is None


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_refusals_are_no_overflow(text: str) -> None:
    """Something else is too long, too large, or wrong."""
    assert overflow_in(text) is None
    assert not about_rates(text)
