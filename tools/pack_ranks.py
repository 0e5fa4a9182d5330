"""Write tiktoken's ``o200k_base`` ranks as the file that palaver ships.

The published form is text, one base64 token and its rank a line (3.6 MB), which takes 0.1 s to read. The shipped form is the
tokens in rank order, joined by two bytes that occur in none (1.8 MB): the ranks are 0, 1, 2 ... without a gap, so they need
not be written down. Not compressed: unpacking would take longer than splitting.

Usage::

    python tools/pack_ranks.py o200k_base.tiktoken src/palaver/tokens/o200k_base.tokens

``o200k_base.tiktoken`` is the file that ``tiktoken.get_encoding("o200k_base")`` downloads into its cache folder, where
it lies under the SHA-1 of its address, ``fb374d419588a4632f3f557e76b4b70aebbca790``.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

from palaver.tokens.o200k import SEPARATOR

PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""What tiktoken itself expects of the published file (tiktoken_ext/openai_public.py)."""


def pack(published: bytes) -> bytes:
    """Return the shipped form of the published file, or exit when it is not the published one."""
    if hashlib.sha256(published).hexdigest() != PUBLISHED_SHA256:
        sys.exit("this is not the published o200k_base.tiktoken: its SHA-256 differs")
    lines = (line.split() for line in published.splitlines() if line)
    ranked = sorted((int(rank), base64.b64decode(token)) for token, rank in lines)
    if [rank for rank, _ in ranked] != list(range(len(ranked))):
        sys.exit("the ranks have a gap, the shipped form cannot say so")
    tokens = [token for _, token in ranked]
    joined = SEPARATOR.join(tokens)
    if joined.split(SEPARATOR) != tokens:
        sys.exit("a token holds the separator")
    return joined


def main() -> None:
    """Read the published file, write the shipped one."""
    source, target = map(Path, sys.argv[1:3])
    target.write_bytes(pack(source.read_bytes()))
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
