"""Bundles: a session leaves whole and arrives whole, or the damage is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidBundle, StoreDamaged, StoreFull, UnknownSession
from palaver.ids import DialogId
from palaver.log import Compaction, Draft, Header, Label, Place, Run
from palaver.messages import ImageContent, TextContent, UserMessage
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts.bundle import export_bundle, import_bundle
from palaver.transcripts.frames import Frame, read_frames, write_frames

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def sample() -> Log:
    """A session with a fork, a picture, an annotation, a compaction and an open call."""
    log = Log()
    log.put(
        system("be brief"),
        user("hi"),
        model("", "a"),
        result("a"),
        model("done", response="r"),
        model("!", response="r"),
    )
    log.put(UserMessage(contents=(TextContent("see"), ImageContent(images=(_PNG,)))))
    log.put(Label(target=Place(dialog=log.dialog, seq=1), label="start"))
    log.put(
        Compaction(base=6, pieces=(Run(dialog=log.dialog, start=0, stop=2), Run(dialog=log.dialog, start=6, stop=7)))
    )
    child = log.fork()
    child.put(user("elsewhere"), model("", "b"))
    log.put(user("on"))
    return log


def bundle(log: Log) -> bytes:
    """Export a log's session."""
    return b"".join(export_bundle(log.store, log.session))


def test_export_import_export_gives_the_same_bytes() -> None:
    """A bundle taken into another store and exported from there is the same bundle."""
    data = bundle(sample())
    other = MemoryStore()
    taken = import_bundle(other, BytesIO(data).read)

    assert (taken.dialogs, taken.entries) == (2, 12)
    assert b"".join(export_bundle(other, taken.session_id)) == data
    assert other.session(taken.session_id).trashed_at is None


def test_taking_a_bundle_twice_adds_nothing_and_a_grown_one_adds_what_is_new() -> None:
    """What the store has of a session is kept; only what is new is written."""
    log = sample()
    other = MemoryStore()
    import_bundle(other, BytesIO(bundle(log)).read)
    again = import_bundle(other, BytesIO(bundle(log)).read)
    log.put(model("more"))
    grown = import_bundle(other, BytesIO(bundle(log)).read)

    assert (again.entries, grown.entries) == (0, 1)


def test_another_history_of_the_same_session_is_refused() -> None:
    """Two stores that continued the same session differently cannot be poured into one; neither is changed."""
    log = sample()
    other = MemoryStore()
    import_bundle(other, BytesIO(bundle(log)).read)
    log.put(model("here"))
    last = other.last(log.dialog)
    there = Log.__new__(Log)
    there.store, there.session, there.dialog = other, log.session, log.dialog
    there.put(model("there"))

    with pytest.raises(InvalidBundle, match="another history"):
        import_bundle(other, BytesIO(bundle(log)).read)
    assert other.last(log.dialog).seq == last.seq + 1


def test_d20_a_bundle_cut_at_any_byte_is_refused_and_shows_no_session() -> None:
    """D20: cut anywhere, a bundle is refused with the place, and no half session appears among the sessions."""
    data = bundle(sample())
    for cut in range(len(data)):
        store = MemoryStore()
        with pytest.raises(InvalidBundle):
            import_bundle(store, BytesIO(data[:cut]).read)
        assert list(store.sessions()) == []


@settings(max_examples=200)
@given(st.data())
def test_d20_a_flipped_bit_anywhere_is_found(data: st.DataObject) -> None:
    """D20: no flipped bit goes unseen."""
    whole = _BUNDLE
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(InvalidBundle):
        import_bundle(MemoryStore(), BytesIO(bytes(flipped)).read)


_BUNDLE = bundle(sample())


