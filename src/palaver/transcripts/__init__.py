"""Transcripts of other agents: import and growth, export, bundles, doctor.

Modules that read files are loaded on first use: Markdown needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from palaver.transcripts.repair import repair

if TYPE_CHECKING:
    from palaver.transcripts.doctor import DAMAGED_STORE, examine, examine_file, unreadable
    from palaver.transcripts.exporting import EXPORTS, Exported, export, partial_path, write_file
    from palaver.transcripts.findings import REMEDIES, Diagnosis, Finding
    from palaver.transcripts.importing import Imported, Importer, in_order, require_something
    from palaver.transcripts.sources import kept
    from palaver.transfer.bundle import (
        export_bundle,
        import_bundle,
        import_bundle_file,
        is_bundle,
        redacted_copy,
    )

__all__ = [
    "DAMAGED_STORE",
    "EXPORTS",
    "REMEDIES",
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

_MODULES = {
    "transfer.bundle": "export_bundle import_bundle import_bundle_file is_bundle redacted_copy",
    "transcripts.doctor": "DAMAGED_STORE examine examine_file unreadable",
    "transcripts.exporting": "EXPORTS Exported export partial_path write_file",
    "transcripts.findings": "REMEDIES Diagnosis Finding",
    "transcripts.importing": "Imported Importer in_order require_something",
    "transcripts.sources": "kept",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any name of a module
    """Load the module that a name comes from."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"palaver.{_MODULE_OF[name]}"), name)
