"""The laws of search."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import UnknownSession
from palaver.ids import SessionId, new_session_id
from palaver.log import Draft
from palaver.store import text
from palaver.store.protocol import Capability, SessionRecord, Store
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup, begin, label, needs, words

HARD_TEXTS = (
    "what's up, doc?",
    "call foo_bar(x) or foo.bar() and a->b",
    "see src/a/b.py:12 and ./C:\\Windows\\x.txt",
    "你好，世界！日本語のテキスト。한국어",  # noqa: RUF001 - the punctuation of these scripts
    "getUserName parses HTTPServer2 in snake_case_name",
    "Ünïcödé STRASSE straße e\u0301te\u0301 \u00e9t\u00e9",
    "a AND b OR NOT c NEAR(d) col:value ^x -y +z",
    "100% \"quoted\" 'single' `tick` * ( ) { } ; -- /* */",
    "emoji ✅ done 🎉 and ไทย",
    "0x1f 3.14 v1.2.3-rc1 #123 @name $HOME user@host.org https://h.org/p?q=1&r=2",
)

HARD_QUERIES = {
    "what's up": (0,),
    "doc?": (0,),
    "foo_bar": (1,),
    "foo-bar": (),
    "foo.bar()": (1,),
    "a->b": (1,),
    "src/a/b.py:12": (2,),
    "b.py": (2,),
    "C:\\Windows": (2,),
    "好": (3,),
    "你好": (3,),
    "世界": (3,),
    "日本": (3,),
    "本語の": (3,),
    "한국": (3,),
    "界你": (),
    "getUserName": (4,),
    "getusername": (4,),
    "HTTPServer2": (4,),
    "snake_case_name": (4,),
    "case": (4,),
    "ünïcödé": (5,),
    "strasse": (5,),
    "été": (5,),
    "a AND": (6,),
    "AND": (0 + 1, 2, 6, 8),
    "col:value": (6,),
    "NEAR(d)": (6,),
    '"quoted"': (7,),
    "100%": (7,),
    "✅": (8,),
    "🎉": (8,),
    "ไทย": (8,),
    "v1.2.3-rc1": (9,),
    "#123": (9,),
    "$HOME": (9,),
    "user@host.org": (9,),
    "/p?q=1&r=2": (9,),
    "*": (),
    '"': (),
    "": (),
    " \t\n": (),
    "()": (),
    "--": (),
    "\x00": (),
    "\ud800": (),
    "nowhere": (),
}
"""Queries and the numbers of the texts that hold all their words delimited."""


# Every backend inherits the same laws, and no example depends on the entries of another.
_ON_ONE_STORE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors], max_examples=60
)


def extract(_kind: str, body: bytes) -> str:
    """Take the whole body for its text."""
    return body.decode("utf-8", "surrogatepass")


def _found(begun: Begun, query: str) -> list[int]:
    return sorted(hit.handle.seq for hit in begun.store.search(query, limit=100))


def _said(said: str) -> Draft:
    return words(said.encode("utf-8", "surrogatepass"))


class SearchLaws(LawGroup):
    """What `index`, `index_lag`, `drop_index` and `search` promise."""

    @pytest.fixture
    def library(self, begun: Begun) -> Begun:
        """Give a dialog of hard texts, indexed."""
        needs(begun.store, Capability.SEARCH)
        begun.say(*(said.encode() for said in HARD_TEXTS))
        assert begun.store.index(extract) == len(HARD_TEXTS)
        return begun

    @pytest.mark.parametrize("query", HARD_QUERIES, ids=ascii)
    def test_hard_queries(self, library: Begun, query: str) -> None:
        """Code, paths, ideographs and operators are found as they stand, and no query raises."""
        assert set(HARD_QUERIES[query]) <= set(_found(library, query))
        wanted = text.words(query)
        assert all(text.holds(text.fold(HARD_TEXTS[seq]), wanted) for seq in _found(library, query))
        assert wanted or not _found(library, query)

    @_ON_ONE_STORE
    @given(query=st.text())
    def test_no_query_raises(self, library: Begun, query: str) -> None:
        """Whatever the query, there is an answer, and every hit holds every word of it."""
        for seq in _found(library, query):
            assert text.holds(text.fold(HARD_TEXTS[seq]), text.words(query))

    @_ON_ONE_STORE
    @given(data=st.data())
    def test_every_word_of_a_text_finds_it(self, library: Begun, data: st.DataObject) -> None:
        """Any words of a text, between blanks as they stand there, in any order and case, find it."""
        seq = data.draw(st.integers(0, len(HARD_TEXTS) - 1))
        words_of_it = data.draw(st.lists(st.sampled_from(HARD_TEXTS[seq].split()), min_size=1, max_size=4))
        query = " ".join(words_of_it)
        if text.words(query):
            assert seq in _found(library, data.draw(st.sampled_from([query, query.upper(), query.lower()])))

    @_ON_ONE_STORE
    @given(said=st.text(st.characters(codec="utf-8"), max_size=60), data=st.data())
    def test_any_text_is_found_by_its_words(self, store: Store, said: str, data: st.DataObject) -> None:
        """Whatever was written, in any script, a word of it between blanks finds it, and its snippet is part of it."""
        needs(store, Capability.SEARCH)
        begun = begin(store)
        store.append(begun.dialog, [_said(said)], -1)
        store.index(extract)
        candidates = [word for word in said.split() if text.words(word)]
        if candidates:
            word = data.draw(st.sampled_from(candidates))
            hits = store.search(word, session_id=begun.session)
            assert [hit.handle.seq for hit in hits] == [0]
            assert text.OPEN in hits[0].snippet
            assert text.CLOSE in hits[0].snippet

    def test_a_hit_says_where_and_what(self, begun: Begun) -> None:
        """Handle, session, kind and role are those of the entry; the match stands between the two marks."""
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

    def test_a_text_cannot_forge_a_mark(self, begun: Begun) -> None:
        """Control characters of the text never reach a snippet, which stands on one line."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"fake \x02mark\x03 and\nline \x1b[31m needle")
        begun.store.index(extract)
        (hit,) = begun.store.search("needle")
        assert Counter(hit.snippet)[text.OPEN] == Counter(hit.snippet)[text.CLOSE] == 1
        assert hit.snippet.replace(text.OPEN, "").replace(text.CLOSE, "").isprintable()

    def test_best_first_and_no_more_than_asked_for(self, begun: Begun) -> None:
        """Scores fall along the list, and a limit gives its beginning."""
        needs(begun.store, Capability.SEARCH)
        begun.say(*(b"needle " * number + b"hay " * (20 - number) for number in range(1, 9)))
        begun.store.index(extract)
        hits = begun.store.search("needle", limit=100)
        assert len(hits) == 8  # noqa: PLR2004
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        for limit in (0, 1, 3):
            assert begun.store.search("needle", limit=limit) == hits[:limit]

    def test_the_index_is_behind_until_it_is_told(self, begun: Begun) -> None:
        """No append writes to it: what is not indexed yet is not found, and is counted."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"needle", b"needle")
        other = begun.fork()
        begun.say(b"needle", dialog=other)
        assert begun.store.search("needle") == ()
        assert begun.store.index_lag() == 3  # noqa: PLR2004
        assert begun.store.index(extract, limit=2) == 2  # noqa: PLR2004
        assert begun.store.index_lag() == 1
        assert begun.store.index(extract, limit=0) == 0
        assert begun.store.index(extract) == 1
        assert begun.store.index(extract) == begun.store.index_lag() == 0
        assert len(begun.store.search("needle")) == 3  # noqa: PLR2004

    def test_only_new_entries_are_read(self, begun: Begun) -> None:
        """What is indexed is not extracted again, and kinds that are never searched are not extracted at all."""
        needs(begun.store, Capability.SEARCH)
        seen: list[bytes] = []

        def watch(_kind: str, body: bytes) -> str:
            seen.append(body)
            return body.decode()

        begun.say(b"a")
        begun.store.index(watch)
        begun.store.append(begun.dialog, [words(b"b"), words(b"secret", kind="custom")], 0)
        assert begun.store.index(watch) == 2  # noqa: PLR2004
        assert seen == [b"a", b"b"]
        assert begun.store.search("secret") == ()

    def test_two_may_index_at_once(self, begun: Begun, backend: Backend) -> None:
        """When another handle indexes the same entries meanwhile, each is taken once, and by one of the two."""
        needs(begun.store, Capability.SEARCH)
        needs(begun.store, Capability.SHARED)
        begun.say(b"needle one", b"needle two")
        other = backend.open()
        counts: list[int] = []

        def interrupted(kind: str, body: bytes) -> str:
            counts.append(other.index(extract))
            return extract(kind, body)

        counts.append(begun.store.index(interrupted))
        assert sum(counts) == 2  # noqa: PLR2004
        assert begun.store.index_lag() == 0
        assert len(begun.store.search("needle")) == 2  # noqa: PLR2004
        other.close()

    def test_a_failed_extraction_changes_nothing(self, begun: Begun) -> None:
        """What the caller's function raises reaches the caller; the watermark has not moved beyond what was indexed."""
        needs(begun.store, Capability.SEARCH)
        begun.say(b"one", b"two")

        def refuse(_kind: str, _body: bytes) -> str:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            begun.store.index(refuse)
        assert begun.store.index_lag() == 2  # noqa: PLR2004
        assert begun.store.index(extract) == 2  # noqa: PLR2004

    def test_a_dropped_index_is_made_again(self, library: Begun) -> None:
        """The index is derived: without it nothing is found, and the log makes it anew, the same as before."""
        before = library.store.search("a")
        library.store.drop_index()
        assert library.store.search("a") == ()
        assert library.store.index_lag() == len(HARD_TEXTS)
        assert library.store.index(extract) == len(HARD_TEXTS)
        assert library.store.search("a") == before

    def test_a_search_may_stay_in_one_session(self, begun: Begun) -> None:
        """With a session named, only its entries are found."""
        needs(begun.store, Capability.SEARCH)
        elsewhere = begin(begun.store)
        begun.say(b"needle")
        elsewhere.say(b"needle", b"needle")
        begun.store.index(extract)
        assert len(begun.store.search("needle")) == 3  # noqa: PLR2004
        assert {hit.session_id for hit in begun.store.search("needle", session_id=elsewhere.session)} == {
            elsewhere.session
        }
        assert len(begun.store.search("needle", session_id=begun.session)) == 1
        with pytest.raises(UnknownSession):
            begun.store.search("needle", session_id=SessionId("f" * 32))

    def test_one_session_may_be_indexed_alone(self, begun: Begun) -> None:
        """With a session named, its entries are taken and no others, in all its dialogs; the others wait until they are asked for."""
        needs(begun.store, Capability.SEARCH)
        elsewhere = begin(begun.store)
        begun.say(b"needle")
        begun.say(b"needle", dialog=begun.fork())
        elsewhere.say(b"needle", b"needle")
        assert begun.store.index(extract, session_id=begun.session) == 2  # noqa: PLR2004
        assert begun.store.index(extract, session_id=begun.session) == 0
        assert begun.store.index_lag() == 2  # noqa: PLR2004
        assert {hit.session_id for hit in begun.store.search("needle")} == {begun.session}
        assert begun.store.index(extract, session_id=SessionId("f" * 32)) == 0
        assert begun.store.index(extract) == 2  # noqa: PLR2004
        assert len(begun.store.search("needle")) == 4  # noqa: PLR2004

    def test_the_trash_is_not_searched(self, begun: Begun) -> None:
        """A session in the trash is not found, and is again when it is taken out."""
        needs(begun.store, Capability.SEARCH)
        begun.store.create_session(SessionRecord(session_id=new_session_id()))
        begun.say(b"needle")
        begun.store.index(extract)
        begun.store.update_session(begun.session, trashed_at=1.0)
        assert begun.store.search("needle") == ()
        begun.store.update_session(begun.session, trashed_at=None)
        assert len(begun.store.search("needle")) == 1
