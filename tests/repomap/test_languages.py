"""Languages: what is found to be defined and used, in each of them; and what must not break it."""

from __future__ import annotations

import pytest

from palaver.repomap import LANGUAGES, Language, Tags, language_of
from palaver.repomap.tags import tags_of

SOURCES = {
    "python": """
import os
from a.b import Foo, bar as baz
from .near import Near
LIMIT = 3
@deco(1)
class A(Foo, x.Base[int]):
    field: int = 3
    def m(self, a: Bar | None, b: list[Qux] = ()) -> "Z":
        def inner(): pass
        return self.call(a)
    async def long(
        self,
        other: int,
    ) -> None:
        raise Oops
def top(): return A().m(LIMIT)
type Alias = Foo
""",
    "javascript": """
import def, {one as two} from "x";
export const LIMIT = 3;
export default class Foo extends Bar {
  #p() {}
  m(a) { return two(a); }
}
const arrow = async (x) => { new Baz(x.y()); };
module.exports.go = function(a) { }
function f(a,
  b) {
  function g() {}
}
""",
    "typescript": """
interface Props { name: string; run(x: number): void }
type Alias = Props | null;
enum Color { Red }
abstract class Foo<T> extends Base<T> implements Props {
  abstract go(): void;
  m(): Alias { return make() }
}
namespace N { export function inN(): void {} }
declare function sig(a: string): void;
""",
    "tsx": """
export const C: React.FC<Props> = (p: Props) => <Widget a={1}><Inner.Deep/></Widget>;
""",
    "go": """
package main
import "fmt"
const Limit = 3
var X, Y int
var (
  Z string
)
type Foo struct { a int }
type Doer interface { Do(x Foo) error }
type M map[string]Foo
func (f *Foo) Method(a int) (b Doer) { fmt.Println(f.Other(a)); return New() }
func New() *Foo { return &Foo{} }
""",
    "rust": """
use crate::a::{Foo, b::Bar};
pub struct Unit;
pub struct S { a: Foo }
enum E { A(Bar) }
trait T { fn sig(&self) -> S; fn def(&self) {} }
impl T for S {
    fn sig(&self) -> S { helper::go(); self.x(); mac!(1); Vec::<S>::make() }
}
mod inner { pub fn f() {} }
macro_rules! mac { () => {} }
const LIMIT: usize = 3;
type Al = S;
""",
    "java": """
package a;
import a.b.Foo;
public class A extends Base implements Doer {
  static final int LIMIT = 3;
  @Override public <T> void m(Foo f,
     int b) throws X { new Bar().go(f); }
  A() {}
  enum E { X }
  record R(int a) {}
}
interface Doer { void go(); }
@interface Ann {}
""",
    "c": """
#define LIMIT 3
#define MAX(a,b) ((a)>(b)?(a):(b))
typedef struct foo { int a; } foo_t;
struct bar { foo_t x; };
static int helper(foo_t *f);
char *name(void) { return go(f->call(1)); }
int main(int argc,
  char **argv) {
  return helper(0);
}
""",
    "cpp": """
#pragma once
namespace n {
template <typename T> class Foo : public Base<T> {
 public:
  Foo(int a);
  int get() const { return a_; }
  virtual Bar* make() = 0;
  const std::string& name() const;
  using Al = Bar;
};
int Foo::free(int a) { return n::helper<int>(a); }
Bar* Foo::make() { return new Bar(); }
struct P { int a; };
enum class Color { Red };
}
""",
}

DEFINES = {
    "python": "LIMIT A m long top Alias",
    "javascript": "LIMIT Foo #p m arrow go f",
    "typescript": "Props run Alias Color Foo go m inN sig",
    "tsx": "C",
    "go": "Limit X Y Z Foo Doer Do M Method New",
    "rust": "Unit S E T sig def sig f mac LIMIT Al",
    "java": "A LIMIT m A E R Doer go Ann",
    "c": "LIMIT MAX foo_t foo bar helper name main",
    "cpp": "Foo Foo get make name Al free make P Color",
}

USES = {
    "python": "A Bar Foo LIMIT? Near Oops Qux bar call deco int list m",
    "javascript": "Bar Baz def one two y",
    "typescript": "Alias Base Props T make",
    "tsx": "Deep FC Props Widget",
    "go": "Doer Foo New Other Println error int string",
    "rust": "Bar Foo S T Vec go mac make x",
    "java": "Bar Base Doer Foo Override T X go",
    "c": "call foo_t go helper",
    "cpp": "Bar Base T helper string",
}


def language_named(name: str) -> Language:
    """Give a language."""
    return next(each for each in LANGUAGES if each.name == name)


def found(name: str, source: str | bytes) -> Tags:
    """Give what a source says."""
    tags = tags_of(language_named(name), source.encode() if isinstance(source, str) else source)
    assert tags is not None
    return tags


