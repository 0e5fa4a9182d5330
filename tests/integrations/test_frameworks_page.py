"""The examples of docs/how-to/frameworks.md that need a framework and no server of a vendor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/frameworks.md"
EXAMPLES = {  # the heading of a section, and the package that it needs
    "LangChain": "langchain",
    "pydantic-ai": "pydantic_ai",
    "Google's Agent Development Kit": "google.adk",
    "Microsoft's Agent Framework": "agent_framework",
    "Strands Agents": "strands",
}


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example_prints_what_the_page_says(heading: str, tmp_path: Path) -> None:
    """A user who copies the example of a section sees the lines after `#>`."""
    pytest.importorskip(EXAMPLES[heading], reason=f"{EXAMPLES[heading]} is not installed: ./run integrations")
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python[^\n]*\n(.*?)```", section, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [line[3:] for line in code.splitlines() if line.startswith("#> ")]
