"""Media: what they are called, where they come from, and that their types are true."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidMessage, MissingFile, NotFound, StoreDamaged
from palaver.messages import AudioContent, ImageContent, Media, Message, decode, digest, encode, hydrate
from tests.messages import strategies as some

PNG = b"\x89PNG\r\n\x1a\nrest"


@given(some.images() | some.sounds())
def test_media_are_known_by_their_bytes(media: Media) -> None:
    """Equality and hash go by address, digest and type; in memory or not makes no difference."""
    again = Media.from_dict(json.loads(media.model_dump_json()))
    assert (again, hash(again), again.data) == (media, hash(media), media.data)
    bare = media.model_copy(update={"data": None})
    assert bare == media
    assert bare.data is None
    assert (media.url is None) == bool(media.digest)
    if media.data is not None:
        assert (media.digest, media.size) == (digest(media.data), len(media.data))
        assert media.to_base64() == (base64.b64encode(media.data).decode(), media.media_type)


def test_missing_bytes_raise_not_found() -> None:
    """The error names the payload and what to do; the dict for a provider never holds a bare digest."""
    bare = Media(media_type="image/png", digest=digest(PNG), size=len(PNG))
    with pytest.raises(NotFound, match="hydrate"):
        ImageContent([bare]).to_base64()
    with pytest.raises(NotFound):
        Media.from_text("https://example.org/a.png").payload()
    with pytest.raises(NotFound):
        Message(content=[ImageContent([bare])]).to_api_dict()
    with pytest.raises(MissingFile):
        ImageContent.from_file("/no/such/file")


@given(st.binary(max_size=30), st.sampled_from(["", "\n", " \t"]))
def test_base64_may_have_white_space_and_no_padding(data: bytes, space: str) -> None:
    """What mail and terminals do to base64 is undone; canonical base64 comes back unchanged."""
    spelt = base64.b64encode(PNG + data).decode()
    assert Media.from_text(spelt).to_base64() == (spelt, "image/png")
    assert Media.from_text(spelt[:9] + space + spelt[9:].rstrip("=")).data == PNG + data
    assert Media.from_text(f"data:image/png;base64,{spelt}").data == PNG + data


def test_r190_claimed_types_count_only_for_unknown_bytes() -> None:
    """Never a wrong label; a type nobody can check is the claimant's word."""
    assert Media.from_bytes(PNG, media_type="image/jpeg").media_type == "image/png"
    assert Media.from_bytes(b"....ftypavif", media_type="image/avif").media_type == "image/avif"
    assert Media.from_bytes(b"....", "audio", "audio/webm").media_type == "audio/webm"
    with pytest.raises(InvalidMessage, match="no image"):
        Media.from_bytes(b"%PDF-1.7", media_type="application/pdf")


def test_a_digest_and_its_bytes_belong_together() -> None:
    """Fields that contradict each other are refused; a medium needs bytes, digest or address."""
    spelt = base64.b64encode(PNG).decode()
    with pytest.raises(InvalidMessage, match="not those of"):
        Media(digest="0" * 64, data=PNG)
    with pytest.raises(InvalidMessage, match="not those of"):
        Message(contents=[{"type": "image", "images": [{"digest": "0" * 64, "data": spelt}]}])
    with pytest.raises(InvalidMessage, match="bytes, the digest"):
        Media()
    assert Media.from_dict({"data": spelt}).media_type == "image/png"


def test_a_single_source_is_not_a_list() -> None:
    """A string iterates as characters and bytes as numbers: the usual slip is caught by name."""
    for slip in (PNG, "https://example.org/a.png", 7):
        with pytest.raises(InvalidMessage, match="as a list"):
            ImageContent(slip)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="as a list"):
        AudioContent.from_dict({"audio": "x"})
    with pytest.raises(TypeError, match="by position and by name"):
        ImageContent([PNG], images=[PNG])  # type: ignore[misc]


def test_payloads_are_stored_apart_and_loaded_by_digest() -> None:
    """DESIGN decision 4: out of line under their SHA-256, one copy however often they are shown; not in repr either."""
    result = {"type": "tool_result", "tool_use_id": "c", "content": [ImageContent([PNG])]}
    message = Message(content=[ImageContent([PNG, PNG]), result])
    body, payloads = encode(message)
    assert dict(payloads) == {digest(PNG): PNG}
    assert b"rest" not in body
    assert "image/png" in repr(message)
    assert "rest" not in repr(message)
    bare = decode(body)
    asked: list[str] = []

    def load(name: str) -> bytes:
        asked.append(name)
        return PNG

    whole = hydrate(bare, load)
    assert whole == bare == message
    assert set(asked) == {digest(PNG)}
    assert hydrate(whole, lambda _: b"") is whole
    with pytest.raises(StoreDamaged, match="digest"):
        hydrate(bare, lambda _: b"other bytes")
