"""List what recorded users said, sentence by sentence, with what the finder of constraints takes for one: to be read by eye.

`python -m tools.constraints FOLDER [HOW_MANY [SEED]]`, with the folder of the recorded sessions.

Each sentence that is found has a star. Before it stands the digest by which tests/context/stated_recorded.py knows it: only digests are written down there,
for the words are the recordings'.
"""

import random
import sys
from pathlib import Path

from palaver.context.record.asks import rules, sentences
from tests.context.test_stated import digest, said

KINDS = ("claude_code", "codex", "pi", "tau_bench", "tau2_bench")
"""The kinds of recordings in which people, or who plays them, type."""


def main(folder: str, many: str = "50", seed: str = "1") -> int:
    """Print some messages, chosen by a seed."""
    root = Path(folder)
    files = [path for kind in KINDS for path in sorted((root / kind).iterdir())]
    texts = {digest(text): (path, text) for path in files for text in said(path)}
    for key in random.Random(int(seed)).sample(sorted(texts), min(int(many), len(texts))):  # noqa: S311 - a sample, no secret
        path, text = texts[key]
        found = set(rules(text))
        sys.stdout.write(f"{path.relative_to(root)} {key}\n")
        for sentence, _ in sentences(text):
            sys.stdout.write(f"  {digest(sentence)} {'*' if sentence in found else ' '} {sentence}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
