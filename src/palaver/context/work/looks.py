"""Commands that look, with the options of which that is known. A command or an option that is not here is not known.

Sources: POSIX (Shell and Utilities), and the manuals of GNU coreutils 9, findutils 4.10, git 2.47, ripgrep 14, pytest 9, mypy 2, ruff 0.17, cargo 1.90 and go 1.25.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from palaver.context.work.naming import words_of

__all__ = ["LOOK", "LOOKS_BY", "cargo_builds", "is_explicit", "sed_shows"]

LOOK = words_of(
    "[ basename cat cd cmp column comm cut df diff dirname du echo egrep false fgrep grep head id jq ls md5sum "
    "mkdir nl od printenv printf ps pwd readlink realpath rmdir seq sha1sum sha256sum shellcheck sleep stat tac tail test tr "
    "true type uname wait wc which whoami"
)
"""Commands that change no file, whatever they are given; `mkdir` and `rmdir` concern empty folders."""

_EXPLICIT = re.compile(
    r"(?:\d+|\$|/[^/\\]*/)?(?:,(?:\+?\d+|\$|/[^/\\]*/))?"
    r"(?:[pdq=]|s([/|,#])(?:(?!\1)[^\\]|\\[^\n])*\1(?:(?!\1)[^\\]|\\[^\n])*\1[gpI\d]*)?"
)
"""A step of sed that writes no file and runs nothing: which lines, and to print, delete or put one thing for another (POSIX sed)."""

_GIT_LOOKS = words_of(
    "add blame branch cat-file count-objects describe diff diff-tree fetch for-each-ref grep log ls-files ls-remote "
    "ls-tree merge-base name-rev reflog rev-list rev-parse shortlog show show-ref status tag version whatchanged"
)
"""What git does without changing a file of the work tree (git 2.47 manual); the index, references and objects are none."""

_GIT_ALONE = words_of("--no-pager -P --no-optional-locks --literal-pathspecs")
_GIT_PARTS = frozenset({("stash", "list"), ("stash", "show"), ("worktree", "list"), ("config", "--get")})


_Looks: TypeAlias = Callable[[Sequence[str]], bool]


def _with(options: str, *, unlike: str = "-") -> _Looks:
    """Make the question whether a command is given nothing but known options, and words that are none.

    Args:
        options: A pattern of the words that begin with a dash, whole. The value of an option that stands by itself is a word.
        unlike: How words do not begin that are no options; behind `@` stands a file of options for some.
    """
    known = re.compile(rf"-{{0,2}}|[^{unlike}].*|{options}", re.DOTALL)
    return lambda words: all(map(known.fullmatch, words))


def _one_of(commands: Mapping[str, str]) -> _Looks:
    """Make the same question for a command whose first word says which of several it is."""
    known = {name: _with(options) for names, options in commands.items() for name in names.split()}
    return lambda words: bool(words) and words[0] in known and known[words[0]](words[1:])


def _git(words: Sequence[str]) -> bool:
    """Tell whether git only looks: an option in front may name a folder, and not set what it runs."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        if words[place] == "-C":
            place += 1
        elif words[place] not in _GIT_ALONE and not words[place].startswith(("--git-dir=", "--work-tree=")):
            return False
        place += 1
    rest = words[place:]
    known = bool(rest) and (rest[0] in _GIT_LOOKS or tuple(rest[:2]) in _GIT_PARTS)
    return known and not any("::" in word for word in rest) and _GIT_OPTIONS(rest)


