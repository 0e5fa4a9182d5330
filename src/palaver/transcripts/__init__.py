"""Transcripts of other agents: import and growth, export, bundles, doctor."""

from palaver.transcripts.bundle import (
    BundleImport,
    export_bundle,
    import_bundle,
    import_bundle_file,
    is_bundle,
    redacted_copy,
)
from palaver.transcripts.doctor import DAMAGED_STORE, examine, examine_file, unreadable
from palaver.transcripts.exporting import EXPORTS, Exported, export, partial_path, write_file
from palaver.transcripts.findings import REMEDIES, Diagnosis, Finding
from palaver.transcripts.importing import Imported, Importer, in_order, require_something
from palaver.transcripts.repair import repair
from palaver.transcripts.sources import kept

__all__ = [
    "DAMAGED_STORE",
    "EXPORTS",
    "REMEDIES",
    "BundleImport",
    "Diagnosis",
    "Exported",
    "Finding",
    "Imported",
    "Importer",
    "examine",
    "examine_file",
    "export",
    "export_bundle",
    "import_bundle",
    "import_bundle_file",
    "in_order",
    "is_bundle",
    "kept",
    "partial_path",
    "redacted_copy",
    "repair",
    "require_something",
    "unreadable",
    "write_file",
]
