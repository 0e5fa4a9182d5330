"""Sentences as people type them to agents: those that state a constraint, and those that do not.

Written for this set, in the manner of what users write; no recorded word is among them. Where the line is, docs/memory.md says: a constraint says how things
are to be done or left, until it is taken back; a request is done once, and a report, a question or a quotation asks for nothing. The last sentences of each kind were
written when the finder was done.
"""

# ruff: noqa: RUF001 - sentences in several languages

__all__ = ["NO_RULES", "NO_RULES_AFTERWARDS", "RULES", "RULES_AFTERWARDS"]

RULES = """\
Use tabs
use tabs not spaces
tabs, not spaces
No emojis.
no comments in the code pls
no semicolons
prefer async
Prefer composition over inheritance.
keep it under 100 lines
Keep functions short.
keep the diff small
keep it simple
don't touch the tests
dont touch the migrations
do not rename public functions
stick to Python 3.9
stick with the standard library
ask me before pushing
ask before you delete anything
check with me before changing the schema
never force push
never commit directly to main
always run the tests before committing
Always answer in English.
only standard library
stdlib only
English only please
python 3.9 only
TypeScript, not JavaScript
pytest, not unittest
snake_case everywhere
camelCase for functions
double quotes everywhere
2 spaces for indentation
4 space indent
max 80 columns
max line length 100
at most 3 retries
no more than 5 files
no new dependencies
no external packages
no inline styles
no `any` types
No abbreviations in variable names.
no AI attribution in commit messages
without third party libraries
avoid regex if possible
avoid global state
don't use print, use logging
use logging instead of print
use uv instead of pip
use pathlib, not os.path
Use British spelling.
use conventional commits
use type hints everywhere
write everything in German
reply in French
answer briefly
be concise
be brief, I'm on mobile
don't explain, just code
just give me the code, no explanations
don't apologize
stop using emojis
stop adding comments to my code
leave the config alone
leave package.json as it is
hands off the vendor folder
the vendor directory is off limits
src/legacy is read-only
the API must stay backwards compatible
It has to work offline.
this needs to run on Windows too
must work on python 3.8
should be under 50ms
the response time cannot exceed 200 ms
The budget is 500 dollars, not more.
my budget is 300 EUR max
I can't spend more than $1,200.
I only want a direct flight.
I don't want a window seat.
I'm allergic to peanuts, so nothing with nuts.
I'd prefer morning flights.
I want you to ask me before every purchase.
I need you to confirm with me before you book anything.
please don't use my real name anywhere
please keep all dates in ISO format
please no markdown
pls use metric units
make sure every function has a docstring
make sure not to break the public API
make sure you never log the token
remember to update the changelog every time
remember: no network calls in tests
from now on, write tests first
from now on commit after each step
going forward, use the new client
every PR needs a changelog entry
each function gets a test
all SQL goes through the repository layer
tests go in tests/unit
new files belong in src/app
commit messages in imperative mood
one commit per change
one class per file
we don't use ORMs here
we use black with line length 88
we support Node 16, so no top-level await
We never deploy on Fridays.
our style is functional, no classes
it's important that nothing is logged
under no circumstances delete data
whatever you do, don't drop the table
you may not access the internet
you are not allowed to modify the lock file
you can only edit files under src/
only edit src/app.py
only touch what is necessary
change nothing else
nothing else should change
do this without changing the API
refactor it but keep the public interface
add the cache, but don't touch the tests
Fix the bug. No refactoring.
Write it in Rust, no unsafe.
implement it with asyncio, no threads
can you please not reformat the file
could you avoid one letter variables
Can you always show me the diff first?
the deadline is Friday and it must not slip
treat warnings as errors
follow PEP 8
follow the existing code style
respect the .editorconfig
stay within the src folder
limit yourself to the backend
do not make assumptions, ask
If you are unsure, ask me.
if a test fails, stop and tell me
when you are done with a step, wait for my ok
wait for my approval before you run anything
don't run anything without asking
no pushing without my ok
no deletions without confirmation
timeouts must be configurable
Keine Kommentare im Code
Tabs statt Leerzeichen
Fass die Tests nicht an
frag mich vor dem Pushen
immer auf Deutsch antworten
nur Standardbibliothek
höchstens 100 Zeilen
bleib bei Python 3.9
keine neuen Abhängigkeiten
benutze kein jQuery
usa tabs, no espacios
sin emojis
no toques los tests
pregúntame antes de hacer push
responde siempre en español
máximo 100 líneas
pas d'emojis
utilise des tabulations, pas d'espaces
ne touche pas aux tests
demande-moi avant de pousser
réponds en français
sans dépendances externes
no modificare i test
niente emoji
sem emojis
não mexa nos testes
не трогай тесты
без эмодзи
спрашивай перед пушем
отвечай на русском
用制表符，不要用空格
不要表情符号
别动测试
推送前先问我
用中文回答
最多100行
テストは触らないで
絵文字は使わないで
日本語で答えて
이모지 쓰지 마
한국어로 답해줘
prefer const over let
Indent with tabs.
tabs please, no spaces
spaces not tabs
line endings must be LF
no trailing whitespace
no default exports
no classes, only functions
avoid nested ternaries
single quotes please
functions should not be longer than 30 lines
keep line length below 120
files under 300 lines
don't add comments
do not touch anything outside of lib/
don't install anything
please don't commit for me
don't push until I say so
never touch the prod database
never use sudo
stick to the existing naming
stay on the current branch
work only in the feature branch
only change the frontend
only use the APIs listed above
use the existing helper functions wherever possible
use SQLite, not Postgres
use the metric system
use Vue 3 with the composition API for everything
I want everything in TypeScript
everything has to be typed
all functions need type hints
every endpoint needs a test
tests must not hit the network
tests shouldn't need a database
we always squash before merging
we don't allow eval
we can't break existing clients
backwards compatibility is a must
it must stay under 1 MB
it needs to support IE11, sadly
the whole thing has to fit in memory
The total must not exceed 400 EUR.
I don't want to pay more than 50 a month
nothing over $200 please
vegetarian only please
I don't eat meat
I can only travel on weekends
I only have until Friday
only nonstop flights
no red-eye flights
aisle seat please
please call me Sam
please address me as Dr. Lee
explain things like I'm five
short answers please
keep your answers short
one question at a time
give me bullet points, not paragraphs
don't be so verbose
skip the explanations
no apologies, no filler
respond only with JSON
output only the code
always include the source
always double check the numbers
always cite your sources
ask if anything is unclear
ask me if you're not sure
don't do anything without checking with me
let me review before you commit
show me the plan before you start
don't start coding until I approve
before you change the API, ask me
after every change run the linter
run the tests after each change
commit after every task
always work on a branch, never on main
I'd rather you didn't use mocks
I would prefer if you used plain SQL
please make sure that nothing is deleted
be careful not to overwrite my notes
this is production, so no experiments
security first: never log passwords
Deutsch bitte
bitte duzen
bitte keine Emojis
immer Tests schreiben
ändere nichts an der Datenbank
nicht pushen
en español por favor
sin comentarios en el código
no uses librerías externas
pas de dépendances externes
toujours en français
不要添加注释
请用英文
回答简短一点
コメントは日本語で
Don't change the public API.
tests are off limits for you
no mocks in unit tests
no raw SQL
no force pushes ever
No more than one dependency.
please no big refactorings
use pnpm
use dataclasses where you can
use the 24 hour clock
prefer small commits
keep the README up to date
keep backwards compatibility
leave the formatting as it is
stick to the plan
only touch files in src/api
everything in English please
comments in English
variable names in English
Answer with one word.
answer in two sentences max
max 3 bullet points
at most 200 words
don't use the word "synergy"
never mention competitors
don't make things up
don't guess, ask
ask me before you run anything destructive
confirm before sending any mail
do not send anything without my approval
do not proceed until I confirm
you must not use eval
you should always validate input
the script has to run on macOS too
the image must not be larger than 200 MB
requests must time out after 5 seconds
I don't want any breaking changes
I want the code to be readable, no clever tricks
I'd like to avoid new dependencies
we only support Chrome
we never store plain passwords
our budget is limited to 1000 euros
I can't eat gluten
I prefer trains over planes
I need to be home by 6pm, no exceptions
from now on use British spelling
always explain your reasoning first
if you change a public function, update the docs too
Bitte keine neuen Bibliotheken
Schreib die Kommentare auf Englisch
Änder nichts ohne zu fragen
no uses var
n'utilise pas de bibliothèque externe
не меняй API
请不要修改配置文件
變數名稱請用英文
設定ファイルは変更しないでください
""".splitlines()
"""Constraints."""

