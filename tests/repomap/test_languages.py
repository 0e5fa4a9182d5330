"""The definitions and uses that parsing finds in each language."""

from __future__ import annotations

import re
from pathlib import Path

from palaver.repomap import Tags
from palaver.repomap.languages import LANGUAGES
from palaver.repomap.parsing import parse

NAMES = [each.name for each in LANGUAGES]
GOLDEN = {
    name: (defines, uses, source)
    for name, defines, uses, source in re.findall(
        r"^=== (\S+)\n--- defines (.*)\n--- uses (.*)\n((?:(?!===).*\n)*)",
        (Path(__file__).parent / "languages.txt").read_text("utf-8"),
        re.MULTILINE,
    )
}
"""A source in each language, with the names that it defines and uses."""


def parsed(name: str, source: str | bytes) -> Tags:
    """Return the tags of a source."""
    tags = parse(LANGUAGES[NAMES.index(name)], source.encode() if isinstance(source, str) else source)
    assert tags is not None
    return tags


def test_definitions_and_uses_are_found() -> None:
    """In file order and sorted; what functions contain is local. Every line shown is a line of the file."""
    for name in NAMES:
        defines, uses, source = GOLDEN[name]
        tags = parsed(name, source)
        assert " ".join(each.name for each in tags.definitions) == defines, name
        assert " ".join(dict.fromkeys(use.name for use in tags.uses)) == uses, name
        lines = source.split("\n")
        for definition in tags.definitions:
            for line in (*definition.within, *definition.head):
                assert lines[line.number - 1].rstrip().startswith(line.text.removesuffix("[...]")), name


def test_a_head_ends_where_the_body_begins() -> None:
    """Without comments between them; long lines are cut, control characters replaced."""
    cases: list[tuple[str, str, list[str]]] = [
        ("python", "def f(a,\n      b):\n    # about it\n    return a\n", ["def f(a,", "      b):"]),
        ("c", "int main(int argc,\n  char **argv) {\n  return 0;\n}\n", ["int main(int argc,", "  char **argv) {"]),
        ("python", f"def f(a='\x1b[2J'): pass  # {'é' * 99}", [f"def f(a='\ufffd[2J'): pass  # {'é' * 75}[...]"]),
    ]
    for name, source, head in cases:
        assert [line.text for line in parsed(name, source).definitions[0].head] == head, (name, source, head)


def test_a_broken_file_gives_what_is_left() -> None:
    """Half a file, noise, brackets, zeros: never an error."""
    for name in NAMES:
        source = GOLDEN[name][2].encode()
        noise = (bytes(range(256)) * 20, b"(" * 3_000, b"{" * 3_000 + b"class A {" * 300, b"", b"\n")
        for broken in (source[: len(source) // 2], source[::-1], b"\xff\xfe" + source, *noise):
            parse(LANGUAGES[NAMES.index(name)], broken)
        assert len(parsed(name, b"\xff\xff\n" + source).definitions) >= len(GOLDEN[name][0].split()) - 1, name


def test_a_slow_file_is_given_up() -> None:
    """Bounds are counts, the same on every machine; the next file is parsed as usual."""
    for source in (b"(" * 50_000, b"a?b:" * 6_000):
        assert [parse(each, source) for each in LANGUAGES[:2]] == [None, None], source[:9]
    assert parsed("python", "def f(): pass").definitions[0].name == "f"
    assert parsed("python", f"def {'a' * 300}(): pass").definitions == ()


def test_members_are_told_from_functions() -> None:
    """Methods are members; functions in a namespace are not."""
    assert {each.name for each in parsed("python", GOLDEN["python"][2]).definitions if each.member} == {"m", "long"}
    assert {each.name for each in parsed("rust", GOLDEN["rust"][2]).definitions if each.member} == {"sig", "def"}
    assert not any(each.member for each in parsed("typescript", "namespace N { function f() {} }").definitions)
