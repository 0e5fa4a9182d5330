"""Sources: a file is what its content says; what is no transcript is refused in a sentence; limits are told."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tracemalloc
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UnsupportedTranscript
from palaver.formats import FORMATS, Loss, ReadLimits, detect, open_source
from palaver.formats.records import Record, lines, records
from palaver.formats.streams import Chunks
from palaver.store.memory import MemoryStore
from palaver.transcripts import Importer
from tests.formats.reading import read_bytes, read_file, written
from tests.formats.samples import ZSTD, Claude, codex, said, tar, text, zipped


def session(words: str = "Hello.") -> bytes:
    """Return a session of two records."""
    found = Claude()
    found.user("u1", words)
    found.model("a1", "msg_1", text("Hi."))
    return found.bytes()


def squeezed(data: bytes) -> bytes:
    """Compress as `zstd --long=27` does."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "zst": squeezed,
    "gz": gzip.compress,
    "zst in gz": lambda data: gzip.compress(squeezed(data)),
    "tar.zst": lambda data: squeezed(tar({"runs/a": data})),
    "tar.gz of gz": lambda data: gzip.compress(tar({"runs/a": gzip.compress(data)})),
    "zip": lambda data: zipped({"a": data}),
    "zip of zstd": lambda data: zipped({"folder/a": data}, method=ZSTD),
    "zip, stored, in gz": lambda data: gzip.compress(zipped({"a": data}, method=0)),
    "two frames": lambda data: squeezed(data[:300]) + squeezed(data[300:]),
    "with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "Windows line ends": lambda data: data.replace(b"\n", b"\r\n"),
}


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    """However a transcript is packed and called, the same is read from it."""
    for name, (packing, pack) in zip(cycle(["session.jsonl", "session.png", "tar.gz"]), PACKINGS.items(), strict=False):
        found = read_bytes(tmp_path, pack(session()), name)
        assert [message.content for message in found.said()] == ["Hello.", "Hi."], packing
        assert found.codes() == {}, packing


def test_archive_of_several_runs_is_several_conversations(tmp_path: Path) -> None:
    """Each member is known by its own content; what is no transcript is reported by its name."""
    rollout = codex(said("user", "Two.")) + b"{\n"
    files = {"one": session("One."), "readme": b"# Read me\n", "two": rollout, "pic": b"\x89PNG\r\n\x1a\n"}
    found = read_bytes(tmp_path, squeezed(tar(files)))
    assert [conversation.key for conversation in found.conversations] == ["session-1", "thread-1"]
    assert [loss.place for loss in found.losses if loss.reason.startswith("Not read")] == ["readme", "pic"]
    assert [loss.place for loss in found.losses if loss.code == "bad_record"] == ["two, line 3"]


