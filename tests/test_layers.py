"""The layers hold."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_contract_is_kept() -> None:
    """No import, lazy and typing ones included, goes upward or around an adapter."""
    program = (
        "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None, no_cache=True))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
