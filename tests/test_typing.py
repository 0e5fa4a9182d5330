"""What a user's editor says: the programs of tests/typing under pyright, in its strict mode. `./run check` has mypy read them too."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
PYRIGHT = ROOT / "peers" / "node_modules" / "pyright" / "index.js"


def test_users_programs_pass_pyright_strict(tmp_path: Path) -> None:
    """The public face has a type everywhere, and each `assert_type` holds; one more program, which is wrong, is the only one with errors."""
    node = shutil.which("node")
    if node is None or not PYRIGHT.is_file():
        pytest.skip("no pyright: tests/peers/node_modules or Node.js is not there (./run test installs them)")
    programs = shutil.copytree(ROOT / "typing", tmp_path / "programs")
    wrong = programs / "wrong.py"
    wrong.write_text("import palaver\n\npalaver.Agent('a', 'b', model='c', output=int).respond('d').output.upper()\n")

    command = [node, str(PYRIGHT), "--outputjson", "--project", str(programs), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len([*programs.glob("*.py")])
    assert {Path(one["file"]) for one in found["generalDiagnostics"]} == {wrong}, done.stdout
    assert any(
        'Cannot access attribute "upper" for class "int"' in one["message"] for one in found["generalDiagnostics"]
    )
