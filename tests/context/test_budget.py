"""Accounting: every unit a provider limits, the provider's own report as anchor, and budgets that are kept in all of them."""

import pytest
from hypothesis import given, settings

from palaver import wire
from palaver.context import (
    POLICIES,
    Account,
    Anchor,
    Ledger,
    Meter,
    account,
    compose,
    estimate,
    fit,
    floor,
    planner,
    policy,
    within_profile,
)
from palaver.context.units import Bytes, Pieces
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.ids import BlobId
from palaver.messages import ImageContent, TextContent, Usage, UserMessage, canonical_json
from palaver.testing.logs import Log, model, result, system, user
from palaver.testing.policy_laws import hold
from palaver.testing.policy_strategies import Step, conversations, picture, played
from palaver.tokens import BUDGET_KEYS, Budget
from palaver.view import View
from palaver.wire import PROFILES
from tests.context.helper import COUNTER, fitted, manager, seen, size, texts

PAGE = "\n".join(f"line {number} of some output" for number in range(300))


def worked(turns: int, page: str = PAGE) -> Log:
    """Work through so many calls."""
    log = Log()
    log.put(system("Be brief."), user("Make the tests pass."))
    for turn in range(turns):
        log.put(model(f"step {turn}", f"c{turn}"), result(f"c{turn}", page))
    return log


def looked(pictures: int, bytes_each: int = 1_000) -> Log:
    """Look at so many pictures."""
    log = Log()
    for number in range(pictures):
        image = ImageContent(images=[picture(number, bytes_each)])
        log.put(UserMessage(contents=(TextContent(content=f"look {number}"), image)), model(f"seen {number}"))
    return log


def told(view: View, budget: Budget | None = None) -> Account:
    """Account for a view."""
    return account(view, budget or Budget(max_tokens=128_000), Meter(COUNTER))


@settings(max_examples=40)
@given(steps=conversations(least=2))
def test_the_bytes_of_a_request_are_never_estimated_too_few(steps: list[Step]) -> None:
    """Whatever the conversation, for each of the four profiles the compiled body has at most the bytes that were measured."""
    log = played(steps)
    view = seen(log)
    measured = Bytes().view(view).total
    for name in PROFILES:
        request = wire.compile(
            view, wire.profile(name), wire.Call(model="any"), lambda one: log.store.blob(BlobId(one))
        )
        assert len(canonical_json(request.body)) <= measured, name


def test_bytes_are_measured_close_enough_to_be_of_use() -> None:
    """Of text and of pictures, what is measured is at most a tenth more than what is sent, where requests are large."""
    log = worked(60)
    log.put(*(UserMessage(contents=(ImageContent(images=[picture(n, 200_000)]),)) for n in range(5)))
    view = seen(log)
    request = wire.compile(
        view, wire.profile("anthropic"), wire.Call(model="any"), lambda one: log.store.blob(BlobId(one))
    )
    sent = len(canonical_json(request.body))
    assert sent <= Bytes().view(view).total <= sent * 1.1


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"aider", "openhands"}))  # which cut for other reasons too
def test_p17_too_many_images_are_shown_as_lines_the_oldest_first(name: str) -> None:
    """300 pictures where 20 are taken: the newest stay, the oldest are lines with handles, whatever the policy; or `full` refuses."""
    view = seen(looked(300))
    budget = Budget(max_tokens=1_000_000, max_media=20)
    made = manager(name)
    if getattr(made, "complete", False):
        with pytest.raises(InfeasibleBudget) as error:
            compose(view, planner(made), budget, COUNTER)
        assert (error.value.unit, error.value.budget, error.value.needed) == ("images and sounds", 20, 300)
        return
    composed = hold(view, made, budget, COUNTER)
    assert composed is not None
    assert 10 <= Pieces().view(composed.view).total <= 20
    assert len(composed.view.exchanges) == len(view.exchanges)
    shown = [any(isinstance(b.content, ImageContent) for b in x.blocks()) for x in composed.view.exchanges[::2]]
    assert shown == sorted(shown)
    assert "recall" in texts(composed.view)[1]


