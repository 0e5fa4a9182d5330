"""Media: what they are called, where they come from, and that they tell the truth."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidMedia, MediaUnavailable
from palaver.messages import AudioContent, ImageContent, Media, Message, decode, digest, encode
from palaver.testing import strategies as some

PNG = b"\x89PNG\r\n\x1a\nrest"


@given(some.images() | some.sounds())
def test_a_medium_is_known_by_its_bytes(media: Media) -> None:
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


def test_bytes_that_are_not_in_memory_cannot_be_had() -> None:
    """MediaUnavailable says which, and what to do; an address needs no bytes."""
    bare = Media(media_type="image/png", digest=digest(PNG), size=len(PNG))
    with pytest.raises(MediaUnavailable, match="hydrate"):
        ImageContent([bare]).to_base64()
    with pytest.raises(MediaUnavailable):
        Media.from_text("https://example.org/a.png").payload()
    assert Media.from_bytes(PNG).payload() == PNG


@given(st.binary(max_size=30), st.integers(0, 3), st.sampled_from(["", "\n", " \t"]))
def test_base64_is_read_with_white_space_and_without_padding(data: bytes, cut: int, space: str) -> None:
    """What mail and terminals do to base64 is undone; canonical base64 comes back unchanged."""
    spelt = base64.b64encode(PNG + data).decode()
    assert Media.from_text(spelt).to_base64() == (spelt, "image/png")
    assert Media.from_text(spelt[:9] + space + spelt[9:].rstrip("=")).data == PNG + data
    assert Media.from_text(f"data:image/png;base64,{spelt}").data == PNG + data
    assert cut >= 0


def test_a_claimed_type_counts_only_where_the_bytes_say_nothing() -> None:
    """R190: never a wrong label; a type nobody can check is the claimant's word."""
    assert Media.from_bytes(PNG, media_type="image/jpeg").media_type == "image/png"
    assert Media.from_bytes(b"....ftypavif", media_type="image/avif").media_type == "image/avif"
    assert Media.from_bytes(b"....", "audio", "audio/webm").media_type == "audio/webm"
    with pytest.raises(InvalidMedia, match="no image"):
        Media.from_bytes(b"%PDF-1.7", media_type="application/pdf")


def test_a_digest_and_its_bytes_belong_together() -> None:
    """Fields that contradict each other are refused; a medium without bytes, digest and address is none."""
    spelt = base64.b64encode(PNG).decode()
    with pytest.raises(InvalidMedia, match="not those of"):
        Media(digest="0" * 64, data=PNG)
    with pytest.raises(InvalidMedia, match="not those of"):
        Message(contents=[{"type": "image", "images": [{"digest": "0" * 64, "data": spelt}]}])
    with pytest.raises(InvalidMedia, match="bytes, the digest"):
        Media()
    assert Media.from_dict({"data": spelt}).media_type == "image/png"


def test_a_single_source_instead_of_a_list_is_refused() -> None:
    """A string iterates as characters and bytes as numbers: the usual slip is caught by name."""
    for slip in (PNG, "https://example.org/a.png", 7):
        with pytest.raises(InvalidMedia, match="as a list"):
            ImageContent(slip)  # type: ignore[arg-type]
    with pytest.raises(InvalidMedia, match="as a list"):
        AudioContent.from_dict({"audio": "x"})


def test_media_are_stored_by_reference_and_shown_without_their_bytes() -> None:
    """Neither the stored form nor repr() holds the payload."""
    message = Message(content=[ImageContent([PNG])])
    assert b"rest" not in encode(message)[0]
    assert "rest" not in repr(message)
    assert "image/png" in repr(message)
    image = decode(encode(message)[0]).contents[0]
    assert isinstance(image, ImageContent)
    assert image.images[0].data is None
    with pytest.raises(TypeError, match="by position and by name"):
        ImageContent([PNG], images=[PNG])  # type: ignore[misc]