NO_RULES = """\
add a test for x
add a test for the parser
use the file I uploaded
use this token: abc
Use the search tool to find the config
fix the bug in parser.py
run the tests
run pytest and show me the output
commit and push
push it
rename foo to bar
delete the old file
write a function that parses dates
make it faster
can you make it faster?
please refactor this module
please look at the logs
explain this function
show me the diff
continue
go on
yes
no
No, the other one.
no that's wrong
no, I meant the second file
ok
thanks!
never mind
nevermind
don't worry about it
don't worry, it works now
no worries
no problem
no idea
no luck, still failing
no change, same error
no errors now
no tests failed
no tests found
No such file or directory
only one test fails
only the first test fails
it only happens on Windows
it always crashes here
it never returns
it never worked
we don't have tests
we don't have a staging server
we use Postgres
we only have two servers
I always get a 500
I never saw this before
I don't know why
I don't understand the error
I don't think that's right
I can't log in
I can't find the file
I couldn't reproduce it
I only changed one line
I used tabs
I tried to avoid that
I should have tested it
I must have missed something
it must be a caching problem
there must be a better way
that should do it
this should work now
should I use tabs or spaces?
should we use async?
do you prefer tabs?
what should I use?
why not use async?
why don't you use async?
why does it always fail?
is it allowed to use regex here?
can I use async here?
can we use async?
how do I avoid this?
what does "never push" mean?
how many lines may it have?
which tests should I run?
do we need the cache?
did you run the tests?
have you checked the logs?
what happens when the list is empty?
tell me what you think
let me know when it is done
let's go with the second option
let's try again
sounds good
looks good to me
great, now do the same for the other file
now add the docs
next, update the README
first read the file, then fix it
then run it again
also add a changelog entry
undo the last change
revert that
stop
stop it
wait
wait, what?
hold on
try again without the cache
try it with python 3.9
open the page and click on login
download the file and unzip it
install the requirements
create a new branch
merge main into this branch
review my PR
summarize this document
translate this into German
compare the two approaches
list all files
print the first 10 lines
search for usages of foo
check if the server is up
check whether it must be sorted
find out why it never returns
see if you can avoid the second query
change the color to red
set the timeout to 30
bump the version to 2.0
replace tabs with spaces in utils.py
convert the file to tabs
move the tests to tests/unit
remove the emojis from the README
remove all comments from that file
the test uses tabs
the linter says no semicolons
the docs say you must call close()
the error says "must not be null"
the old code had no tests
the server must have crashed
the build is failing
the tests are in tests/unit
the limit is currently 100
it takes at least 5 seconds
it has at most 3 rows
there are no tests
there is no documentation
the function should return a list but returns None
the button should be blue but is red
the page must be broken
this file has 100 lines
that's not what I asked
that is not allowed by the compiler
that was at most a warning
nice, no more errors
wow, great job not breaking anything
oh sure, just delete everything, what could go wrong
"never push to main" was the rule in my last job
> don't touch the tests
ERROR: must be a string
TypeError: x must be int, not str
WARNING: do not use in production
npm WARN deprecated: use something else
fatal: you must specify a branch
- [ ] add tests
TODO: never call this
I want to book a flight
I want to cancel my order
I need a function that sorts
I need help with my order
I'd like to return the shoes
I would like to know my balance
my order number is 12345
I live in Berlin
I have two kids
I bought at least three of them
I waited more than an hour
I was not allowed to enter
I only need one more thing
I just want to understand it
Do you only ship to the US?
What is the maximum?
is there no other way?
Könntest du die Tests laufen lassen?
Warum läuft das nie?
Es gibt keine Tests
Ich habe keine Ahnung
Danke, das war alles
Füge einen Test hinzu
Schreib eine Funktion, die Daten liest
Lösche die Datei
¿por qué siempre falla?
no funciona
no entiendo el error
añade una prueba
escribe una función
je ne comprends pas
ça ne marche pas
ajoute un test
pourquoi ça plante toujours ?
non funziona
não funciona
aggiungi un test
не работает
не понимаю ошибку
почему всегда падает?
добавь тест
为什么不工作？
我不知道
不行
添加一个测试
程序不能运行
動きません
テストを追加して
안 돼요
테스트를 추가해줘
why are you using tabs?
is it ok to use tabs here?
use this one
use the second approach
use it for the login page as well
no, use the other branch
no that file
no, it is in lib/
not yet
not that one
no tests yet, I know
no output at all
no tests are running
no one answered
no further questions
it says no module named foo
there is no such table
there should be a file called notes.txt
there must be an easier way to do this
the test must be flaky
it should be fine
that should be enough
this should be easy
everything should be in place now
shouldn't this be cached?
shouldn't we test this?
we should probably look at that later
we should talk about the design
we could use Redis
we might need a lock
I only get an error on Safari
I only have one question
I never said that
I never got the mail
I always forget how this works
I can't open the page
I can't believe it works
I don't see any change
I don't have access
I don't get it
we don't know yet
we can't connect to the db
you can't be serious
you never answered my question
you only fixed half of it
you always do that
you should see a button now
you must be kidding
what must I do next?
do I need to restart?
do not worry
don't bother
don't mind the typo
don't forget the milk, haha
please continue
please fix the typo in line 3
please check why only half the rows are loaded
can you check that nothing broke?
could you please run only the failing test?
can you add a flag to disable this?
make a new branch called dev
make the text bold
make sure the server is running and try again
check that it works
remove the no-cache header
add a rule that forbids tabs
write a linter rule that disallows default exports
rename `never_used` to `used`
delete the line "always use tabs" from the README
the README says: always use tabs
the config has no effect
the flag is not allowed here
the query takes at least ten minutes
it needs at least 2 GB, right?
the max size is 5 MB at the moment
max is my colleague
only the header is missing
only happens in Firefox
just testing
just one more thing
keep going
keep it up
keep me posted
stop the server
stop here for today
wait for the build and then deploy
ask Bob for the password
be right back
be honest, is it any good?
answer my question
write a short story about a dog
write it to a file
explain the difference between var and let
prefer to do it later, let's go on
after that, run it again
before I forget, here is the link
if it fails, try the backup
if you can't find it, search in lib
when I click the button, nothing happens
each row has an id
all tests pass
all files are in src
every request gets a 404
one test per file fails
two spaces are missing in line 5
4 files changed
English is not my first language
Danke!
geht nicht
klappt immer noch nicht
das ist nicht richtig
warum nur?
nur eine Frage noch
kein Problem
keine Ahnung warum
no sé
no hay tests
sin éxito
pas de souci
ça ne change rien
не надо, уже работает
没有测试
不知道为什么
不是这个
what tests do we have?
where is the config?
how long may a name be?
can the tests run offline?
could you look at issue 12?
would it be hard to support Windows?
please rebase onto main
please summarize what you did
push the branch and open a PR
delete the unused imports
split this function in two
use a larger timeout for this request
use the same logic in the other handler
run it with --verbose
start over
try the other approach
do it
do the second one
do you see the problem?
don't you think so?
don't ask me why it was written like that
I don't mind either way
I don't care which one
no preference
no, leave it
no need to hurry
no clue what is going on
no logs are written
nothing happens when I click it
nothing changed
nothing else for today
it only works on my machine
it never finishes
it always takes a minute
it can only be the cache
it has to be the proxy
that must be it
this must have been fixed already
there should be two entries
the list should be sorted but isn't
the user must be logged in, otherwise it redirects
the old version allowed only one file
the API returns at most 100 rows
the limit seems to be 5 MB
we have no CI
we always had trouble with this
we only noticed yesterday
we can't reproduce it
I could only find one
I never use this feature
I should mention that it is a fork
I must say, that's impressive
you forgot the tests
you changed the wrong file
your last commit broke the build
that was not what I wanted
this is not allowed by the type checker
"do not edit" is printed at the top
the comment says do not edit
line 3: must be greater than zero
AssertionError: expected only one call
Permission denied (publickey).
5 tests failed, 3 passed
version 2 only
tabs or spaces?
spaces, I think
in the second file only line 3 is wrong
Kannst du das nochmal erklären?
Das geht so nicht
Nichts passiert
Immer noch der gleiche Fehler
siempre da error
no encuentro el archivo
je n'ai pas compris
toujours la même erreur
всегда падает на старте
не вижу разницы
总是失败
没有变化
何も変わりません
""".splitlines()
"""None."""

