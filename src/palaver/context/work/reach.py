"""Which files a call may have changed: none, where it is known to look; those that it names, where it is known to edit; else any.

It is asked where something is told as what a file says: rather too many files are taken for changed than one too few.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from palaver.context.work.deeds import LOOKS, Deed, command_of
from palaver.context.work.naming import arguments, folded, own_name, verb_of, words_in, words_of
from palaver.context.work.paths import absolute, normal
from palaver.context.work.shell import changed_by
from palaver.context.work.shown import PARTS, PATHS, SAYINGS, is_file
from palaver.messages import ToolCallContent

__all__ = ["ANYTHING", "NOTHING", "Reach", "reach_of", "reach_of_command", "reach_of_words"]

_LOOKS = words_of(
    "blame cat check count diagnostics diff exists find get glob grep head info list look ls outline peek read "
    "readfile scroll search show stat status tail tree view viewfile"
)
"""Words of tools that look."""

_EDITS = words_of(
    "append apply create delete edit editor insert multi patch remove replace str undo update write writefile"
)
"""Words of tools that change the file they name, and no other."""

_OF = words_of(
    "a and at base based block by cell class code content contents doc docs document documentation entry file "
    "from fs function id image in into item line lines local log mcp method name notebook of page pages path "
    "range result results semantic string structure text the to tool url web"
)
"""Words beside them that say of what."""

_FAR = words_of(
    "all codebase dir directories directory files filesystem folder git items many multiple names paths project "
    "references repo several symbol symbols tree workspace"
)
"""Such words of tools that may change more than one file, where they change any."""

_WHERE = PATHS | words_of(
    "args cwd dir directories directory directorypath dirpath files folder name paths relativeworkspacepath repo "
    "repopath repository root rootpath searchdirectory searchpath targetdirectory uri uris"
)
"""Arguments of tools that look, folded: where they look;"""

_WHAT = words_of(
    "1 a aftercontext b beforecontext branch c caseinsensitive casesensitive commit context contextlines count "
    "depth exclude excludepattern filepattern filetype glob globpattern headlimit hidden i ignore ignorecase "
    "include includebody includepattern keyword keywords l language literal maxdepth maxresults multiline n "
    "namepath outputmode owner pattern patterns queries query recursive ref regex regexp rev revision sha "
    "showhidden sortby symbol symbolname type"
)
"""and for what, in which state of a repository, and how it is told."""

_EDITED = words_of(
    "allowmultiple append cellid celltype changes code codeedit codemarkdownlanguage command content contents "
    "createdirectories createdirs data diff dryrun editmode edits encoding expectedreplacements filetext "
    "ignorecase input insertline instruction instructions linecount lineno mode new newcontent newsource newstr "
    "newstring newtext old oldcontent oldstr oldstring oldtext overwrite patch replace replaceall replacement "
    "replacementchunks replacementcontent replacements search summary targetcontent text useregex"
)
"""Arguments of tools that change a file, folded: what of it, and into what."""

_ELSEWHERE = words_of(
    "askfollowupquestion askuser askuserquestion attemptcompletion enterplanmode exitplanmode finalanswer finish "
    "recall sequentialthinking submit think todoread todowrite updateplan updatetodolist webfetch websearch "
    "writetodos"
)
"""Tools that have nothing to do with the files worked on: plans, questions, pages of the web, the end."""

_SHELLS = words_of(
    "bash bashtool containerexec exec execcommand execute executebash executecommand localshell runbash "
    "runcommand runinterminal runshellcommand runterminalcmd runterminalcommand sh shell terminal"
)
"""Tools, folded, that give a command to a POSIX shell;"""

_SHELLED = SAYINGS | words_of(
    "bashcommand cmd command cwd directory isbackground justification login maxoutputtokens requiresapproval "
    "requireuserapproval runinbackground sandboxpermissions timeout timeoutms timeoutseconds tty "
    "withescalatedpermissions workdir workingdir workingdirectory yieldtimems"
)
"""and their arguments that do not change what it does."""

_UNKNOWN_HEAD = re.compile(r"^\+\+\+ (?!b/)", re.MULTILINE)
"""The head of a file in a patch that names it otherwise than `+++ b/`."""

_REMEMBERED = 4_096
_SAID = 256
"""Messages of a user of which it is remembered what they reach."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Which files something may have changed.

    Attributes:
        everything: Whether it may be any file.
        names: The last parts of the paths that it names.
        folders: Last parts of paths that may be folders: any file in them may be changed.
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @property
    def far(self) -> bool:
        """Whether it reaches files that it does not name."""
        return self.everything or bool(self.folders)

    def has(self, path: str) -> bool:
        """Tell whether a file, by its normal path, is among them. One with a relative path may be in any folder."""
        if self.everything or (self.folders and not absolute(path)):
            return True
        *_, name = parts = [part.strip() for part in path.split("/")]  # as `normal` gives them alone
        return name in self.names or not self.folders.isdisjoint(parts)


NOTHING = Reach()
ANYTHING = Reach(everything=True)


def reach_of(call: ToolCallContent, deed: Deed) -> Reach:
    """Tell which files a call may have changed.

    Args:
        call: The call.
        deed: What it did, as far as its name and arguments say.
    """
    command = command_of(call)
    if command:
        return reach_of_command(command) if _asks_shell(call) else ANYTHING
    if _edits(call, deed):
        if any(map(_ODD.search, deed.wrote)):
            return ANYTHING
        folders = tuple(path for path in deed.wrote if not is_file(path)) if _takes_folders(call) else ()
        return Reach(names=_names(deed.wrote), folders=_names(folders))
    return NOTHING if _only_looks(call) else ANYTHING


