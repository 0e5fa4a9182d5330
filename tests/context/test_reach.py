"""Which files a call may have changed: any, unless it is known to look, or to write what it names. The commands here are read, and never run."""

import pytest

from palaver.context.work.deeds import deed
from palaver.context.work.reach import Reach, reach_of, reach_of_command, reach_of_words
from palaver.messages import ToolCallContent

FILE = "/repo/src/app/config.py"

CHANGES = (
    "git -C /repo checkout .",
    "git -c a=b stash",
    "git -c alias.st=x status",
    "GIT_DIR=x git reset",
    "X=/bin/ls rm -rf src",
    "find . | xargs -a cat rm",
    "time timeout 5 git checkout .",
    "git stash pop",
    "git commit -am x",
    "git diff --output=src/app/config.py",
    "git fetch --upload-pack=x o",
    "hg update",
    "jj undo",
    "svn update",
    "grep -rl foo src | xargs sed -i s/a/b/",
    "grep -rl foo src | xargs -n 1 rm",
    "find src -name '*.py' -exec sed -i s/a/b/ {} +",
    "find . -delete",
    "sed -i s/a/b/ $(git ls-files)",
    "sed -i s/a/b/ `git ls-files`",
    'sed -i s/a/b/ "$FILE"',
    "sed -i s/a/b/ src/app/*",
    "sed -i s/a/b/ src/app/conf{ig,}.py",
    "sed -n 'w src/app/config.py' x",
    "sed -n '1,5w src/app/config.py' x",
    "sed 's/a/b/w src/app/config.py' x",
    "sed s/a/b/e x",
    '"sed" -i s/a/b/ src/app/config.py',
    "perl -pi -e s/a/b/ src/app/conf*.py",
    "cd src/app && for f in $(ls); do sed -i s/a/b/ $f; done",
    "patch -p1 < fix.diff",
    "unzip -o new.zip",
    "tar xzf new.tgz",
    "rsync -a ../fresh/ ./",
    "cp -r ../fresh/src .",
    "cp ../config.py .",
    "cp a/config.py src/app",
    "mv new src",
    "mv src old",
    "mv -t src/app x",
    "rm -rf src",
    "cargo fix",
    "cargo clippy --fix",
    "eslint src --fix",
    "eslint --fi\\\nx .",
    "ruff check src --fix",
    "ruff format .",
    "npm run lint:fix",
    "make generate",
    "bash fix_all.sh",
    "python scripts/codemod.py",
    "python -c 'print(1)'",
    "python - <<'E'\nopen(1)\nE",
    "jest -u",
    "UPDATE=1 pytest",
    "pytest --inline-snapshot=fix",
    "rg --pre ./x foo",
    "rg {--pre,./x} foo",
    "sort -o src/app/config.py x",
    "uniq a src/app/config.py",
    "eval git checkout .",
    "sudo git checkout .",
    "env git checkout .",
    "time git checkout .",
    "timeout 5 git checkout .",
    "./ls",
    "ls | sh",
    "ls & git checkout .",
    "ls || { git checkout . ; }",
    "ls\ngit checkout .",
    "ls # x\ngit checkout .",
    "ls \\\n && git checkout .",
    "ls 2>&1#x\ngit checkout .",
    "echo $(git checkout .)",
    'echo "$(git checkout .)"',
    "cat <(git checkout .)",
    "cat <<EOF\n$(git checkout .)\nEOF",
    "cat <<'E'\nE \nE\ngit checkout .",
    "cat <<E-x\nE\nrm -rf src\nE-x",
    "cat <<'E'\nnever ended",
    "echo '<<A\nx'; rm -rf src",
    "echo 'never closed",
    'echo "<<A"\nrm src/app/config.py\nA',
    "tee src/app/config.py",
    "ls | tee -a src/app/config.py",
    "touch src/app/config.py",
    "cat < x > src/app/config.py",
    "echo hi >src/app/config.py",
    "echo hi>>src/app/config.py",
    "echo hi >| src/app/config.py",
    'echo hi > "$F"',
    "2>src/app/config.py ls",
    "ls >&src/app/config.py",
    "pytest --junitxml=src/app/config.py",
    "pytest --force-regen",
    "pytest --regen-all",
    "pytest --log-file=x",
    "pytest --cov-report=json:x --cov",
    "pytest --cov-report xml --cov=src",
    "pytest --benchmark-json=x",
    "pytest -o log_file=x",
    "pytest @options",
    "mypy --junit-xml x src",
    "mypy --html-report x src",
    "mypy @options",
    "pyright --createstub x",
    "pylint --output-format=text:x src",
    "eslint --init",
    "jest",
    "jest --ci",
    "tsc --noEmit false",
    "tsc -p . --noEmit --outFile x",
    "vitest run",
    "mocha -R json -O output=x",
    "phpunit --log-junit x",
    "rspec -o x",
    "go test -coverprofile=x ./...",
    "go test ./... -update",
    "go vet -vettool=x",
    "go build -o x",
    "cargo test -- --bless",
    "ruff check --config 'fix = true'",
    "ruff check --add-noqa",
    "file -C -m x",
    "git diff --outp=x",
    "git grep -Ovi x",
    "mv -b a b",
    "uniq - src/app/config.py",
    "uniq <<<x src/app/*",
    "ruff check *",
    "ls >&2src/app/config.py",
    "bin/test",
    "./bin/check",
    "scripts/bin/ls",
    "ls &>src/app/config.py",
    "ls() { rm -rf src; }; ls",
)


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_that_is_not_known_to_look_may_have_changed_a_file(command: str) -> None:
    """Other states of a repository, hidden words, archives, formatters, redirections, and whatever cannot be read to its end."""
    assert reach_of_command(command).has(FILE)