def test_p17_a_body_over_its_bytes_loses_pictures_before_words() -> None:
    """63 pictures of 100 KiB in a body of 5 MiB: the words are all there, and the body fits as it is sent."""
    log = looked(63, 100 * 1024)
    budget = Budget(max_tokens=1_000_000, max_bytes=5 * 2**20)
    composed = hold(seen(log), manager("default"), budget, COUNTER)
    assert composed is not None
    assert [f"look {n}" for n in range(63)] == [text for text in texts(composed.view) if text.startswith("look")]
    request = wire.compile(
        composed.view,
        wire.profile("anthropic"),
        wire.Call(model="any"),
        lambda one: log.store.blob(BlobId(one)),
    )
    assert len(canonical_json(request.body)) <= 5 * 2**20


@pytest.mark.parametrize("name", ["default", "offload", "fold"])
def test_a_body_over_its_bytes_is_cut_like_one_over_its_tokens(name: str) -> None:
    """A window that is large enough and a body that is not: the view is cut until the body fits, at exchange boundaries."""
    view = seen(worked(100))
    budget = Budget(max_tokens=1_000_000, max_bytes=60_000)
    composed = hold(view, manager(name), budget, COUNTER)
    assert composed is not None
    assert composed.limits
    assert Bytes().view(composed.view).total <= 60_000