REFUSED = {
    "empty": (b"", "it is empty"),
    "UTF-16": (session().decode().encode("utf-16"), "UTF-16"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a PNG image"),
    "other JSON": (b'{"name": "x", "scripts": {"a": "b"}}', "name, scripts"),
    "deep JSON": (b'[{"role": ' + b"[" * 900 + b"]" * 900 + b"}]", "JSON that is nested too deeply"),
    "an empty list": (b"[]", "an empty JSON document"),
    "torn zst": (squeezed(session())[:6], "cut off"),
    "torn zip": (zipped({"a": session()})[:-30], "its index, at the end of a zip archive, is missing or damaged"),
    "pictures in a zip": (zipped({"a.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256))}), "a PNG image"),
    "empty tar": (tar({"runs": None}), "archive without a file"),
}


def test_what_is_no_transcript_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """The error is typed, names the file, says what it looks like, and fits on a screen."""
    for case, (data, why) in REFUSED.items():
        with pytest.raises(UnsupportedTranscript) as raised:
            read_bytes(tmp_path, data, "notes.txt")
        message = str(raised.value)
        assert why in message, case
        assert "notes.txt" in message, case
        assert len(message) < 1500, case
    with pytest.raises(UnsupportedTranscript) as raised:
        read_bytes(tmp_path, b"{}\n{}\n")
    assert all(each.title in raised.value.hint for each in FORMATS)
    assert any("OpenCode (" in tried for tried in raised.value.tried)


def test_format_is_known_by_a_long_or_odd_first_line(tmp_path: Path) -> None:
    """A first line over 16 MiB, such as a picture, and half of a surrogate pair in a list do not keep the format from being detected."""
    found = read_bytes(tmp_path, session("x" * (17 << 20)))
    assert [message.content for message in found.said()] == ["x" * (17 << 20), "Hi."]
    found = read_bytes(tmp_path, b'[{"role": "user", "content": "a\\ud83d"}, {"role": "assistant", "content": "Hi."}]')
    assert (len(found.said()), found.codes()["surrogate"]) == (2, 1)


def test_torn_compressed_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """What can be unpacked is read, and the place where it ends is reported."""
    for squeeze in [squeezed, gzip.compress]:
        many = Claude()
        for number in range(400):
            many.user(f"u{number}", hashlib.sha512(str(number).encode()).hexdigest() * 4)
        whole = squeeze(many.bytes())
        found = read_bytes(tmp_path, whole[: len(whole) // 2])
        assert 0 < found.counted() < 400
        assert any("incomplete" in loss.reason for loss in found.losses if loss.code == "torn_tail")


def test_bad_line_costs_itself_only(tmp_path: Path) -> None:
    """What stands before and after it is read, and the line is named by its number."""
    for bad, codes in [
        (b"{not json}", {"bad_record": 1}),
        (b"\0" * 400, {"bad_record": 1}),
        (b"[" * 100_000, {"bad_record": 1}),
        (b'{"n": ' + b"9" * 5000 + b"}", {"bad_record": 1}),
        (b'{"type": "x", "n": NaN}', {"nonfinite": 1}),
        (b'{"type": "x", "s": "a\tb", "type": "y"}', {}),
        (b'{"type": "x", "s": "\xff"}', {"encoding": 1}),
    ]:
        first, second = session().splitlines()
        found = read_bytes(tmp_path, b"\n".join((first, bad, second, b"")))
        assert (found.counted(), found.codes()) == (2, codes), (bad, codes)
        assert all(loss.place == "line 2" for loss in found.losses if loss.code in codes), (bad, codes)


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    """A link, whatever it points to, is reported and left alone; no name of a member is a path."""
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


# --- limits and memory ------------------------------------------------------------------------------------------------------


def peak_of(work: Callable[[], object]) -> int:
    """Return the most memory that Python held during some work, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb_of_blanks() -> bytes:
    """Return an archive of 256 MiB of blanks in a few KB."""
    compressor = zstandard.ZstdCompressor().compressobj()
    head = tarfile.TarInfo("a")
    head.size = 1 << 28
    blank = b" " * (1 << 20)
    parts = [compressor.compress(head.tobuf()), *(compressor.compress(blank) for _ in range(1 << 8))]
    return b"".join([*parts, compressor.flush()])


def test_archive_bomb_meets_the_limit(tmp_path: Path) -> None:
    """It is unpacked to the limit and no further, and the error names the limit."""
    path = written(tmp_path, bomb_of_blanks())
    assert path.stat().st_size < 1 << 16
    with pytest.raises(UnsupportedTranscript, match="more than 1,000,000 bytes, the limit"):
        read_file(path, ReadLimits(unpacked=1_000_000))


def test_zip_names_what_it_cannot_unpack(tmp_path: Path) -> None:
    """An encrypted member and one of an unknown compression are reported; the others are read."""
    data = bytearray(zipped({"locked": b"x", "odd": b"y", "fine": session()}))
    for name, at, value in (
        (b"locked", 8, 1),
        (b"odd", 10, 98),
    ):  # the flags and the method in the index, before the name
        data[data.rfind(name) - 46 + at] = value
    found = read_bytes(tmp_path, bytes(data))
    assert found.counted() == 2
    assert [(loss.place, loss.reason) for loss in found.losses if "unpacked" in loss.reason] == [
        ("locked", "It could not be unpacked: it is encrypted."),
        ("odd", "It could not be unpacked: its compression, method 98 of zip, is not supported."),
    ]


@pytest.mark.parametrize("method", [8, ZSTD])
def test_members_of_a_zip_share_a_limit(tmp_path: Path, method: int) -> None:
    """Members that each unpack to less than the limit of a stream are stopped together; reading twice counts once."""
    blank = b" " * (1 << 20)
    path = written(tmp_path, zipped({"a": session(), **{f"blank{n}": blank for n in range(40)}}, method=method))
    assert path.stat().st_size < 1 << 17
    found = read_file(path, ReadLimits(unpacked=1 << 21, archive=1 << 23))
    assert found.counted() == 2
    assert sum("more than the limit" in loss.reason for loss in found.losses) > 30


def test_limit_of_records_is_told_and_can_be_raised(tmp_path: Path) -> None:
    """A file of more lines is read up to the limit, and the report says so; a higher limit reads it whole."""
    many = Claude()
    for number in range(40):
        many.user(f"u{number}", "x")
    path = written(tmp_path, many.bytes())
    cut = read_file(path, ReadLimits(records=30))
    assert cut.counted() == 30
    reasons = [loss.reason for loss in cut.losses if loss.code == "torn_tail"]
    assert any("more than 30 lines, the limit" in reason for reason in reasons)
    (one,) = Importer(MemoryStore(), limits=ReadLimits(records=41)).import_path(path)
    assert (one.records, [loss for loss in one.losses if loss.code == "torn_tail"]) == (40, [])


def test_bomb_of_lines_meets_the_limit(tmp_path: Path) -> None:
    """Millions of lines in a few KB are not read to their end."""
    bomb = zstandard.ZstdCompressor().compress(session() + b"{}\n" * 4_000_000)
    path = written(tmp_path, bomb)
    assert path.stat().st_size < 1 << 14
    found = []
    assert peak_of(lambda: found.append(read_file(path, ReadLimits(records=1000)))) < 1 << 26
    assert found[0].counted() == 2


def test_memory_is_bounded_by_the_record_not_the_file(tmp_path: Path) -> None:
    """Reading a large session takes an index of a few hundred bytes a record."""
    many = Claude()
    for number in range(40):
        many.user(f"u{number}", "x" * 5000)
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        for number in range(40):
            file.write(many.bytes().replace(b'id": "u', f'id": "{number}-u'.encode()))
    with open_source(path) as source:
        reader = detect(source).read(source)
        assert peak_of(lambda: sum(1 for _ in reader)) < 1600 * 600 + (1 << 21)
    assert path.stat().st_size > 8_000_000


# --- lines and bytes ----------------------------------------------------------------------------------------------------------


def pieces(data: bytes, cuts: list[int]) -> Chunks:
    """Return data in pieces."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        yield data[start:stop]
    return ""


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 400)))
def test_lines_do_not_depend_on_how_bytes_arrive(found: list[bytes], cuts: list[int]) -> None:
    """Lines and numbers are those of the whole, wherever the chunks end."""
    expected = [(number, line) for number, line in enumerate(found, 1) if line.strip()]
    assert [(line.number, line.data) for line in lines(pieces(b"\n".join(found), cuts))] == expected


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
    try:
        found = read_bytes(tmp_path_factory.mktemp("any"), packed)
    except UnsupportedTranscript:
        assert packing != "lines"
    else:
        assert packing != "lines" or found.counted() >= 2


def test_records_of_a_line_each_have_their_own_bytes() -> None:
    """Records that share a line differ in digest, and together are the line."""
    found = list(records(pieces(b'{"a": 1}{"b": 2}\n', []), ReadLimits()))
    both = [record for record in found if isinstance(record, Record)]
    assert [(record.ordinal, record.data) for record in both] == [(0, b'{"a": 1}'), (1, b'{"b": 2}')]
    assert [loss.code for loss in found if isinstance(loss, Loss)] == ["glued_records"]