LOOKS = (
    "cat src/app/config.py | head -5; grep -n x src/app/config.py",
    "wc -l < src/app/config.py",
    "ls -la src/ 2>/dev/null || echo none",
    "pytest -q tests/test_b.py 2>&1 | tail -20",
    "pytest tests -x -q --timeout=60 -k 'not update'",
    "PYTHONPATH=src .venv/bin/pytest -q",
    "python -m pytest tests -x",
    "timeout 60 pytest -q",
    ".venv/bin/python -m pytest -q",
    "time timeout 60 .venv/bin/pytest -q",
    "PYTHONPATH=src timeout 60 python -m pytest -q",
    "find . | xargs -0 -n1 -I {} cat {}",
    "go test ./... -run TestHeron -count=1 -v",
    "pytest --lf -xvs --tb=short -k 'not slow' --cov=src --cov-report=term-missing:skip-covered",
    "mypy --strict src",
    "git log --oneline -n5 --stat -- src",
    "git show HEAD~1 --name-only --format=%h",
    "git rev-parse --abbrev-ref HEAD",
    "git branch -vv && git status -sb --porcelain",
    "rg -n '@given' tests -C2",
    "shellcheck -x run",
    "go test ./...",
    "ruff check src --output-format=concise",
    "mypy src",
    "tsc --noEmit -p .",
    "git status && git diff",
    "git -C /repo log --oneline -5",
    "cd /repo && git --no-pager diff HEAD~1 -- a.py",
    "git stash list",
    "find . -name '*.py' -type f -not -path './n/*' | head",
    "find . -name x | xargs grep -n foo",
    "rg -n 'foo|bar' src --type py -g '!x'",
    'grep -rn "foo(" src | grep -v "^x$" | wc -l',
    "sed -n '1,40p' src/app/config.py",
    "sed 's/^/  /' x | sed -n '/a/,/b/p'",
    "ls -1 | sort | uniq -c | sort -rn",
    "jq '.a | .b' x.json",
    "# look\nls",
    "ls # git checkout .",
    'echo done; echo "exit: $?"',
    "set -euo pipefail; ls",
    "[ -f x ] && cat x",
    "tail -f log & sleep 1",
    "cat <<EOF\nhi\nEOF",
    "echo a \\\n  b",
)