_ODD = re.compile(r"[*?{}\[\]#]|:\d")
"""What is in a path that names several files, or a place in one."""

_WITH_FOLDERS = words_of("delete move remove rename replace search undo")
"""Words of tools that may take a folder, and change what is in it."""


def _takes_folders(call: ToolCallContent) -> bool:
    verb = verb_of(call)
    return bool((words_in(call.name) if verb is None else words_in(verb)) & _WITH_FOLDERS)


@lru_cache(_REMEMBERED)
def reach_of_command(command: str) -> Reach:
    """Tell which files a shell command may have changed."""
    changed = changed_by(command)
    return ANYTHING if changed is None else Reach(names=_names(changed.files), folders=_names(changed.folders))


_RAN, _RAN_END = "<bash-input>", "</bash-input>"
"""Between them stands what the user ran himself, as Claude Code writes it down."""

_TAG = re.compile(r"\s*<([A-Za-z][\w-]*)")
_TELLS = frozenset(
    {
        "bash-input",
        "bash-stderr",
        "bash-stdout",
        "environment_context",
        "environment_details",
        "local-command-caveat",
        "local-command-stdout",
        "permissions",
        "pr_description",
        "system-reminder",
        "uploaded_files",
        "user_instructions",
    }
)
"""Marks with which a harness begins what it says in the user's place, where that tells of nothing that was done."""

_DID = re.compile(
    r"\b(?:i|we)(?:['\u2019]ve| have| had)?(?: (?:also|already|just|now|then))? "
    r"(?:applied|changed|checked out|cherry-picked|committed|copied|deleted|did|done|edited|fixed|formatted|generated|installed|made|merged|moved|patched|pulled|put|ran|rebased|"
    r"reformatted|regenerated|removed|renamed|replaced|reset|restored|reverted|rewrote|rewritten|run|stashed|switched|undid|undone|updated|upgraded|wrote|written)\b"
    r"|^(?:fixed|merged|pulled|ran|rebased|reformatted|replaced|restored|reverted|undid|updated)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What a user says who changed something himself, and may not say which files."""

_NAMES = (re.compile(r"[^\s/\\`'\"<>(),;:|*]+"), re.compile(r"[A-Za-z0-9_.@+~-]+"))
"""Names of files in what a user says; the second one, where he writes without blanks."""


@lru_cache(_SAID)
def reach_of_words(text: str) -> Reach:
    """Tell which files a user may have changed who says something: those that he names, and what commands reach that he ran; any, where he says that he did.

    What a harness says in his place, in a mark of its own, may stand for anything, unless the mark is known.
    """
    if _DID.search(text):
        return ANYTHING
    tag = _TAG.match(text)
    _, *ran = text.split(_RAN)
    if (tag and tag[1] not in _TELLS) or any(_RAN_END not in command for command in ran):
        return ANYTHING
    reached = [reach_of_command(command.partition(_RAN_END)[0].strip()) for command in ran]
    if any(each.far for each in reached):
        return ANYTHING
    named = _names(tuple({name.rstrip(".!?") for pattern in _NAMES for name in pattern.findall(text)}))
    return Reach(names=named.union(*(each.names for each in reached)))


def _names(paths: tuple[str, ...]) -> frozenset[str]:
    return frozenset(posixpath.basename(normal(path)).strip() for path in paths)


def _asks_shell(call: ToolCallContent) -> bool:
    """Tell whether a call gives a command to a shell, and nothing else that is not known."""
    return folded(own_name(call.name)) in _SHELLS and all(name in _SHELLED for name, _ in arguments(call))


def _edits(call: ToolCallContent, deed: Deed) -> bool:
    """Tell whether a call changes the files that it names, and no other."""
    words = words_in(call.name)
    if not deed.wrote or not words & _EDITS or not words <= (_EDITS | _LOOKS | _OF):
        return False
    return all(name in PATHS or _is_edit(name, value) for name, value in arguments(call))


def _is_edit(name: str, value: object) -> bool:
    """Tell whether an argument says nothing but what of the file becomes what."""
    if not (name in _EDITED or name in SAYINGS or PARTS.fullmatch(name)):
        return False
    if isinstance(value, list | tuple):
        return all(_is_edit(name, each) for each in value)
    if isinstance(value, Mapping):
        return all(_is_edit(folded(str(part)), each) for part, each in value.items())
    return not (isinstance(value, str) and _UNKNOWN_HEAD.search(value))


def _only_looks(call: ToolCallContent) -> bool:
    """Tell whether a tool is known to change no file; one for several things looks where its `command` says so."""
    if folded(own_name(call.name)) in _ELSEWHERE:
        return True
    words, verb = words_in(call.name), verb_of(call)
    if verb is None:
        named = words <= (_LOOKS | _OF | _FAR) and bool(words & _LOOKS or words == {"git", "log"})
    else:
        named = verb in LOOKS and words <= (_LOOKS | _OF | _EDITS)
    return named and all(name == "command" or _is_look(name, value) for name, value in arguments(call))


def _is_look(name: str, value: object) -> bool:
    """Tell whether an argument says nothing but where to look, and for what."""
    if not (name in _WHERE or name in _WHAT or name in SAYINGS or PARTS.fullmatch(name)):
        return False
    if isinstance(value, list | tuple):
        return all(_is_look(name, each) for each in value)
    return not isinstance(value, Mapping) or all(_is_look(folded(str(part)), each) for part, each in value.items())
