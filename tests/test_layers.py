"""The layers hold, and each contract notices a planted fault."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _lint(folder: Path, sources: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the package below `sources`, with the contracts of the project."""
    program = f"import sys; sys.path.insert(0, {str(sources)!r}); from importlinter.cli import lint_imports as run"
    return subprocess.run(
        [sys.executable, "-c", f"{program}; sys.exit(run(cache_dir=None, no_cache=True))"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )


def test_every_contract_is_kept() -> None:
    """No import, lazy and typing ones included, goes upward or around an adapter."""
    ran = _lint(ROOT, ROOT / "src")
    assert ran.returncode == 0, ran.stdout


@pytest.fixture
def small_house(tmp_path: Path) -> Path:
    """Return the package folder of a house with some empty rooms, beside the contracts of the project."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "sources" / "palaver"
    for room in ("errors", "messages", "log", "prompts", "view", "wire", "store", "formats", "session"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "store" / "protocol.py").touch()
    return package


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("log/plain.py", "from palaver.store import protocol", "palaver.log is not allowed to import palaver.store"),
        (
            "messages/typing_only.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from palaver import log",
            "palaver.messages is not allowed to import palaver.log",
        ),
        ("formats/beside.py", "from palaver.store import protocol", "palaver.formats is not allowed"),
        ("utils.py", "", "palaver.utils"),
        ("store/memory.py", "import apsw", "palaver is not allowed to import apsw"),
        ("view/fold.py", "import threading", "palaver.view is not allowed to import threading"),
    ],
)
def test_a_planted_fault_is_named(small_house: Path, module: str, source: str, complaint: str) -> None:
    """Each kind of wrong import makes the linter fail with the fault's name."""
    (small_house / module).write_text(source)
    ran = _lint(small_house.parents[1], small_house.parent)
    assert ran.returncode != 0
    assert complaint in ran.stdout