RULES_AFTERWARDS = """\
no printf debugging
no magic numbers please
don't reorder the imports
don't add any logging
never edit generated files
always sort the imports
prefer explicit over implicit
use Yarn, not npm
use f-strings
use the Oxford comma
keep all strings in one file
keep responses under 50 words
stick to one file
only reply with the number
only modify the CSS
docs in Markdown
max 2 levels of nesting
at most one exception class
the bundle must stay below 200 kB
it should never block the main thread
passwords must never be logged
you may only read, not write
you are not allowed to call the network
I only want local hotels
I don't want to change planes
I'd rather pay by invoice
I would prefer a room without carpet
I need a step-free entrance
we can't use cookies
we don't allow default exports
we always write tests first
ask before you install packages
check with me before merging
wait for my go before deploying
show me the commands before you run them
don't deploy without my approval
stop apologizing
be concise please
answer in plain text
from now on, no emojis
every commit needs a ticket number
one assertion per test
all dates in UTC
treat null as missing
make sure you never overwrite user files
make sure the code works without JavaScript
whatever happens, keep the server running
don't worry about speed, but keep the memory below 1 GB
bitte keine Abkürzungen
frag vorher
sólo en español
pas de commentaires
не удаляй файлы
不要使用第三方库
コメントを追加しないでください
""".splitlines()
"""Constraints, written when the finder was done."""

