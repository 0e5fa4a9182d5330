"""Sources: files are read as they lie, whatever they are called, and what is no transcript is refused in one sentence."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UnsupportedTranscript
from palaver.formats import FORMATS, Loss, detect, matches, open_source
from palaver.formats.records import Record, lines, records
from palaver.formats.streams import Chunks
from tests.formats.transcripts import Claude, codex, jsonl, read_bytes, read_file, said


def session(words: str = "Hello.") -> bytes:
    """Write a session of two records."""
    written = Claude()
    written.user("u1", words)
    written.model("a1", "msg_1", {"type": "text", "text": "Hi."})
    return written.bytes()


def tarred(**members: bytes) -> bytes:
    """Write an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        folder = tarfile.TarInfo("runs")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            info = tarfile.TarInfo(f"runs/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def squeezed(data: bytes) -> bytes:
    """Compress as `zstd --long=31` does."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "zst": squeezed,
    "gz": gzip.compress,
    "zst in gz": lambda data: gzip.compress(squeezed(data)),
    "tar": lambda data: tarred(a=data),
    "tar.zst": lambda data: squeezed(tarred(a=data)),
    "tar.gz of gz": lambda data: gzip.compress(tarred(a=gzip.compress(data))),
    "two frames": lambda data: squeezed(data[:300]) + squeezed(data[300:]),
    "two gzip members": lambda data: gzip.compress(data[:300]) + gzip.compress(data[300:]),
    "with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "Windows line ends": lambda data: data.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", ["session.jsonl", "session.png", "tar.gz"])
def test_content_decides_not_the_name(tmp_path: Path, packing: str, name: str) -> None:
    """However a transcript is packed and called, the same is read from it."""
    found = read_bytes(tmp_path, PACKINGS[packing](session()), name)
    assert [message.content for message in found.said()] == ["Hello.", "Hi."]
    assert found.codes() == {}


@pytest.mark.parametrize("pack", [lambda data: data, squeezed])
def test_an_archive_of_several_runs_is_several_conversations(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Each member is found by its own content; what is no transcript is reported by its name."""
    data = tarred(
        one=session("One."), readme=b"# Read me\n", two=codex(said("user", "Two.")) + b"{\n", pic=b"\x89PNG\r\n\x1a\n"
    )
    found = read_bytes(tmp_path, pack(data))
    assert [conversation.key for conversation in found.conversations] == ["session-1", "thread-1"]
    skipped = [loss.place for loss in found.losses if loss.reason.startswith("Not read")]
    assert skipped == ["runs/readme", "runs/pic"]
    assert [loss.place for loss in found.losses if loss.code == "bad_record"] == ["runs/two, line 3"]


def test_a_source_can_be_read_again_and_again(tmp_path: Path) -> None:
    """Every reading starts from the beginning, also when two go on at once."""
    path = tmp_path / "f"
    path.write_bytes(squeezed(tarred(a=session())))
    with open_source(path) as source:
        (member,) = source.members
        first, second = member.records(), member.records()
        pairs = list(zip(first, second, strict=True))
        assert [a.digest == b.digest for a, b in pairs if isinstance(a, Record) and isinstance(b, Record)] == [
            True,
            True,
        ]
        assert len(list(member.records())) == 2


REFUSED = {
    "empty": (b"", "it is empty"),
    "blanks": (b" \n\n\0\0\n", "nothing but blanks"),
    "UTF-16": (session().decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (session().decode().encode("utf-16-le"), "UTF-16"),
    "UTF-32": (session().decode().encode("utf-32"), "UTF-32"),
    "Latin-1": ('{"type": "user", "text": "ä"}\n{"type": "user", "text": "é"}\n'.encode("latin-1"), "Latin-1"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a PNG image"),
    "zip": (b"PK\x03\x04" + bytes(200), "a zip archive"),
    "noise": (bytes(i * i * 31 % 251 for i in range(5000)), "binary data"),
    "prose": (b"Dear Sir,\nthis is a letter.\n", "text that is no JSON"),
    "other JSON": (b'{"name": "x", "scripts": {"a": "b"}}', "name, scripts"),
    "other lines": (jsonl({"level": "info"}, {"level": "warn"}), "JSON lines with the keys level"),
    "a number": (b"42\n", "no JSON"),
    "torn zst": (squeezed(session())[:6], "cut off"),
    "empty tar": (tarred(), "archive without a file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_transcript_is_refused_in_a_few_words(tmp_path: Path, case: str) -> None:
    """The error is typed, names the file, says what it looks like, and fits on a screen."""
    data, why = REFUSED[case]
    with pytest.raises(UnsupportedTranscript) as raised:
        read_bytes(tmp_path, data, "notes.txt")
    message = str(raised.value)
    assert why in message
    assert "notes.txt" in message
    assert len(message) < 1500


def test_an_unknown_file_is_told_what_was_looked_for(tmp_path: Path) -> None:
    """The error names every format and what it would look like."""
    (tmp_path / "f").write_bytes(b"{}\n{}\n")
    with open_source(tmp_path / "f") as source, pytest.raises(UnsupportedTranscript) as raised:
        detect(source)
    assert any(tried.startswith("Claude Code (") for tried in raised.value.tried)
    assert all(tried in str(raised.value) for tried in raised.value.tried)


@pytest.mark.parametrize("kind", ["folder", "missing", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """Folders, missing files and pipes are typed errors; nothing blocks."""
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(UnsupportedTranscript) as raised:
        open_source(path)
    assert raised.value.hint


def test_a_gigabyte_of_garbage_is_refused_after_a_few_bytes(tmp_path: Path) -> None:
    """Neither a huge file of noise, nor of one endless line, nor a small one that unpacks to it is read to its end."""
    for name, seed in (
        ("noise", b"\x01\x7f\x80q" * 4096),
        ("line", b"x" * (1 << 20)),
        ("open", b'{"a": "' + b"y" * (1 << 20)),
    ):
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(seed)
            file.truncate(1 << 30)
        with open_source(path) as source:
            tracemalloc.start()
            with pytest.raises(UnsupportedTranscript):
                detect(source)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 1 << 28
    bomb = zstandard.ZstdCompressor().compress(b" " * (1 << 28))
    with pytest.raises(UnsupportedTranscript, match="blanks"):
        read_bytes(tmp_path, bomb)


def test_memory_is_bounded_by_the_record_not_by_the_file(tmp_path: Path) -> None:
    """Reading a large session takes an index of a few hundred bytes a record."""
    path = tmp_path / "large.jsonl"
    written = Claude()
    for number in range(40):
        written.user(f"u{number}", "x" * 5000)
    block = written.bytes()
    with path.open("wb") as file:
        for number in range(100):
            file.write(block.replace(b'id": "u', f'id": "{number}-u'.encode()))
    with open_source(path) as source:
        reader = detect(source).read(source)
        tracemalloc.start()
        count = sum(1 for _ in reader)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert count > 4000
    assert path.stat().st_size > 20_000_000
    assert peak < 4000 * 600 + (1 << 21)


def test_a_torn_last_line_is_reported_and_the_rest_imported(tmp_path: Path) -> None:
    """A write that was cut off costs the last record."""
    found = read_bytes(tmp_path, session()[:-30])
    assert found.codes() == {"torn_tail": 1}
    assert [loss.place for loss in found.losses if loss.code == "torn_tail"] == ["line 2"]
    assert found.counted() == 1


@pytest.mark.parametrize("squeeze", [squeezed, gzip.compress])
def test_a_torn_compressed_file_is_read_as_far_as_it_goes(tmp_path: Path, squeeze: Callable[[bytes], bytes]) -> None:
    """What can be unpacked is imported, and the place where it ends is reported."""
    written = Claude()
    for number in range(400):
        written.user(f"u{number}", hashlib.sha512(str(number).encode()).hexdigest() * 4)
    packed = squeeze(written.bytes())
    found = read_bytes(tmp_path, packed[: len(packed) // 2])
    assert found.codes()["torn_tail"] >= 1
    assert 0 < found.counted() < 400
    assert any("incomplete" in loss.reason for loss in found.losses)


@pytest.mark.parametrize(
    ("bad", "codes"),
    [
        (b"{not json}", {"bad_record": 1}),
        (b"[1, 2]", {"bad_record": 1}),
        (b"\0" * 400, {"bad_record": 1}),
        (b"[" * 100_000, {"bad_record": 1}),
        (b'{"n": ' + b"9" * 5000 + b"}", {"bad_record": 1}),
        (b'{"type": "x", "n": NaN}', {"nonfinite": 1}),
        (b'{"type": "x", "s": "\xff"}', {"encoding": 1}),
        (b"   ", {}),
    ],
)
def test_a_bad_line_in_the_middle_costs_itself_only(tmp_path: Path, bad: bytes, codes: dict[str, int]) -> None:
    """What stands before and after a bad line is imported, and the line is named by its number."""
    first, second = session().splitlines()
    found = read_bytes(tmp_path, b"\n".join((first, bad, second, b"")))
    assert found.counted() == 2
    assert found.codes() == codes
    assert all(loss.place == "line 2" for loss in found.losses if loss.code in codes)


def test_a_torn_archive_gives_its_whole_members(tmp_path: Path) -> None:
    """A cut archive is read up to the cut."""
    whole = tarred(one=session("One."), two=session("Two.") * 20)
    found = read_bytes(tmp_path, whole[:9000])
    assert len(found.conversations) == 2
    assert found.codes()["torn_tail"] >= 1
    assert found.said()[0].content == "One."


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    """A link, whatever it points to, is reported and left alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        info = tarfile.TarInfo("../up")
        info.size = len(session())
        archive.addfile(info, io.BytesIO(session()))
    found = read_bytes(tmp_path, out.getvalue())
    assert [loss.place for loss in found.losses if "unpacked" in loss.reason] == ["link"]
    assert found.counted() == 2
    assert not (tmp_path.parent / "up").exists()


def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    """A file that vanishes between naming and opening, or is not ours to read, is no stack trace."""
    path = tmp_path / "secret"
    path.write_bytes(session())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(UnsupportedTranscript, match="cannot be read"):
        open_source(path)


def pieces(data: bytes, cuts: list[int]) -> Chunks:
    """Give data in pieces."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        yield data[start:stop]
    return ""


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 400)))
def test_lines_do_not_depend_on_how_the_bytes_arrive(found: list[bytes], cuts: list[int]) -> None:
    """Lines, numbers and offsets are those of the whole, wherever the chunks end."""
    data = b"\n".join(found)
    assert [(line.number, line.data) for line in lines(pieces(data, cuts))] == [
        (number, line) for number, line in enumerate(found, 1) if line.strip()
    ]
    assert all(data[line.offset :].startswith(line.data) for line in lines(pieces(data, cuts)))


@settings(max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["", "gz", "zst", "json", "lines"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, packing: str) -> None:
    """Whatever the bytes are, there is a reading or a typed error."""
    packed = {
        "": lambda: data,
        "gz": lambda: gzip.compress(data),
        "zst": lambda: squeezed(data),
        "json": lambda: b'{"type": "user", "x": ' + data,
        "lines": lambda: session() + data + b"\n" + session(),
    }[packing]()
    path = tmp_path_factory.mktemp("any") / "f"
    path.write_bytes(packed)
    try:
        found = read_file(path)
    except UnsupportedTranscript:
        assert packing != "lines"
    else:
        assert packing != "lines" or found.counted() >= 2


def test_records_of_a_line_each_have_their_own_bytes() -> None:
    """Records that share a line differ in digest, and together are the line."""
    found = list(records(pieces(b'{"a": 1}{"b": 2}\n', [])))
    both = [record for record in found if isinstance(record, Record)]
    assert [record.data for record in both] == [b'{"a": 1}', b'{"b": 2}']
    assert [record.ordinal for record in both] == [0, 1]
    assert [loss.code for loss in found if isinstance(loss, Loss)] == ["glued_records"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "it is an empty JSON array"),
        (b" {}\n", "it is an empty JSON object"),
        (b"[1, 2]", "it is JSON without an object in it"),
        (b'{"messages": []}', "it is a JSON object with the keys messages"),
    ],
)
def test_small_json_is_called_what_it_is(tmp_path: Path, data: bytes, words: str) -> None:
    """Who hands over an empty list is told so, with the formats that are known, one a line."""
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with open_source(path) as source, pytest.raises(UnsupportedTranscript) as refused:
        list(matches(source))

    assert words in str(refused.value)
    assert [line.split(" (")[0] for line in refused.value.hint.splitlines()] == [
        "Known formats:",
        *(f"  {each.title}" for each in FORMATS),
    ]
