"""Memory on PostgreSQL: the same files, blocks, passages and constraints as everywhere, for several connections."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from palaver import ArchivalMemory, CoreMemory, Files, MemoryConflict, Session, SubjectMemory, erase
from palaver.store.postgres import PostgresStore
from tests import postgres


def test_memory_is_the_same_on_a_server(postgres_server: postgres.Server) -> None:
    """Two connections write beside each other and lose nothing; the loser of an edit is told; pages and searches are those of other stores."""
    with PostgresStore(postgres_server.url("memory")) as one, PostgresStore(postgres_server.url("memory")) as two:
        session = Session.create(one, "s", owner="a")
        here, there = session.root, Session.open(session.session_id, two).root
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: Files((here, there)[n % 2]).append("log", f"{n}\n"), range(12)))
        assert sorted(map(int, Files(there).read("log").text.split())) == list(range(12))
        mine, theirs = CoreMemory(here), CoreMemory(there)
        mine.create("human", "Ada")
        theirs.replace("human", "Ada", "Grace")
        with pytest.raises(MemoryConflict) as caught:
            mine.replace("human", "Ada", "Alan")
        assert caught.value.value == "Grace"
        archive = ArchivalMemory(here)
        for fact in ("The user likes green tea.", "Deploys happen on Tuesday."):
            archive.insert(fact)
        assert ArchivalMemory(there).search("green tea") == archive.search("green tea")
        here.constraints.add("Write in English.")
        assert there.reload().constraints.texts == ("Write in English.",)


def test_memory_of_a_subject_is_nobody_elses_on_a_server(postgres_server: postgres.Server) -> None:
    """Two connections, each with a memory of its own: the same subject has the same one, another one nothing of it, and an erasure reaches it."""
    url = postgres_server.url("subjects")
    with PostgresStore(url) as one, PostgresStore(url) as two:
        for subject in ("ann", "o'hara\x00"):
            here, there = (Session.create(store, subject=subject).root for store in (one, two))
            SubjectMemory(blocks={"human": {"value": "begun"}}).core(here).append("human", "Likes tea.")
            assert SubjectMemory().core(there).get("human").value == "begun\nLikes tea."
            SubjectMemory().files(there).write("a", "x")
            assert [file.text for file in SubjectMemory().files(here).list()] == ["x"]
        assert SubjectMemory().core(Session.create(two, subject="bob").root).blocks == ()
        erase(one, subject="ann")
        assert SubjectMemory().core(Session.create(two, subject="ann").root).blocks == ()
