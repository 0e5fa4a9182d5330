"""Images and recordings: their size read from their first bytes, and what providers ask for it."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from palaver import Message, Session
from palaver.messages import ImageContent
from palaver.messages.media import Media, pixel_size
from palaver.tokens import count_block, counter
from palaver.tokens.counting import seconds
from palaver.tokens.families import Area, Flat, ImageRule, Patches, Tiles

EDGE = st.integers(1, 400)


def picture(kind: str, width: int, height: int, **options: object) -> bytes:
    """Draw an image."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (200, 10, 10)).save(buffer, format=kind, **options)
    return buffer.getvalue()


KINDS: list[tuple[str, dict[str, object]]] = [
    ("PNG", {}),
    ("GIF", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True, "exif": b"Exif\0\0" + b"x" * 3_000}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": b"Exif\0\0II*\0"}),
]


@given(width=EDGE, height=EDGE)
def test_the_size_is_what_was_drawn(width: int, height: int) -> None:
    """Every format gives back the size that Pillow drew it in."""
    for kind, options in KINDS:
        assert pixel_size(picture(kind, width, height, **options)) == (width, height), (kind, options)


@given(st.binary(max_size=200))
def test_any_bytes_have_a_size_or_none(data: bytes) -> None:
    """Bytes that are no image give None, whatever they begin with, and never an error."""
    for head in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"RIFF\0\0\0\0WEBPVP8 "):
        size = pixel_size(head + data)
        assert size is None or min(size) >= 1


def test_a_cut_image_has_its_size_or_none() -> None:
    """Cut anywhere, an image gives its true size or none, never a wrong one."""
    for kind in ["PNG", "GIF", "JPEG", "WEBP"]:
        data = picture(kind, 120, 35)
        assert {pixel_size(data[:end]) for end in range(len(data))} <= {None, (120, 35)}, kind


PUBLISHED: list[tuple[ImageRule, tuple[int, int], int]] = [
    # OpenAI, "Images and vision": 1024 x 1024 is 765 tokens, 2048 x 4096 is 1,105.
    (Tiles(85, 170), (1024, 1024), 765),
    (Tiles(85, 170), (2048, 4096), 1105),
    # The same page: 1024 x 1024 is 1,024 patches of 32 x 32.
    (Patches(1536, 1.0), (1024, 1024), 1024),
    # Anthropic, "Vision": 200 x 200 is some 54 tokens, 1000 x 1000 some 1,334; larger images are scaled down.
    (Area(750, 1568, 1600), (1000, 1000), 1334),
    (Area(750, 1568, 1600), (8000, 8000), 1600),
    # Google, "Understand and count tokens": 258 up to 384 pixels, else 258 for each tile of 768.
    (Flat(258, 384), (384, 384), 258),
    (Flat(258, 384), (1536, 769), 4 * 258),
    (Flat(1120), (4000, 3000), 1120),
]


def test_published_costs() -> None:
    """The formulas give the examples that providers publish."""
    assert [rule.tokens(*size) for rule, size, _tokens in PUBLISHED] == [tokens for _rule, _size, tokens in PUBLISHED]


@pytest.mark.parametrize("rule", [Tiles(85, 170), Patches(1536, 1.62), Area(750, 1568, 1600), Flat(1120)])
@given(width=st.integers(1, 9000), height=st.integers(1, 9000))
def test_an_unknown_image_counts_as_the_largest(rule: ImageRule, width: int, height: int) -> None:
    """No image costs nothing, and none costs more than one whose size is not known."""
    assert 1 <= rule.tokens(width, height) <= rule.unknown


def test_stored_image_counts_by_its_pixels(tmp_path: Path) -> None:
    """What was read from a store, without its bytes, counts as it did when it was appended; an image that nobody has seen counts as the largest."""
    image = Media.from_bytes(picture("PNG", 640, 480))
    for model in ("claude-opus-4-7", "gpt-4o", "gpt-5.4", "gemini-2.5-pro"):
        counting = counter(model)
        with Session.create(tmp_path / f"{model}.db") as session:
            session.root.append(Message("user", [ImageContent(images=[image])]))
            (stored,) = session.root.reload().messages[0].contents
        assert isinstance(stored, ImageContent)
        assert (stored.images[0].width, stored.images[0].height) == (640, 480)
        unseen = ImageContent(images=[Media(media_type="image/png", digest=image.digest, size=image.size)])
        assert count_block(stored, counting) == count_block(ImageContent(images=[image]), counting)
        assert count_block(unseen, counting) == counting.family.image.unknown


def test_a_wave_file_is_as_long_as_it_was_recorded() -> None:
    """The length of a WAV file comes from its header."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", "not compressed"))
        file.writeframes(b"\0\0" * 16_000 * 2)
    assert seconds(buffer.getvalue(), len(buffer.getvalue())) == pytest.approx(2, abs=0.01)


@given(st.one_of(st.none(), st.binary(max_size=80)), st.integers(0, 10**9))
def test_any_sound_has_a_length(data: bytes | None, size: int) -> None:
    """What is no WAV file counts 4,000 bytes a second, whatever it holds."""
    assert seconds(data, size) == size / 4_000
