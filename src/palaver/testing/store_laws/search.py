"""The laws of search."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import NotFound
from palaver.store import text
from palaver.store.protocol import Capability, Store
from palaver.testing.store_laws.backend import NOBODY, Backend, Begun, LawGroup, begin, label, needs, words

HARD_TEXTS = {
    "what's up, doc?": ("what's up", "doc?"),
    "call foo_bar(x) or foo.bar() and a->b": ("foo_bar", "foo.bar()", "a->b", "AND"),
    "see src/a/b.py:12 and ./C:\\Windows\\x.txt": ("src/a/b.py:12", "b.py", "C:\\Windows", "AND"),
    "你好，世界！日本語のテキスト。한국어": ("好", "你好", "世界", "日本", "本語の", "한국"),  # noqa: RUF001 - their punctuation
    "getUserName parses HTTPServer2 in snake_case_name": ("getUserName", "HTTPServer2", "snake_case_name", "case"),
    "Ünïcödé STRASSE straße e\u0301te\u0301 \u00e9t\u00e9": ("ünïcödé", "strasse", "été"),
    "a AND b OR NOT c NEAR(d) col:value ^x -y +z": ("a AND", "AND", "col:value", "NEAR(d)"),
    "100% \"quoted\" 'single' `tick` * ( ) { } ; -- /* */": ('"quoted"', "100%"),
    "emoji ✅ done 🎉 and ไทย": ("✅", "🎉", "ไทย", "AND"),
    "0x1f 3.14 v1.2.3-rc1 #123 @name $HOME user@host.org https://h.org/p?q=1&r=2": (
        "v1.2.3-rc1",
        "#123",
        "$HOME",
        "user@host.org",
        "/p?q=1&r=2",
    ),
}
"""Texts, and queries that find them."""

NOWHERE_FOUND = ("foo-bar", "界你", "*", '"', "", " \t\n", "()", "--", "\x00", "\ud800", "nowhere")

RANKED = {
    "username getUserN": [4],
    "sername": [],
    "pars HTTPS": [4, 9],
    "emo and sing": [8, 7, 1, 2, 6],
    '"up, doc?"': [0],
    '"doc? up"': [],
    "*": [],
    "": [],
}
"""Queries, and the numbers of the texts they find, ranked."""

_TEXTS = tuple(HARD_TEXTS)

# Every backend inherits the same laws, and no example depends on the entries of another.
_ON_ONE_STORE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors], max_examples=60
)


def extract(_kind: str, body: bytes) -> str:
    """Return the whole body as its text."""
    return body.decode("utf-8", "surrogatepass")


def _found(begun: Begun, query: str) -> list[int]:
    return sorted(hit.handle.seq for hit in begun.store.search(query, limit=100))


class SearchLaws(LawGroup):
    """The laws of `index`, `index_lag` and `search`."""

    @pytest.fixture
    def library(self, begun: Begun) -> Begun:
        """Return an indexed dialog with difficult texts."""
        needs(begun.store, Capability.SEARCH)
        begun.say(*(said.encode() for said in HARD_TEXTS))
        assert begun.store.index(extract) == len(HARD_TEXTS)
        return begun

    def test_hard_queries(self, library: Begun) -> None:
        """Code, paths, ideographs and operators are found as written, in the store and in their session."""
        for seq, queries in enumerate(HARD_TEXTS.values()):
            for query in queries:
                hits = _found(library, query)
                assert seq in hits
                within = library.store.search(query, session_id=library.session, limit=100)
                assert [hit.handle.seq for hit in within][::-1] == hits
                assert all(text.holds(text.fold(_TEXTS[name]), text.words(query)) for name in hits)
        assert not [query for query in NOWHERE_FOUND if _found(library, query)]

    def test_ranked_queries(self, library: Begun) -> None:
        """Any word counts, or from three letters on its beginning; a quoted phrase stays one; the best text comes first (`Store.search`)."""
        for seq, queries in enumerate(HARD_TEXTS.values()):
            for query in queries:
                assert seq in [hit.handle.seq for hit in library.store.search(query, limit=100, ranked=True)], query
        for query, seqs in RANKED.items():
            hits = library.store.search(query, session_id=library.session, limit=100, ranked=True)
            assert [hit.handle.seq for hit in hits] == seqs, query
            assert library.store.search(query, limit=1, ranked=True) == hits[:1]

    def test_ranking_order(self, begun: Begun) -> None:
        """All words before some, what was said before what a tool had, rare before frequent, following before scattered, short before long, whole before begun."""
        needs(begun.store, Capability.SEARCH)
        filler = " filler" * 30
        better_first = {
            "red lamp": ("the red and a lamp", "the lamp and a lamp"),
            "gears": ("gears", f"a turn{text.APART}gears"),
            "common scarce": ("only scarce", "only common"),
            "north tower": ("the north tower", "a tower to the north"),
            "brief": ("brief", f"brief{filler}"),
            "cloud": ("a cloud", "the cloudy"),
        }
        for first, second in better_first.values():
            begun.say(first.encode(), second.encode())
        begun.say(b"common as others are", b"common as others are")
        begun.store.index(extract)
        for number, query in enumerate(better_first):
            hits = begun.store.search(query, session_id=begun.session, ranked=True)
            assert [hit.handle.seq for hit in hits][:2] == [2 * number, 2 * number + 1], query
            assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]

    def test_filter_chooses_among_all(self, begun: Begun) -> None:
        """What a filter refuses is no hit, and takes no place of one, however many better hits it refuses."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"a needle, long ago", *[b"needle"] * 400)
        begun.store.index(extract)
        for ranked in (False, True):
            for session in (None, begun.session):
                hits = begun.store.search(
                    "needle", session_id=session, ranked=ranked, limit=1, which=lambda hit: hit.handle.seq == 0
                )
                assert [hit.handle.seq for hit in hits] == [0]

    def test_hit_has_its_time(self, begun: Begun) -> None:
        """A hit has the time of its entry."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"needle")
        begun.store.index(extract)
        (hit,) = begun.store.search("needle")
        assert hit.at == begun.store.header(begun.dialog, 0).at

    @_ON_ONE_STORE
    @given(query=st.text())
    def test_law_12_no_query_raises(self, library: Begun, query: str) -> None:
        """Every query has an answer, and every hit contains all its words."""
        for seq in _found(library, query):
            assert text.holds(text.fold(_TEXTS[seq]), text.words(query))

    @_ON_ONE_STORE
    @given(data=st.data())
    def test_every_word_of_a_text_finds_it(self, library: Begun, data: st.DataObject) -> None:
        """Any words of a text, in any order and case, find it."""
        seq = data.draw(st.integers(0, len(_TEXTS) - 1))
        words_of_it = data.draw(st.lists(st.sampled_from(_TEXTS[seq].split()), min_size=1, max_size=4))
        query = " ".join(words_of_it)
        if text.words(query):
            assert seq in _found(library, data.draw(st.sampled_from([query, query.upper(), query.lower()])))

    @_ON_ONE_STORE
    @given(said=st.text(st.characters(codec="utf-8"), max_size=60), data=st.data())
    def test_any_text_is_found_by_its_words(self, store: Store, said: str, data: st.DataObject) -> None:
        """A word of any text, in any script, finds it, and the snippet is part of the text."""
        needs(store, Capability.SEARCH)
        begun = begin(store)
        store.append(begun.dialog, [words(said.encode("utf-8", "surrogatepass"))], -1)
        store.index(extract)
        candidates = [word for word in said.split() if text.words(word)]
        if candidates:
            word = data.draw(st.sampled_from(candidates))
            hits = store.search(word, session_id=begun.session)
            assert [hit.handle.seq for hit in hits] == [0]
            assert text.OPEN in hits[0].snippet
            assert text.CLOSE in hits[0].snippet

    def test_hit_says_where_and_what(self, begun: Begun) -> None:
        """Handle, session, kind and role are those of the entry; the match is between the two marks."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"nothing")
        begun.store.annotate(begun.dialog, label(b"the needle here"))
        begun.store.index(extract)
        (hit,) = begun.store.search("NEEDLE")
        assert (hit.handle.dialog, hit.handle.seq, hit.handle.block) == (begun.dialog, 1, None)
        assert (hit.session_id, hit.kind, hit.role) == (begun.session, "label", "")
        assert hit.snippet == "the \x02needle\x03 here"
        begun.say(b"a needle")
        begun.store.index(extract)
        assert {(hit.kind, hit.role) for hit in begun.store.search("needle")} == {("label", ""), ("message", "user")}

    def test_text_cannot_forge_a_mark(self, begun: Begun) -> None:
        """A snippet is on one line and has no control characters of the text."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"fake \x02mark\x03 and\nline \x1b[31m needle")
        begun.store.index(extract)
        (hit,) = begun.store.search("needle")
        assert Counter(hit.snippet)[text.OPEN] == Counter(hit.snippet)[text.CLOSE] == 1
        assert hit.snippet.replace(text.OPEN, "").replace(text.CLOSE, "").isprintable()

    def test_hits_come_newest_first(self, begun: Begun) -> None:
        """The entry indexed last comes first, and a limit returns the beginning, also beyond a page."""
        needs(begun.store, Capability.SEARCH)
        begun.say(*(b"needle %d" % number for number in range(150)))
        begun.store.index(extract)
        hits = begun.store.search("needle", limit=1000)
        assert [hit.handle.seq for hit in hits] == list(range(150))[::-1]
        for limit in (0, 1, 3, 100):
            assert begun.store.search("needle", limit=limit) == hits[:limit]

    def test_index_lags_until_it_is_updated(self, begun: Begun) -> None:
        """Appending does not index: entries that are not yet indexed are not found, and are counted."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"needle", b"needle")
        begun.say(b"needle", dialog=begun.fork())
        assert begun.store.search("needle") == ()
        assert begun.store.index_lag() == 3  # noqa: PLR2004
        assert begun.store.index(extract, limit=2) == 2  # noqa: PLR2004
        assert begun.store.index_lag() == 1
        assert begun.store.index(extract, limit=0) == 0
        assert begun.store.index(extract) == 1
        assert begun.store.index(extract) == begun.store.index_lag() == 0
        assert len(begun.store.search("needle")) == 3  # noqa: PLR2004

    def test_only_new_and_searched_entries_are_read(self, begun: Begun) -> None:
        """Indexed entries are not extracted again, unsearchable kinds are not extracted, and a failed extraction changes nothing."""
        needs(begun.store, Capability.SEARCH)
        seen: list[bytes] = []

        def watch(_kind: str, body: bytes) -> str:
            seen.append(body)
            return str(1 // (body != b"fails")) and body.decode()

        begun.say(b"a")
        begun.store.index(watch)
        begun.store.append(begun.dialog, [words(b"b"), words(b"secret", kind="custom")], 0)
        assert begun.store.index(watch) == 2  # noqa: PLR2004
        assert seen == [b"a", b"b"]
        assert begun.store.search("secret") == ()
        begun.say(b"fails")
        with pytest.raises(ZeroDivisionError):
            begun.store.index(watch)
        assert begun.store.index_lag() == 1

    def test_two_may_index_at_once(self, begun: Begun, backend: Backend) -> None:
        """When another handle indexes the same entries meanwhile, each is added once."""
        needs(begun.store, Capability.SEARCH)
        needs(begun.store, Capability.SHARED)
        begun.say(b"needle one", b"needle two")
        other = backend.open()
        counts: list[int] = []

        def interrupted(kind: str, body: bytes) -> str:
            counts.append(other.index(extract))
            return extract(kind, body)

        counts.append(begun.store.index(interrupted))
        assert sum(counts) == len(begun.store.search("needle")) == 2  # noqa: PLR2004
        other.close()

    def test_search_stays_in_one_session(self, begun: Begun) -> None:
        """With a session, only its entries are found, and only they are indexed."""
        needs(begun.store, Capability.SEARCH)
        elsewhere = begin(begun.store)
        begun.say(b"needle")
        begun.say(b"needle", dialog=begun.fork())
        elsewhere.say(b"needle", b"needle")
        assert begun.store.index(extract, session_id=begun.session) == 2  # noqa: PLR2004
        assert begun.store.index(extract, session_id=begun.session) == 0
        assert {hit.session_id for hit in begun.store.search("needle")} == {begun.session}
        assert begun.store.index(extract, session_id=NOBODY) == 0
        assert begun.store.index(extract) == 2  # noqa: PLR2004
        assert len(begun.store.search("needle")) == 4  # noqa: PLR2004
        for place in (begun, elsewhere):
            assert {hit.session_id for hit in begun.store.search("needle", session_id=place.session)} == {place.session}
        with pytest.raises(NotFound):
            begun.store.search("needle", session_id=NOBODY)

    def test_trash_is_not_searched(self, begun: Begun) -> None:
        """A session in the trash is found only by its id, and by all when it is restored."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"needle")
        begun.store.index(extract)
        begun.store.update_session(begun.session, trashed_at=1.0)
        for ranked in (False, True):
            assert begun.store.search("needle", ranked=ranked) == ()
            assert len(begun.store.search("needle", session_id=begun.session, ranked=ranked)) == 1
        begun.store.update_session(begun.session, trashed_at=None)
        assert len(begun.store.search("needle")) == 1
