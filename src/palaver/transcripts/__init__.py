"""Transcripts of other agents: import and growth, export, bundles, doctor."""

from palaver.transcripts.bundle import Taken, export_bundle, import_bundle
from palaver.transcripts.bundle_files import import_bundle_file, is_bundle
from palaver.transcripts.doctor import DAMAGED_STORE, examine, examine_file, format_of, unreadable
from palaver.transcripts.exporting import EXPORTS, Exported, export
from palaver.transcripts.findings import REMEDIES, Diagnosis, Finding, to_quarantine
from palaver.transcripts.importing import Imported, Importer, losses_by_code
from palaver.transcripts.parts import in_order
from palaver.transcripts.repair import repair
from palaver.transcripts.scanning import scan_file
from palaver.transcripts.sources import kept

__all__ = [
    "DAMAGED_STORE",
    "EXPORTS",
    "REMEDIES",
    "Diagnosis",
    "Exported",
    "Finding",
    "Imported",
    "Importer",
    "Taken",
    "examine",
    "examine_file",
    "export",
    "export_bundle",
    "format_of",
    "import_bundle",
    "import_bundle_file",
    "in_order",
    "is_bundle",
    "kept",
    "losses_by_code",
    "repair",
    "scan_file",
    "to_quarantine",
    "unreadable",
]