_GIT_OPTIONS = _with(
    r"-[0-9]+|-[abcdehilmnopqrstuvwzACDEFMPRW]+|-[nULSGCMu].*|-uall|-uno|--(?:abbrev|abbrev-ref|abbrev-commit|all|always|author|before|after|branch|branches|cached"
    r"|check|cherry-pick|cherry-mark|color|contains|count|date|date-order|decorate|diff-algorithm|depth|diff-filter|dirty|dry-run|extended-regexp|files-with-matches|fixed-strings|full-name|error-unmatch|exclude-standard"
    r"|exit-code|first-parent|find-renames|follow|format|full-history|full-index|function-context|get|git-dir|graph|grep|heads|histogram|ignored"
    r"|ignore-all-space|ignore-blank-lines|ignore-case|ignore-space-change|is-inside-work-tree|left-only|left-right|line-number|list|local|log-size"
    r"|max-count|max-depth|merge-base|merged|merges|minimal|name-only|name-status|no-abbrev|no-color|no-decorate|no-ext-diff|no-merged|no-merges"
    r"|no-patch|no-pager|no-prefix|no-renames|no-textconv|no-tags|no-walk|no-index|not|numstat|objects|oneline|others|patch|patch-with-stat|patience|pickaxe-regex|points-at"
    r"|porcelain|pretty|prune|quiet|raw|refs|relative|remotes|reverse|right-only|root|short|shortstat|show-current|show-stash|show-superproject-working-tree"
    r"|show-toplevel|show-prefix|show-cdup|since|skip|sort|source|stage|staged|stat|summary|symbolic-full-name|tags|topo-order|unified|unmerged"
    r"|unshallow|untracked|untracked-files|until|update|verbose|verify|version|word-diff|word-regexp)(?:=.*)?"
)
"""Options of what git is asked for, spelt out; a shorter spelling is not known (git 2.47 manual)."""


def sed_shows(words: Sequence[str]) -> bool:
    """Tell whether sed only shows: plain options, and steps that write nothing."""
    options = {word for word in words if word.startswith("-") and word != "-"}
    rest = [word for word in words if word not in options]
    return options <= {"-n", "-E", "-r", "-s", "-u"} and bool(rest) and is_explicit(rest[0])


def is_explicit(script: str) -> bool:
    """Tell whether each step of a script of sed only changes what is shown."""
    steps = [script] if _EXPLICIT.fullmatch(script.strip()) else re.split(r"[;\n]", script)
    return bool(script) and all(_EXPLICIT.fullmatch(step.strip()) for step in steps)


_PYTEST = _with(
    r"-[qvxsl]*(?:[knmprW].*)?|--cov-report=term[a-z:-]*|--(?:asyncio-mode|benchmark-disable|benchmark-only|benchmark-skip|capture|co|collect-only|color|cov|cov-branch|cov-fail-under"
    r"|deselect|disable-warnings|dist|doctest-modules|durations|durations-min|exitfirst|failed-first|ff"
    r"|forked|full-trace|ignore|ignore-glob|import-mode|last-failed|lf|maxfail|new-first|nf|no-cov|no-header|no-summary|numprocesses|quiet|randomly-seed"
    r"|reruns|rootdir|runxfail|setup-show|showlocals|stepwise|strict|strict-config|strict-markers|sw|tb|timeout|timeout-method|verbose|verbosity)"
    r"(?:=.*)?",
    unlike="-@",
)
_GO = (
    r"--?(?:bench|benchmem|benchtime|count|cover|covermode|cpu|failfast|json|list|n|p|parallel|race|run|short|shuffle|skip|tags|timeout|v|vet|x)"
    r"(?:=.*)?"
)
_CARGO = (
    r"-[qvr]+|-[pjDWAF].*|--(?:all|all-features|all-targets|benches|bin|bins|color|doc|exact|example|examples|features|frozen|ignored|include-ignored"
    r"|jobs|keep-going|lib|locked|manifest-path|message-format|no-default-features|no-deps|no-fail-fast|no-run|nocapture|no-capture|offline|package|quiet"
    r"|release|show-output|skip|target|test|test-threads|tests|verbose|workspace)(?:=.*)?"
)
_MYPY = (
    r"-[vpmc]|--(?:allow-untyped-defs|check-untyped-defs|disallow-[a-z-]+|exclude|explicit-package-bases|follow-imports|ignore-missing-imports"
    r"|namespace-packages|no-color-output|no-error-summary|no-implicit-optional|no-incremental|package|platform|pretty|python-version|show-column-numbers"
    r"|show-error-codes|show-error-context|strict|verbose|warn-[a-z-]+)(?:=.*)?"
)

_TSC = re.compile(
    r"(?:(?:(?:-p|--project) [^\s-]\S*|--(?:noEmit|noErrorTruncation|pretty|skipLibCheck|strict))(?: |\Z))*"
)
"""What checks types only; behind an option that is a switch, `false` would turn it off."""