@given(
    st.lists(
        st.tuples(st.sampled_from(["blob", "entry"]), st.binary(max_size=40)).map(lambda pair: Frame(*pair)), max_size=6
    )
)
def test_frames_are_read_as_they_were_written(frames: list[Frame]) -> None:
    """Whatever bytes a payload holds, newlines and heads of frames too, the frames come back."""
    assert list(read_frames(BytesIO(b"".join(write_frames(frames))).read, "it")) == frames


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"palaver-bundle 1\nhello", b"\x00" * 100], ids=["empty", "text", "torn", "binary"]
)
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    """A file that is no bundle gives a typed error and nothing else."""
    with pytest.raises(InvalidBundle):
        import_bundle(MemoryStore(), BytesIO(data).read)


def test_a_bundle_from_a_newer_version_is_refused_with_its_version() -> None:
    """The error says which version it is and which is read."""
    with pytest.raises(InvalidBundle, match="version 2"):
        import_bundle(MemoryStore(), BytesIO(b"palaver-bundle 2\n").read)


def test_exporting_what_is_not_there_is_an_error() -> None:
    """An unknown session is named, nothing is written."""
    with pytest.raises(UnknownSession):
        next(export_bundle(MemoryStore(), Log().session))


class CutOffStore(MemoryStore):
    """A store whose device is full after so many entries."""

    def __init__(self, room: int) -> None:
        """Make room for so many entries."""
        super().__init__()
        self.room = room

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append as long as there is room."""
        if len(drafts) > self.room:
            raise StoreFull("The device is full.")
        self.room -= len(drafts)
        return super().append(dialog_id, drafts, turn_head)


@pytest.mark.parametrize("room", [0, 1, 5, 7, 8, 9])
def test_a_bundle_that_was_cut_off_is_hidden_and_taken_up(room: int) -> None:
    """A full device leaves no half session in sight; taking the bundle again gives what taking it once would have."""
    data = bundle(sample())
    store = CutOffStore(room)
    with pytest.raises(StoreFull):
        import_bundle(store, BytesIO(data).read)
    assert list(store.sessions()) == []

    store.room = 100
    taken = import_bundle(store, BytesIO(data).read)
    assert [one.session_id for one in store.sessions()] == [taken.session_id]
    assert b"".join(export_bundle(store, taken.session_id)) == data


def test_taking_a_bundle_takes_its_session_out_of_the_trash() -> None:
    """Whoever imports a session wants to see it."""
    log = sample()
    log.store.update_session(log.session, trashed_at=1.0)
    import_bundle(log.store, BytesIO(bundle(log)).read)
    assert log.store.session(log.session).trashed_at is None


def test_damage_is_never_exported() -> None:
    """An entry or payload that is not what was written is named; a bundle would make it look like what was said."""
    log = sample()
    good = log.store.contents.logs[log.dialog].bodies[1]
    log.store.contents.logs[log.dialog].bodies[1] = good.replace(b"hi", b"ho")
    with pytest.raises(StoreDamaged, match=f"{log.dialog[:12]}:1"):
        bundle(log)
    log.store.contents.logs[log.dialog].bodies[1] = good
    (blob,) = log.store.contents.blobs
    log.store.contents.blobs[blob] += b"!"
    with pytest.raises(StoreDamaged, match="blob"):
        bundle(log)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150)
@given(st.data())
def test_a_bundle_of_any_content_is_taken_or_refused(data: st.DataObject) -> None:
    """A bundle whose sums are right and whose content is not, made by hand or by a later version, gives a typed error and shows nothing."""
    frames = list(read_frames(BytesIO(_BUNDLE).read, "it"))
    place = data.draw(st.integers(0, len(frames) - 1))
    kind, payload = frames[place]
    if kind != "blob":
        fields = json.loads(payload)
        name = data.draw(st.sampled_from(sorted(fields)) | st.text(max_size=5))
        if data.draw(st.booleans()):
            fields[name] = data.draw(_JSON)
        else:
            fields.pop(name, None)
        payload = json.dumps(fields).encode()
    frames[place] = Frame(
        data.draw(st.sampled_from([kind, kind, kind, "entry", "dialog", "session", "source"])), payload
    )
    store = MemoryStore()
    try:
        import_bundle(store, BytesIO(b"".join(write_frames(frames))).read)
    except InvalidBundle:
        assert list(store.sessions()) == []