OTHERS = (
    "cat > tests/test_b.py <<'EOF'\nimport os; print($x)\nEOF\npytest -q",
    "pytest -q | tee out.log",
    "echo hi > other.txt",
    "cargo test -- --nocapture",
    "cargo clippy --all-targets -- -D warnings",
    "sed -i 's/a/b/' other.py",
    "rm -f other.py",
    "rm -rf build",
    "mv a.txt b.txt",
    "cp a.txt b.txt",
    "mkdir -p build && touch build/x",
)


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_that_only_looks_changed_nothing(command: str) -> None:
    """Readers, searches, states that are asked for, runners of tests and checkers, with joints, quotes and redirections to nowhere."""
    assert reach_of_command(command) == Reach()


@pytest.mark.parametrize("command", OTHERS)
def test_a_command_that_writes_what_it_names_changed_nothing_else(command: str) -> None:
    """A file of another name is what it was; of one by a relative path nobody knows in which folder it is, so where folders go it may go."""
    reach = reach_of_command(command)
    assert not reach.has(FILE)
    assert reach.has("src/config.py") == bool(reach.folders)


CALLS: tuple[tuple[str, dict[str, object], bool], ...] = (
    ("terminal", {"input": "git checkout ."}, True),
    ("apply_diff", {"path": FILE, "diff": "x"}, True),
    ("apply_diff", {"path": "b.py", "diff": "x"}, False),
    ("apply_diff", {"args": {"file": [{"path": FILE}]}}, True),
    ("apply_code", {"path": FILE, "code": "x"}, True),
    ("code_apply", {"target_file": FILE}, True),
    ("multi_apply", {"path": FILE}, True),
    ("str", {"path": FILE}, True),
    ("grep", {"path": FILE, "pattern": "x", "replace": "y"}, True),
    ("search", {"query": "x", "output": FILE}, True),
    ("fetch", {"url": "x", "path": FILE}, True),
    ("get_file", {"url": "x", "path": FILE}, True),
    ("git", {"cmd": "diff", "path": FILE}, True),
    ("bash", {"command": "ls", "stdin": "x"}, True),
    ("bash", {"command": "ls", "description": "look", "timeout": 5}, False),
    ("shell", {"command": ["bash", "-c", "rm -rf src", "ls"]}, True),
    ("shell", {"command": ["python", "-c", "true"]}, True),
    ("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y", "also": FILE}, True),
    ("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y", "replace_all": False}, False),
    ("str_replace_editor", {"command": ["view"], "path": FILE}, True),
    ("apply_patch", {"path": "b.py", "patch": "+++ src/app/config.py\n"}, True),
    ("apply_patch", {"input": "*** Update File: b.py\n" + "+x\n" * 9_000 + "*** Update File: src/app/config.py"}, True),
    ("read_file", {"path": "b.py", "untold": 1}, True),
    ("read_file", {"path": "b.py", "to": FILE}, True),
    ("edit", {"path": "b.py", "to": FILE}, True),
    ("replace", {"file_path": "b.py", "old_string": "x", "new_string": "y", "instruction": "mend"}, False),
    ("insert_edit_into_file", {"filePath": "b.py", "code": "x", "explanation": "mend"}, False),
    ("edit", {"filePath": "b.py", "oldString": "x", "newString": "y"}, False),
    ("run_shell_command", {"command": "ls", "directory": "src"}, False),
    ("read_file", {"args": {"file": [{"path": "b.py", "lineRanges": ["1-5"]}]}}, False),
    ("terminal", {"commands": "git checkout ."}, True),
    ("bash", {"code": "git checkout ."}, True),
    ("bash", {"command": "git checkout ."}, True),
    ("exec_command", {"cmd": "git checkout ."}, True),
    ("shell", {"command": ["bash", "-lc", "git checkout ."]}, True),
    ("shell", {"command": ["bash", "-lc", "git status"]}, False),
    ("python", {"code": "open('src/app/' + n, 'w')"}, True),
    ("(code)", {"input": "git checkout ."}, True),
    ("write_stdin", {"chars": "git checkout .\n"}, True),
    ("Task", {"prompt": "refactor all"}, True),
    ("git_checkout", {"repo_path": "/repo", "branch": "main"}, True),
    ("git_status", {"repo_path": "/repo"}, False),
    ("format_code", {"path": "src"}, True),
    ("rename_symbol", {"path": "x.py", "new_name": "y"}, True),
    ("replace_in_files", {"path": "src", "pattern": "x"}, True),
    ("move_file", {"source": "a", "destination": "b"}, True),
    ("read_and_fix_file", {"path": "x"}, True),
    ("edit", {"start": 1, "end": 2, "text": "x"}, True),
    ("edit_file", {"path": "x.py", "new_path": "src/app/config.py"}, True),
    ("MultiEdit", {"file_path": "x.py", "edits": [{"file_path": FILE}]}, True),
    ("MultiEdit", {"file_path": "x.py", "edits": [{"old_string": "x", "new_string": "y"}]}, False),
    ("apply_patch", {"input": "*** Update File: src/app/config.py"}, True),
    ("apply_patch", {"input": "*** Update File: b.py"}, False),
    ("Read", {"file_path": "src/app/config.py"}, False),
    ("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y"}, False),
    ("NotebookEdit", {"notebook_path": "b.ipynb", "new_source": "x"}, False),
    ("delete_file", {"target_file": "b.py"}, False),
    ("write_file", {"path": "b.py", "content": "x"}, False),
    ("str_replace_based_edit_tool", {"command": "view", "path": "src"}, False),
    ("str_replace_based_edit_tool", {"command": "str_replace", "path": "b.py"}, False),
    ("mcp__fs__read_text_file", {"path": "b"}, False),
    ("functions.read_file", {"path": "b"}, False),
    ("TodoWrite", {"todos": []}, False),
    ("update_plan", {"plan": []}, False),
    ("Glob", {"pattern": "*"}, False),
    ("Grep", {"pattern": "x"}, False),
    ("LS", {"path": "."}, False),
    ("list_dir", {"path": "."}, False),
    ("codebase_search", {"query": "x"}, False),
    ("WebFetch", {"url": "x"}, False),
)


