"""A class name means one class: what the check of names counts."""

from pathlib import Path

from tools.names import MOST, definitions, faults


def test_private_and_nested_classes_count(tmp_path: Path) -> None:
    """A name is defined twice wherever its classes are; each needs a reason, and a reason needs a name."""
    (tmp_path / "a.py").write_text("class Answer: ...\nclass Row:\n    class _Answer: ...\n")
    (tmp_path / "b.py").write_text("def work():\n    class Row: ...\n")
    found = definitions(tmp_path)
    assert {name: len(places) for name, places in found.items()} == {"Answer": 2, "Row": 2}
    assert len(faults(found, {})) == 2
    assert faults(found, {"Answer": "why", "Row": "why"}) == []
    assert len(faults(found, {"Answer": "why", "Row": "why", "Gone": "why"})) == 1
    assert (
        len(
            faults(
                {str(number): ["a", "b"] for number in range(MOST + 1)},
                {str(number): "why" for number in range(MOST + 1)},
            )
        )
        == 1
    )
