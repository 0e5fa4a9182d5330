"""The chain of a request: which bound content a provider accepts, against a provider that remembers every request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palaver.log import BoundTo
from palaver.wire.binding import ChainLink, bound_after, kept, prefixes


def accepted(requests: list[list[int]], chosen: list[int]) -> bool:
    """Return whether what comes before each chosen answer is the end of what its own request had."""
    return all(
        requests[answer][len(requests[answer]) - place :] == chosen[:place] for place, answer in enumerate(chosen)
    )


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 7))), max_size=8))
def test_kept_is_what_a_provider_accepts(turns: list[tuple[bool, set[int]]]) -> None:
    """R241: no answer that stays is refused, nothing more could stay before the newest, and a change of what precedes drops all after it."""
    requests: list[list[int]] = []
    links: list[ChainLink] = []
    for number, (changed, hidden) in enumerate(turns):
        *before, end = prefixes("head", links, "head")
        sent = [answer for answer in kept(links, before) if answer not in hidden]  # a model that reads some only
        sent = sorted(sent)
        while not accepted(requests, sent):
            sent = sent[1:]
        requests.append(sent)
        bound = bound_after([links[answer].own for answer in sent], "other" if changed else end)
        links.append(ChainLink(f"words {number}", f"thought {number}", bound, restarts=False))
    *before, _ = prefixes("head", links, "head")
    chosen = sorted(kept(links, before))
    assert accepted(requests, chosen)
    assert not any(turns[answer][0] for answer in chosen)
    for answer, (changed, _) in enumerate(turns):
        more = sorted({*chosen, answer})
        newer = [other for other in chosen if other > answer]
        if answer not in chosen and not changed:
            assert not accepted(requests, more) or newer != chosen[len(chosen) - len(newer) :]


def test_unknown_requests_and_others_words_bind_nothing() -> None:
    """An answer without a recorded request stays without its thinking; one that changed before it, too; a compaction begins anew."""
    links = [
        ChainLink("a", "x", None, restarts=False),
        ChainLink("b", "y", BoundTo(prefix="elsewhere"), restarts=False),
    ]
    *before, end = prefixes("head", links, "head")
    assert kept(links, before) == frozenset()
    *_, compacted = prefixes("head", [*links, ChainLink("c", "", None, restarts=True)], "head")
    assert compacted != end
    assert list(prefixes("head", [ChainLink("c", "", None, restarts=True)], "head"))[-1] == compacted
