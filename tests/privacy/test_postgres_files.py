"""What was erased is in no file of a PostgreSQL server any more, but its write-ahead log: heap, TOAST, indexes and statistics are looked at raw."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from palaver.session import Session
from palaver.session.erasure import erase
from palaver.session.reading.searching import searchable
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.address import address
from tests import postgres
from tests.privacy.planted import Planted, mark, plant
from tests.store.postgres_backend import connected

GOLDEN = Path(__file__).parents[1] / "golden"
_PIECE = 8  # of a text that the server compresses, no more than eight bytes in a row are sure to lie there as they are


def planted(store: PostgresStore, folder: Path, who: str) -> tuple[Planted, dict[str, list[bytes]]]:
    """Plant marks everywhere, and two long texts: one that does not get shorter by compression, and one that does."""
    made = plant(store, folder, who)
    noise = Random(who).randbytes(9_000).hex()  # noqa: S311 - nothing is protected by it
    long, prose = mark(f"{who} long"), mark(f"{who} prose")
    root = Session.open(made.session, store).root
    root.put_text(f"{noise} {long} {noise}")
    root.put_text(f"{'to and fro ' * 900}{prose}{' fro and to' * 900}")
    store.index(searchable)
    needles = {where: [one.encode()] for where, one in made.marks.items() if where != "source"}
    pieces = [prose[at : at + _PIECE].encode() for at in range(len(prose) - _PIECE + 1)]
    needles |= {"long": [long.encode()], "prose": pieces}
    with connected(store.url) as connection:
        texts = connection.execute(
            "SELECT x.deflated FROM texts AS x JOIN dialogs USING (dialog_no) JOIN sessions AS s USING (session_no)"
            " WHERE s.session_id = %s AND length(x.deflated) > 40",
            (made.session,),
        ).fetchall()
    connection.close()
    needles["deflated"] = [bytes(text)[:40] for (text,) in texts if isinstance(text, bytes)]
    return made, needles


def relations(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, str]:
    """Give what lies in which file: tables, indexes and TOAST of the schema, and the catalogue."""
    rows = connection.execute(
        "SELECT pg_relation_filepath(c.oid), coalesce(t.relname || ' toast', c.relname) FROM pg_class AS c"
        " LEFT JOIN pg_class AS t ON t.reltoastrelid = c.oid WHERE pg_relation_filepath(c.oid) IS NOT NULL"
    ).fetchall()
    return {str(path): str(name) for path, name in rows}


def lying(server: postgres.Server, url: str, needles: Mapping[str, list[bytes]]) -> dict[str, set[str]]:
    """Give in which relations, or other files of the data directory, each needle lies, after all was written to the disk."""
    with connected(url) as connection:
        connection.execute("CHECKPOINT")
        names = relations(connection)
    connection.close()
    hits: dict[str, set[str]] = {}
    for path in sorted(one for one in server.data.rglob("*") if one.is_file()):
        data = path.read_bytes()
        place = str(path.relative_to(server.data))
        name = names.get(place.split(".", maxsplit=1)[0], place)
        for where, any_of in needles.items():
            if any(one in data for one in any_of):
                hits.setdefault(where, set()).add("the log" if place.startswith("pg_wal/") else name)
    return hits


def test_nothing_is_left_but_in_the_write_ahead_log(postgres_server: postgres.Server, tmp_path: Path) -> None:
    """Words in rows, in rows moved out of line (compressed or not), in every index: all found before, none after; also after ANALYZE."""
    with PostgresStore(postgres_server.url()) as store:
        going, sought = planted(store, tmp_path, "going")
        _staying, kept = planted(store, tmp_path, "staying")
        with connected(store.url) as connection:
            connection.execute("ANALYZE")
        connection.close()
        before = lying(postgres_server, store.url, sought)
        assert before.keys() == sought.keys(), "everything can be found before"
        places = set().union(*before.values())
        assert places >= {
            "entries",
            "entries toast",
            "tokens",
            "tokens_found",
            "texts",
            "sessions_named",
            "sessions_about",
        }
        assert not {name for name in places if name.startswith("pg_stat")}, "statistics of the planner quote nobody"
        assert erase(store, session=going.session).complete
        after = lying(postgres_server, store.url, sought)
        assert set().union(*after.values()) <= {"the log"}, after
        assert lying(postgres_server, store.url, kept).keys() == kept.keys()


def test_an_upgrade_forgets_what_statistics_quoted(postgres_server: postgres.Server) -> None:
    """A store of format 3 whose tables were analysed: upgraded without writing a table or index anew, and scrubbed, no file quotes a name."""
    url, word = postgres_server.url("golden"), mark("a name of format 3")
    with psycopg.connect(address(url).conninfo, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS golden CASCADE")
        connection.execute(gzip.decompress((GOLDEN / "postgres-v3.sql.gz").read_bytes()))
        connection.execute("UPDATE golden.sessions SET name = %s || session_no", (word,))
        connection.execute("ANALYZE golden.sessions")
        files = "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'golden'::regnamespace"
        before: dict[Any, Any] = dict(connection.execute(files).fetchall())
        assert "pg_statistic" in lying(postgres_server, url, {"name": [word.encode()]})["name"]
        with PostgresStore(url) as store:
            after: dict[Any, Any] = dict(connection.execute(files).fetchall())
            assert {name: after[name] for name in before} == before
            for record in [*store.sessions(), *store.sessions(trashed=True)]:
                store.update_session(record.session_id, name="another")
            assert store.scrub() == ()
            assert lying(postgres_server, url, {"name": [word.encode()]}).get("name", {"the log"}) == {"the log"}
    connection.close()
