"""What a user's editor says: the programs of tests/typing under pyright, in its strict mode. `./run check` has mypy read them too."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
PYRIGHT = ROOT / "peers" / "node_modules" / "pyright" / "index.js"


def test_users_programs_pass_pyright_strict(tmp_path: Path) -> None:
    """The public face has a type everywhere, and each `assert_type` holds."""
    node = shutil.which("node")
    if node is None or not PYRIGHT.is_file():
        pytest.skip("no pyright: tests/peers/node_modules or Node.js is not there (./run test installs them)")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import palaver\n\npalaver.Agent('a', 'b', model='c', output=int).respond('d').output.upper()\n")
    (tmp_path / "pyrightconfig.json").write_text('{ "typeCheckingMode": "strict" }')

    assert _pyright(node, ROOT / "typing") == (0, "0 errors, 0 warnings, 0 informations")
    code, said = _pyright(node, tmp_path)
    assert (code, 'Cannot access attribute "upper" for class "int"' in said) == (1, True), said


def _pyright(node: str, folder: Path) -> tuple[int, str]:
    command = [node, str(PYRIGHT), "--project", str(folder), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()