LOOKS_BY: Mapping[str, _Looks] = {
    "git": _git,
    "find": _with(
        r"-(?:[HLPao]|[aci]?(?:min|time|newer)|[acm](?:min|time)|and|daystart|depth|empty|executable|follow|i?name|i?path|i?regex|i?wholename|links|ls|"
        r"m(?:ax|in)depth|mount|newer\w*|not|or|perm|print|print0|printf|prune|quit|readable|regextype|size|type|user|writable|xdev|xtype)"
    ),
    "fd": _with(
        r"-[0HILFagipsu]+|-[etdE].*|--(?:absolute-path|exclude|extension|full-path|glob|hidden|max-depth|no-ignore|type)(?:=.*)?"
    ),
    "rg": _with(
        r"-[0-9FHILNPSUachilnopsuvwx]*(?:[ABCTegmtM].*)?|--(?:after-context|before-context|case-sensitive|color|context|count|count-matches|files"
        r"|files-with-matches|files-without-match|fixed-strings|glob|heading|hidden|iglob|ignore-case|json|line-number|max-columns|max-count|max-depth"
        r"|multiline|multiline-dotall|no-filename|no-heading|no-ignore|no-ignore-vcs|no-line-number|no-messages|only-matching|pcre2|regexp|smart-case|sort"
        r"|stats|text|trim|type|type-list|type-not|with-filename|word-regexp)(?:=.*)?"
    ),
    "sort": _with(r"-[bcdfghimnrsuVz]*(?:[kt].*)?|--(?:numeric-sort|reverse|unique|version-sort|human-numeric-sort)"),
    "uniq": lambda words: all(re.fullmatch(r"-[cdDiuz]+", word) for word in words),  # a second file is written
    "tree": _with(r"-[adfhipsDFCJ]+|-[LIP].*|--(?:dirsfirst|noreport|gitignore|prune)"),
    "file": _with(r"-[bhiLzZ0]+|--(?:brief|mime|mime-type|mime-encoding|dereference)"),
    "date": lambda words: all(
        re.fullmatch(r"\+.*|-[uRI]\w*|--(?:utc|iso-8601|rfc-3339)(?:=\w+)?", word) for word in words
    ),
    "set": lambda words: all(re.fullmatch(r"-[eux]+|-o|-euo|pipefail", word) for word in words),
    "command": lambda words: words[:1] == ["-v"],
    # Runners of tests, and checkers: they leave caches and products behind, and no source.
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _with(r"-[vqfbc]+|-[kspt].*|--(?:verbose|quiet|failfast|buffer|catch|locals)"),
    "mocha": _with(r"-[bgt]|--(?:bail|exit|fgrep|grep|recursive|timeout)(?:=.*)?"),
    "phpunit": _with(
        r"-[v]+|--(?:colors|exclude-group|filter|group|no-coverage|stop-on-failure|stop-on-error|testdox|testsuite|verbose)(?:=.*)?"
    ),
    "rspec": _with(r"-[et].*|-f[dp]|--(?:example|fail-fast|force-color|no-color|seed|tag)(?:=.*)?"),
    "mypy": _with(_MYPY, unlike="-@"),
    "pyright": _with(
        r"-[pv]|--(?:level|outputjson|project|pythonpath|pythonplatform|pythonversion|skipunannotated|stats|warnings)(?:=.*)?"
    ),
    "flake8": _with(
        r"-[qv]+|-j.*|--(?:count|exclude|extend-ignore|extend-select|ignore|jobs|max-complexity|max-line-length|select|show-source|statistics)(?:=.*)?"
    ),
    "pylint": _with(
        r"-E|-[rsj].*|--output-format=\w+|--(?:disable|enable|errors-only|ignore|jobs|max-line-length|reports|score)(?:=.*)?"
    ),
    "eslint": _with(
        r"--(?:color|ext|ignore-pattern|max-warnings|no-color|no-error-on-unmatched-pattern|no-eslintrc|quiet)(?:=.*)?"
    ),
    "tsc": lambda words: "--noEmit" in words and _TSC.fullmatch(" ".join(words)) is not None,
    "ruff": _one_of(
        {
            "check": r"-[qvns]+|--(?:diff|exclude|extend-ignore|extend-select|ignore|isolated|line-length|no-cache|no-fix|output-format|preview"
            r"|quiet|select|show-files|statistics|target-version)(?:=.*)?"
        }
    ),
    "go": _one_of({"test vet build": _GO}),
}

cargo_builds = _one_of({"test check clippy build bench nextest": _CARGO})
"""Whether cargo builds, tests or checks; what it writes beside products are the versions it settled, in `Cargo.lock`."""
