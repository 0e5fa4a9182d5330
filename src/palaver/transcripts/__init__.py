"""Transcripts of other agents: import and growth, export, bundles, doctor."""

from palaver.transcripts.importing import Imported, Importer, losses_by_code
from palaver.transcripts.sources import kept

__all__ = ["Imported", "Importer", "kept", "losses_by_code"]
