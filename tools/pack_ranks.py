"""Pack tiktoken's ``o200k_base`` ranks into the file that palaver ships.

The published form is text, one base64 token and its rank a line (3.6 MB). Packed, it is the length of every token as one
byte, in rank order, then all tokens end to end, compressed with xz (0.8 MB): the ranks are 0, 1, 2 ... without a gap, so
they need not be written down.

Usage::

    python tools/pack_ranks.py o200k_base.tiktoken src/palaver/tokens/o200k_base.xz

``o200k_base.tiktoken`` is the file that ``tiktoken.get_encoding("o200k_base")`` downloads into its cache folder, where
it lies under the SHA-1 of its address, ``fb374d419588a4632f3f557e76b4b70aebbca790``.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import sys
from pathlib import Path

PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""What tiktoken itself expects of the published file (tiktoken_ext/openai_public.py)."""

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4}]
"""The smallest of the settings that were tried."""


def pack(published: bytes) -> bytes:
    """Return the packed form of the published file, or exit when it is not the published one."""
    if hashlib.sha256(published).hexdigest() != PUBLISHED_SHA256:
        sys.exit("this is not the published o200k_base.tiktoken: its SHA-256 differs")
    lines = (line.split() for line in published.splitlines() if line)
    ranked = sorted((int(rank), base64.b64decode(token)) for token, rank in lines)
    if [rank for rank, _ in ranked] != list(range(len(ranked))):
        sys.exit("the ranks have a gap, the packed form cannot say so")
    lengths = bytes(len(token) for _, token in ranked)
    tokens = b"".join(token for _, token in ranked)
    return lzma.compress(lengths + tokens, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=FILTERS)


def main() -> None:
    """Read the published file, write the packed one."""
    source, target = map(Path, sys.argv[1:3])
    target.write_bytes(pack(source.read_bytes()))
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