@pytest.mark.parametrize("name", ["palaver", "fold", "swe-agent"])
@pytest.mark.parametrize(("tokens", "most_bytes"), [(900, 20_000), (4_000, 4_000), (2_000, 8_000), (20_000, 600_000)])
def test_what_was_shortened_to_its_bytes_fits_its_tokens_too(name: str, tokens: int, most_bytes: int) -> None:
    """One result of twice the bytes, beside an open call, which has to stay: whichever of the two limits is the narrower, both are kept."""
    log = Log()
    log.put(user("go on"), model("", "a", "b"), result("a", "0123 \u8a9e\u8a9e" * (most_bytes // 5)))
    composed = hold(seen(log), manager(name), Budget(max_tokens=tokens, max_bytes=most_bytes), COUNTER)
    assert composed is not None
    assert composed.tokens_after <= tokens


def test_the_newest_picture_of_the_user_is_never_taken_and_what_cannot_be_sent_is_infeasible() -> None:
    """A limit of 0 images, and the user has just shown one: a typed error with its breakdown, before anything is planned."""
    log = looked(2)
    log.put(UserMessage(contents=(ImageContent(images=[picture(9, 10)]),)))
    with pytest.raises(InfeasibleBudget) as error:
        compose(seen(log), planner(manager("default")), Budget(max_tokens=50_000, max_media=0), COUNTER)
    assert dict(error.value.breakdown) == {"newest user message": 1}
    assert "images and sounds" in str(error.value)
    assert Pieces().view(fitted(seen(log), "default", 50_000).view).total == 3


def test_a_body_smaller_than_what_must_be_sent_is_infeasible_in_bytes() -> None:
    """The breakdown is in bytes, adds up, and names what needs them."""
    log = worked(3)
    log.put(user("x" * 50_000))
    with pytest.raises(InfeasibleBudget) as error:
        compose(seen(log), planner(manager("fold")), Budget(max_tokens=200_000, max_bytes=20_000), COUNTER)
    assert error.value.unit == "bytes"
    assert error.value.needed == sum(error.value.breakdown.values()) == sum(floor(seen(log), Bytes()).values())
    assert error.value.breakdown["newest user message"] > 50_000


@pytest.mark.parametrize("tokens", [40, 400, 4_000])
def test_a_policy_that_leaves_nothing_out_needs_all_of_it_however_small_the_budget(tokens: int) -> None:
    """Whether the budget holds what must be sent or not even that: what is needed is the whole view, and so much is enough."""
    view, made = seen(worked(5)), manager("full")
    for budget in (Budget.of_input(tokens), Budget(max_tokens=1_000_000, max_bytes=tokens)):
        assert hold(view, made, budget, COUNTER) is None
        with pytest.raises(InfeasibleBudget) as error:
            compose(view, planner(made), budget, COUNTER)
        assert error.value.needed == (Bytes() if budget.max_bytes else Meter(COUNTER)).view(view).total


def test_the_parts_of_an_account_add_up_to_the_window() -> None:
    """System, tools, messages, media, the answer's reserve, the buffer and what is free: nothing is counted twice or left out."""
    log = worked(2)
    log.put(UserMessage(contents=(ImageContent(images=[picture(1, 100)]),)))
    budget = Budget(max_tokens=64_000, reserve=8_000)
    found = told(seen(log), budget)
    assert sum(found.parts.values()) == 64_000
    assert {name for name, part in found.parts.items() if part} >= {
        "instructions",
        "messages",
        "media",
        "answer",
        "free",
    }
    assert found.fits
    assert not told(seen(log), Budget.of_input(100)).fits
    assert told(seen(log), Budget.of_input(100)).parts["free"] < 0


def test_t1_the_next_request_is_counted_with_what_was_just_added() -> None:
    """After the report about the last request a tool answers at length: the estimate is the report and the answer, not the report."""
    log = worked(1, "short")
    sent = seen(log)
    log.put(model("more", "c9"), result("c9", PAGE))
    anchored = estimate(seen(log), Meter(COUNTER), Anchor(sent, 1_000))
    added = size(seen(log)) - size(sent)
    assert added > 1_500
    assert anchored.tokens == 1_000 + added
    assert anchored.anchored == 1_000
    assert anchored.error < estimate(seen(log), Meter(COUNTER)).error
    assert anchored.least <= anchored.tokens <= anchored.most


def test_t2_a_report_from_before_a_compaction_does_not_call_for_another_one() -> None:
    """The last report was near the window; the view was cut since: it is measured anew, and left alone."""
    before = seen(worked(40))
    cut = fitted(before, "default", 10_000).view
    anchor = Anchor(before, size(before))
    assert estimate(cut, Meter(COUNTER), anchor).anchored == 0
    assert estimate(cut, Meter(COUNTER), anchor).tokens == size(cut)
    again = compose(
        cut,
        planner(manager("default")),
        Budget.of_input(10_000),
        COUNTER,
        ledger=Ledger(meter=Meter(COUNTER), anchor=anchor),
    )
    assert again.view is cut


def test_a_provider_that_counts_more_than_we_do_gets_a_smaller_view() -> None:
    """The report says half as much again as was counted: the view that is made would fit by the provider's count."""
    view = seen(worked(40))
    anchor = Anchor(view, size(view) * 3 // 2)
    books = Ledger(meter=Meter(COUNTER), anchor=anchor)
    composed = compose(view, planner(manager("default")), Budget.of_input(size(view)), COUNTER, ledger=books)
    assert composed.tokens_after < size(view)
    assert composed.tokens_after * anchor.correction(books.meter) <= size(view)


@pytest.mark.parametrize("name", ["default", "fold", "palaver"])
@pytest.mark.parametrize("reported", [1, 100, 2_000])
def test_a_provider_that_reports_less_never_enlarges_a_budget(name: str, reported: int) -> None:
    """The report says far less than was counted: the budget that was given is kept in our own count all the same."""
    view = seen(worked(40))
    books = Ledger(meter=Meter(COUNTER), anchor=Anchor(view, reported))
    room = Budget.of_input(size(view) * 2 // 3)
    composed = compose(view, planner(manager(name)), room, COUNTER, ledger=books)
    assert composed.tokens_after <= room.for_input
    assert composed.tokens_after == fitted(view, name, room.for_input).tokens_after


@pytest.mark.parametrize(("reported", "least", "most"), [(1, 0.5, 1.0), (10**9, 1.0, 2.0)])
def test_a_report_that_cannot_be_true_corrects_little(reported: int, least: float, most: float) -> None:
    """An aggregate over many calls, or a stray zero: at most by a factor of two, in sixteenths."""
    meter = Meter(COUNTER)
    correction = Anchor(seen(worked(40)), reported).correction(meter)
    assert least <= correction <= most
    assert correction * 16 == int(correction * 16)


def test_d22_a_turns_sums_are_not_the_size_of_its_context() -> None:
    """Usage of a turn of twelve calls, whose cache reads were added up: the total of the last request is what its context is."""
    usage = Usage({"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130, "totalTokens": 163_978})
    assert usage.context_tokens == 163_978
    assert Anchor.of(seen(worked(1)), Usage({})) is None


def test_a_budget_within_a_profile_asks_for_no_more_than_its_provider_takes() -> None:
    """Of two limits the smaller one counts."""
    anthropic = wire.profile("anthropic")
    assert within_profile(Budget(max_tokens=10), anthropic).max_bytes == anthropic.request_bytes
    assert within_profile(Budget(max_tokens=10, max_media=3), anthropic).max_media == 3
    assert within_profile(Budget(max_tokens=10, max_bytes=10**12), anthropic).max_bytes == anthropic.request_bytes


@pytest.mark.parametrize(
    "words",
    [
        {"max_tokens": 9_000, "safety_buffer": 1_000},
        {"max_token_context_length": 8_000, "context_usage_ratio": 1.0, "preserve_last_messages": 2},
        {"reserve_tokens": 120_000, "keep_recent_tokens": 2_000},
        {"buffer": 8_000, "context_window": 24_000},
        {"reserveTokens": 120_000, "keepRecentTokens": 2_000},
        {"window": 8_000, "SAFETY_BUFFER": 0, "max_images": 3, "max_bytes": 100_000},
    ],
)
def test_c16_every_vocabulary_makes_a_budget_that_composing_keeps(words: dict[str, object]) -> None:
    """The same conversation under the words of palaver, dynamiq, pi, OpenCode and LLLM: within what they say, in every unit."""
    view = seen(worked(60))
    budget = Budget.parse(words, "gpt-4o")
    composed = hold(view, manager("fold"), budget, COUNTER)
    assert composed is not None
    assert composed.view is not view
    made = policy({"type": "fold", **words}, "gpt-4o")
    assert getattr(made, "budget", None) == budget


def test_c16_words_that_nobody_knows_are_refused_with_close_ones() -> None:
    """A misspelt word is an error that names the right one, never a budget that silently differs."""
    assert {"reserve", "keep_recent", "max_media", "context_usage_ratio"} <= BUDGET_KEYS
    with pytest.raises(InvalidInput, match="reserve_tokens"):
        Budget.parse({"reserve_token": 5}, "gpt-4o")


def test_t3_no_constant_of_another_system_leaves_a_small_window_without_room() -> None:
    """Windows of 2,000 tokens with buffers of 20,000: the room for input is never 0 or less."""
    for words in ({"buffer": 20_000}, {"max_tokens": 2_000, "safety_buffer": 50_000}):
        assert Budget.parse({"window": 2_000, **words}, None).for_input > 0


def test_fit_keeps_a_list_within_bytes_and_images() -> None:
    """A plain list of messages with images: as many as are allowed come back, and the rest are lines."""
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": f"look {n}"}, image]} for n in range(9)]
    fitted_list = fit(messages, model="gpt-4o", budget={"max_tokens": 50_000, "max_media": 4})
    parts = [part for message in fitted_list.messages for part in message["content"] if isinstance(part, dict)]
    assert 2 <= sum(part["type"] == "image_url" for part in parts) <= 4


def test_fit_gives_no_more_images_than_the_provider_takes() -> None:
    """130 images where Anthropic takes 100, and a window large enough: the newest are there, and every other message is the caller's own."""
    source = {"type": "url", "url": "https://example.com/a.png"}
    messages: list[dict[str, object]] = []
    for number in range(130):
        image = {"type": "image", "source": source}
        messages.append({"role": "user", "content": [{"type": "text", "text": f"look {number}"}, image]})
        messages.append({"role": "assistant", "content": f"seen {number}"})
    messages.append({"role": "user", "content": "go on"})
    done = fit(messages, model="claude-sonnet-4-5", dialect_name="anthropic", budget=180_000)
    shown = [part for message in done.messages for part in message["content"] if isinstance(part, dict)]
    assert 50 <= sum(part["type"] == "image" for part in shown) <= 100
    assert done.messages[-1] is messages[-1]
    assert len(done.messages) == len(messages)