NO_RULES_AFTERWARDS = """\
what about tabs?
how about we use tabs?
use the last commit as the base
use Chrome to open it
please use it
please open the file and read it
please find all usages of var
please don't take this the wrong way
could you fix it?
can you do that again without the flag?
change the title to "Do not disturb"
add a "never show again" checkbox
create a file called only_once.py
write tests for the new module
fix all warnings
rename it everywhere
remove it from all files
run all tests in tests/unit
keep this tab open for a second
keep in touch
leave a comment on the PR
stay tuned
ask the database for all users
check the logs after each request and tell me what you see
no tests broke
no response from the server
no matter
no way!
not sure about that
nothing found
nobody uses it
never mind, found it
only 3 of 5 pass
only on weekends it is slow
I never got that error before
I always use vim
I don't see why not
I don't remember
I only know Python
I need to go now
I need a new password
I want to understand the code
I would like to see the diff
we must have broken it yesterday
we never finished that
we only have one database
you don't need to
you never told me
you should be able to reproduce it
it should compile
it should be there
it must be late
it can't find the module
the tests must be wrong
the docs are outdated
the server only answers once
the file must have been deleted
this always returns None
this has to do with the cache
every request fails
each call takes at least a second
all of them are red
at least it starts now
at most that is a warning
max recursion depth exceeded
error: must specify a value
so no change there
kein Erfolg
es geht nur manchmal
no me deja entrar
pas encore
ça marche toujours pas
не нашёл
还是不行
だめでした
""".splitlines()
"""None, written then."""