@pytest.mark.parametrize(("name", "args", "changed"), CALLS, ids=[f"{name} {args}"[:100] for name, args, _ in CALLS])
def test_a_tool_that_is_not_known_may_have_changed_a_file(name: str, args: dict[str, object], *, changed: bool) -> None:
    """Under whatever argument a command goes, whoever the work is handed to; a known one looks, or edits what it names."""
    call = ToolCallContent(id="1", name=name, args=args)
    assert reach_of(call, deed(call)).has(FILE) == changed


@pytest.mark.parametrize(
    "part", ["a ", "'", '"', "\\\n", "$", "<<E\n", "> a ", "{a,", "echo a; ", "sed s/a/b/ x;", "# a\n", "time "]
)
def test_a_long_command_is_read_once(part: str) -> None:
    """Forty thousand characters of one thing take a moment, whatever it is."""
    reach_of_command(f"{part * (40_000 // len(part))}ls")
    reach_of_command(f"ls {part * (40_000 // len(part))}")
    for mark in ("<bash-input>", "</bash-input>", "<bash-input>ls</bash-input>"):
        reach_of_words(mark * 10_000 + part * 10_000)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("<bash-input>git checkout .</bash-input>", True),
        ("<bash-input>ls</bash-input>", False),
        ("<bash-input>rm src/app/config.py</bash-input>", True),
        ("<bash-input>never ended", True),
        ("<bash-input>ls</bash-input><bash-input>make</bash-input>", True),
        ("<bash-input>ls <bash-input>git stash</bash-input>", True),
        ("\u8bf7\u4fee\u6539config.py\u6587\u4ef6", True),
        ("<command-name>/format</command-name>", True),
        ("<system-reminder>Note: /repo/src/app/config.py was modified by a linter.</system-reminder>", True),
        ("<system-reminder>The list of tasks is empty.</system-reminder>", False),
        ("I put config.py back.", True),
        ("Please go on.", False),
    ],
)
def test_what_a_user_says_may_tell_of_a_file(text: str, *, changed: bool) -> None:
    """What he ran himself reaches what its command does, what he names is taken for changed, and so is all behind a mark that is not known."""
    assert reach_of_words(text).has(FILE) == changed