@pytest.mark.parametrize("name", [each.name for each in LANGUAGES])
def test_what_a_language_defines_and_uses_is_found(name: str) -> None:
    """Of every language, definitions in order of the file, what is inside a function not among them; and the names in use."""
    tags = found(name, SOURCES[name])
    assert " ".join(each.name for each in tags.definitions) == DEFINES[name]
    assert " ".join(dict.fromkeys(use.name for use in tags.uses)) == USES[name].replace(" LIMIT?", "")


@pytest.mark.parametrize("name", [each.name for each in LANGUAGES])
def test_every_line_shown_is_the_file_s(name: str) -> None:
    """The head of a definition, and what it stands in, are lines of the file with their numbers, in order."""
    lines = SOURCES[name].split("\n")
    for definition in found(name, SOURCES[name]).definitions:
        shown = (*definition.within, *definition.head)
        assert [line.number for line in shown] == sorted({line.number for line in definition.within}) + [
            line.number for line in definition.head
        ]
        for line in shown:
            said = lines[line.number - 1].rstrip()
            assert line.text == said or said.startswith(line.text.removesuffix("[...]"))


def test_a_head_ends_where_the_body_begins() -> None:
    """A head of several lines is shown to its end, without the body; the class that it stands in by its first line."""
    long = found("python", SOURCES["python"]).definitions[3]
    assert [line.text for line in long.head] == [
        "    async def long(",
        "        self,",
        "        other: int,",
        "    ) -> None:",
    ]
    assert [line.text for line in long.within] == ["class A(Foo, x.Base[int]):"]
    main = found("c", SOURCES["c"]).definitions[-1]
    assert [line.text for line in main.head] == ["int main(int argc,", "  char **argv) {"]


def test_what_is_a_member_and_where_names_are_from_is_known() -> None:
    """A method is a member, a function in a namespace is none; an imported name says from where."""
    members = {each.name for each in found("python", SOURCES["python"]).definitions if each.member}
    assert members == {"m", "long"}
    assert {each.name for each in found("rust", SOURCES["rust"]).definitions if each.member} == {"sig", "def"}
    assert not any(each.member for each in found("typescript", "namespace N { function f() {} }").definitions)
    modules = {use.name: use.module for use in found("python", SOURCES["python"]).uses if use.module}
    assert modules == {"Foo": "a.b", "bar": "a.b", "Near": ".near"}
    assert {use.module for use in found("javascript", SOURCES["javascript"]).uses} == {"", "x"}


@pytest.mark.parametrize("name", [each.name for each in LANGUAGES])
def test_a_broken_file_gives_what_can_be_made_out(name: str) -> None:
    """Half a file, a file of noise, of brackets, of zeros: something or nothing is found, and nothing is raised."""
    source = SOURCES[name].encode()
    for broken in (
        source[: len(source) // 2],
        source[::-1],
        bytes(range(256)) * 20,
        b"(" * 3_000,
        b"{" * 3_000 + b"class A {" * 300,
        b"\xff\xfe" + source,
        b"",
        b"\n",
    ):
        tags_of(language_named(name), broken)
    again = found(name, b"\xff\xff\n" + source)
    assert len(again.definitions) >= len(DEFINES[name].split()) - 1


HOSTILE = {
    "brackets": b"(" * 50_000,
    "deep": b"x=" + b"(" * 50_000 + b")" * 50_000,
    "choices": b"a?b:" * 6_000,
    "noise": bytes(number * number % 251 for number in range(20_000)),
    "wide": b"x=[" + b"1," * 50_000 + b"]\n",
    "chain": b"x" + b".a()" * 25_000 + b"\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_takes_too_long_is_given_up(kind: str) -> None:
    """Parser and search are bounded by counts, the same everywhere: what would take minutes gives nothing, and the next file is none the worse."""
    for language in LANGUAGES[:2]:
        tags = tags_of(language, HOSTILE[kind])
        assert tags is None or kind in {"deep", "wide", "chain", "noise"}
    assert found("python", "def f(): pass").definitions[0].name == "f"


def test_a_name_too_long_is_none_and_a_line_too_long_is_cut() -> None:
    """No name of more than 200 bytes and no line of more than 100 characters comes into a map; control characters are made visible."""
    assert found("python", f"def {'a' * 300}(): pass").definitions == ()
    line = found("python", f"def f(a={'é' * 300!r}): pass").definitions[0].head[0].text
    assert len(line) == 105
    assert line.endswith("[...]")
    assert found("python", b"def f(a='\x1b[2J\x85'): pass").definitions[0].head[0].text == "def f(a='�[2J�'): pass"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b.py", "python"),
        ("B.PY", "python"),
        ("x.d.ts", "typescript"),
        ("a.h", "cpp"),
        ("py", ""),
        ("a.py/b", ""),
        (".js", "javascript"),
    ],
)
def test_a_file_s_ending_says_its_language(path: str, name: str) -> None:
    """The ending alone decides, in either case of letters."""
    language = language_of(path)
    assert ("" if language is None else language.name) == name


def test_a_comment_is_no_part_of_a_head() -> None:
    """What is said between the head of a definition and its body is not shown."""
    head = found("python", "def f(a,\n      b):\n    # about it\n    return a\n").definitions[0].head
    assert [line.text for line in head] == ["def f(a,", "      b):"]
