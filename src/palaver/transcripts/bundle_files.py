"""Bundles as files: as they were written, or compressed since (.zst, .gz)."""

from __future__ import annotations

from pathlib import Path

from palaver.formats import open_source
from palaver.store.protocol import Store
from palaver.transcripts.bundle import Taken, check_bundle, import_bundle
from palaver.transcripts.frames import NAME


def is_bundle(path: str | Path) -> bool:
    """Tell whether a file is a bundle, of any version, by its first bytes.

    Raises:
        UnsupportedTranscript: It is no file that can be read.
    """
    with open_source(path) as source:
        return len(source.members) == 1 and source.members[0].read(len(NAME)) == NAME


def check_bundle_file(path: str | Path) -> None:
    """Read a file that holds a bundle to its end, and write nothing.

    Raises:
        UnsupportedTranscript: It is no file that can be read.
        InvalidBundle: It is damaged.
    """
    with open_source(path) as source:
        check_bundle(source.members[0].reader(), str(path))


def import_bundle_file(store: Store, path: str | Path) -> Taken:
    """Take a file that holds a bundle into a store, as `import_bundle` does, but read it to its end first: of a damaged one nothing is written.

    Raises:
        UnsupportedTranscript: It is no file that can be read.
        InvalidBundle: It is damaged, or holds another history of a session that the store has.
    """
    with open_source(path) as source:
        bundle = source.members[0]
        check_bundle(bundle.reader(), str(path))
        return import_bundle(store, bundle.reader(), str(path))
