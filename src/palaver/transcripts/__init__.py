"""Transcripts of other agents: import and growth, export, bundles, doctor.

Modules that read files are loaded on first use: Markdown needs none of them.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.transcripts.doctor import DAMAGED_STORE, examine, examine_file, unreadable
    from palaver.transcripts.exporting import Exported, export, export_forms, partial_path, write_file
    from palaver.transcripts.findings import REMEDIES, Diagnosis, Finding
    from palaver.transcripts.importing import Imported, Importer, in_order, require_something
    from palaver.transcripts.origin import remember
    from palaver.transcripts.repair import repair
    from palaver.transcripts.sources import kept
    from palaver.transfer.archives import Archived, archive, archived, restore
    from palaver.transfer.bundle import (
        export_bundle,
        import_bundle,
        import_bundle_file,
        is_bundle,
        redacted_copy,
    )
    from palaver.transfer.sync import Synced, sync

__all__ = [
    "DAMAGED_STORE",
    "REMEDIES",
    "Archived",
    "Diagnosis",
    "Exported",
    "Finding",
    "Imported",
    "Importer",
    "Synced",
    "archive",
    "archived",
    "examine",
    "examine_file",
    "export",
    "export_bundle",
    "export_forms",
    "import_bundle",
    "import_bundle_file",
    "in_order",
    "is_bundle",
    "kept",
    "partial_path",
    "redacted_copy",
    "remember",
    "repair",
    "require_something",
    "restore",
    "sync",
    "unreadable",
    "write_file",
]

open_door(
    __name__,
    {
        ".doctor": "DAMAGED_STORE examine examine_file unreadable",
        ".exporting": "Exported export export_forms partial_path write_file",
        ".findings": "REMEDIES Diagnosis Finding",
        ".importing": "Imported Importer in_order require_something",
        ".origin": "remember",
        ".repair": "repair",
        ".sources": "kept",
        "palaver.transfer.bundle": "export_bundle import_bundle import_bundle_file is_bundle redacted_copy",
        "palaver.transfer.archives": "Archived archive archived restore",
        "palaver.transfer.sync": "Synced sync",
    },
)
