"""Which sentences state a constraint: the words by which somebody says what must or must not be, in several languages.

The English ones are those that COMPINT looks for in user turns when it measures which constraints survive a compaction (must, never, don't, always,
only, use, prefer; "Lost in Compaction", arXiv 2608.11242), with their plain variants; those of the other languages say the same. A word alone is not enough:
"it never returns" reports, "never return" asks. So there are words that ask wherever they stand, words that ask where they begin a clause, and words
by which a clause is known to report, to wonder or to guess. A sentence states a constraint where one of its clauses asks and does not report.
"""

# ruff: noqa: RUF001, SIM905 - words of several languages, listed

from __future__ import annotations

import re

from palaver.context.record.terse import IS_SO, NOT_WANTED, may_be_terse, wishes_in_few_words

__all__ = ["may_state_a_wish", "states_a_wish"]


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{form})" for form in forms), re.IGNORECASE)


_WORDS = re.compile(r"[a-z]+")
_CLAUSE = re.compile(
    r"[,;:(—–，；：（]|[.!]\s|\s-\s|\b(?:and (?=(?:do not|don['’]?t|never|always|only)\b)|(?:but|so that|because|since|aber|sondern|et (?:surtout )?(?=n[e'’])|weil|mais|pero|porque|но|потому)\b)",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\W*$|[吗呢]\W*$")
_POLITE = _any(
    r"\b(?:can|could|would|will|won['’]t) you\b",
    r"\bplease\b|\bpls\b",
    r"\b(?:kannst|könntest|würdest) du\b|\b(?:können|könnten|würden) sie\b|\bbitte\b",
    r"\b(?:puedes|podr[íi]as|peux-tu|pouvez-vous|pourriez-vous)\b|\bpor favor\b|s['’]il (?:te|vous) pla[iî]t|пожалуйста",
    r"请|能不能|可以.{0,2}吗|ください",
)
"""How a question bids."""

_SENSE = r"(?:find|see|get|run|open|load|work|reproduce|figure|tell|say|believe|understand|remember|recall|resolve|connect|import|log ?in|access|afford|wait|help|be sure|be found)\b"
_BOUND = r"(?:exceed|be (?:more|larger|longer|greater|bigger|slower|changed|modified|touched|renamed|empty|null)|contain|depend|break|rely|change|take (?:more|longer)|cost|go over|use|have more)"
_DOES = r"(?:i|he|she|they|there|someone|somebody|which|who)"

_MAY = (
    r"(?:may|must|should|shall|can|could|will|want|wants|need|needs|has to|have to|limit|keep|have|use|take|takes up)"
)
_NUMBER = r"(?:\$|€)?(?:\d|an?\b|one\b|two\b|three\b|four\b|five\b|ten\b|half\b)"

_NO_VERB = (
    r"(?:i|it|its|it['’]s|he|she|they|we|you|this|that|these|those|there|here|the|a|an|my|your|our|his|her|their|some|all|each|every|no|yes|yeah|yep|nope|not|if|when|while|as|at|in|on|"
    r"of|for|with|from|by|but|or|because|since|after|before|what|why|how|who|where|which|is|are|was|were|be|been|do(?! (?:this|that|it|so|the)\b)|does|did|has|have|had|am|can|could|would|will|should|may|might|"
    r"maybe|perhaps|also|still|even|only|just|one|two|many|most|both|currently|actually|sorry|thanks|thank|sure|oh|well|hi|hello|hey|i['’]\w+|we['’]\w+|that['’]\w+|there['’]\w+)\b"
)
_ASKS = _any(
    # English
    r"\bmust(?:n['’]t|nt)?\b",
    r"\b(?:should|shall)(?:n['’]t|nt)?\b",
    rf"\b(?:you|we|users?) (?:cannot|can not|can['’]t|may not|can only|may only)\b(?! {_SENSE})",
    rf"\b(?:it|this|that|code|\w+s|(?:the|an?|each|every|any)(?: [\w-]+){{1,3}}) (?:may only|(?:cannot|can not|can['’]t|may not) {_BOUND})\b(?! {_SENSE})",
    r"\b(?:is|are|be|['’]s|['’]re) (?:strictly |absolutely |never )?(?:not )?(?:allowed|permitted|acceptable|forbidden|prohibited|mandatory|required|off[- ]limits)\b",
    rf"(?:^\W*|\b(?:{_MAY}|by|than|but|and|for|of) (?:\w+ ){{0,3}})(?:at (?:most|least)|no (?:more|less|fewer|later|earlier|sooner) than|a maximum of|limited to|max(?:imum)?\.?) {_NUMBER}",
    rf"^\W*(?!{_NO_VERB})[a-z]{{2,12}} (?!\w+s\b|now\b|also\b).*\b(?:at (?:most|least)|no (?:more|less|fewer|later|earlier|sooner) than|a maximum of|limited to) {_NUMBER}",
    r"\b(?:we|you) (?:\w+ )?(?:prefer|avoid|require (?:that|all|every|the|a)\b|stick to|(?:always|never|only) (?:use|want|need|commit|push|merge|write|add|put|run|test|name|allow|accept|ship|change|touch|edit|delete))\b",
    r"\b(?:we|you) (?:do not|don['’]?t) (?:(?:want|use|allow|do|add|commit|push|touch|support|like)\b|need (?!it\b|that\b|this\b|to\b))",
    r"\bi(?: really| definitely| strongly|['’]d| would|['’]d really| would really)* (?:prefer|rather|insist|(?:do not|don['’]?t|never|only) (?:want|like|use)|only (?:want|need)|want only)\b",
    r"\bi (?:do not|don['’]?t) need any (?!more|further|other|help)",
    r"\b(?:i|we)(?: would|['’]d)? (?:want|need|like) to (?:avoid|keep|stick|never|only)\b",
    r"\bunder no circumstances\b|\bno matter what\b|\bnon-negotiable\b|\bkeep in mind\b|\bmake sure\b|\bit(?: is|['’]s) (?:\w+ )?important that\b",
    # German
    r"\b(?:muss|musst|müssen|müsst|muß|darf|darfst|dürfen|dürft|soll|sollst|sollen|sollt|sollte|sollten)\b",
    r"\b(?:niemals|auf keinen fall|keinesfalls|unter keinen umständen|unbedingt|verboten|nicht (?:erlaubt|gestattet|zulässig))\b",
    r"\b(?:höchstens|mindestens|maximal) (?:\d|ein|zwei|drei|zehn)",
    # Romance languages
    r"\b(?:debes?|deben|debe|deber[íi]as?|nunca|jam[aá]s|siempre|prohibido|obligatorio|no se (?:puede|debe)|hay que|como m[áa]ximo)\b",
    r"\b(?:quiero|necesito|prefiero) que (?:uses|utilices|no|siempre|solo|sólo|nunca|mantengas|respond\w+|escrib\w+)\b|\bje (?:veux|voudrais|préfère) que (?:tu|vous)\b",
    r"\b(?:doit|dois|doivent|devez|devrait|jamais|toujours|interdit|obligatoire|il (?:ne )?faut|au (?:plus|moins) \d)\b",
    r"\b(?:deve|devem|devi|devono|sempre|proibido|vietato|obrigat[óo]rio|no m[áa]ximo)\b",
    # Russian
    r"\b(?:должн[аоы]?|должен|никогда|всегда|нельзя|запрещено|обязательно|необходимо|только|не более|не менее)\b",
    # Chinese, Japanese, Korean
    r"必须|必需|必須|务必|務必|一定要|不要|不得|不可|不准|不许|禁止|严禁|嚴禁|请勿|請勿|切勿|不应|不允许|不能(?!运行|工作|启动|编译|打开|正常|访问|连接|登录|显示|加载|找到|识别|解析|理解)|"
    r"应该|應該|应当|只能|只用|只许|仅(?:限|使用|用|支持|能)|避免|始终|永远|优先|确保|確保|最多|至少|不超过|不少于|保持|尽量|别(?:再|用|改|动|删)",
    r"必ず|絶対に|しないで|ないでください|てはいけ|てはなら|なければ|べき|避けて|のみ|だけを|以内",
    r"반드시|절대|하지 ?마|금지|해야|항상|만 사용",
)

_THEN = (
    r"(?:(?:please|pls|also|and|then|so|now|just|ok(?:ay)?|again|first|firstly|finally|next|otherwise|furthermore|additionally|important|critical|note|reminder|remember|rule|"
    r"nb|btw|fyi|however|instead|always|to|you (?:can|may|should)|i(?:['’]d| would)? (?:want|need|like|ask) (?:you|it|this|them|us)|(?:can|could|would|will) you|(?:kannst|könntest) du|(?:können|könnten) sie|let['’]s|"
    r"bitte|und|dann|por favor|y|et|и|пожалуйста|\d+)[\s.)*_]+)*"
)
_OBJECT = r"(?:(?:the|a|an|this|that|these|those|it|all|any|my|our|your|each|every|them|me|us|up|in|as|for|to)\b|[`\"'“]|\S*[_./()])"
_BEGINS = _any(
    # English
    rf"^\W*{_THEN}(?:never|always|only|do not|don['’]?t|avoid|prefer|ensure|be sure|use|stick (?:to|with)|follow|remember to|refrain|limit|restrict|respect|adhere|preserve|leave|exclude)\b",
    rf"^\W*{_THEN}keep (?!going|on\b|working|trying|in\b)",
    # German
    rf"^\W*{_THEN}(?:nie|immer|nur|keine?[nmrs]?|verwende|verwenden sie|benutze?|benutzen sie|nutze?|nutzen sie|nimm|vermeide|vermeiden sie|achte|achten sie|stelle? sicher|"
    r"stellen sie sicher|lass|lassen sie|halte?|antworte)\b",
    # Romance languages, Russian
    rf"^\W*{_THEN}(?:no (?:uses?|modifiques?|cambies?|toques?|hagas?|borres?|agregues?|añadas?)|usa|usar|utiliza|utilice|utilise[rz]?|évite[rz]?|evita|evite|solo|sólo|solamente|"
    r"uniquement|seulement|assure-toi|assurez-vous|aseg[úu]rate|garde[rz]?|mant[ée]n|não|non(?= )|usi|evitare)\b",
    rf"^\W*{_THEN}(?:не (?!надо|нужно|нравится|понимаю|знаю|могу|вижу|работает|получается|помню|думаю|уверен|хватает)|используй(?:те)?|избегай(?:те)?|убедись|убедитесь)\b",
    # Chinese
    r"^\W*(?:请|請)?(?:使用|用|遵循|遵守|采用|记住|只|仅|别|勿)",
)

_OPENS = _any(
    rf"^\W*{_THEN}no {NOT_WANTED}(?!\w+ (?:yet|found|matche|is|are|was|were)){IS_SO}[a-z][\w-]+ ",
    rf"^\W*(?:(?:please|also|and|then|now|just|ok|okay)\s+)*(?!{_NO_VERB})[a-z][a-z-]*(?<!ing) {_OBJECT}[^:]*\b(?:without \w+ing\b|instead of\b|rather than\b|without (?:any|the|a)\b|only\W*$)",
)
"""What asks at the beginning of a sentence only."""

_REPORTS = _any(
    # English
    rf"\b{_DOES} (?:\w+ )?(?:must|should|shall)\b",
    r"\b(?:must|should)(?:n['’]t)?(?: not)?(?:['’]ve| have) (?:been|had|gone|done|\w+ed|made|seen|known|\w+en)\b",
    r"\b(?:must|should) be (?:because|due|some|something|my|a (?:bug|mistake|way)|fine|ok(?:ay)?|good|better|enough|easy|able|all set|eligible|there|maybe|probably|working|fixed|done|ready|back|gone)\b",
    r"\bmust be (?:an? )?(?:[\w-]+ )?(?:bug|mistake|way|problem|issue|error|reason|typo|glitch|race|leak|misunderstanding|coincidence|broken|wrong|missing|down|failing|off|stale|crazy|flaky|late|early|nice|hard|difficult|true|false|stupid|joking|kidding|tired|blind)\b",
    r"\bwe should (?!not|never|n['’]t|always|only|avoid|keep|stick|use|prefer|limit|require)|\ballowed (?:by|here|there|in this)\b|\bcan['’]?t be (?:serious|right|true)\b|\byou should (?:see|now|be able|get|have|find|know)\b|\bmake sure\b.*\b(?:is|are) (?:running|up|on|there|correct|installed|open|started|connected|right)\b|\bonly (?:need|want) (?:one|to (?:know|understand|see|ask|say|check))\b",
    r"\bshould (?:also |probably |then )?be (?:updated|changed|renamed|removed|deleted|added|fixed|replaced|moved|merged|closed|adjusted|addressed|extended|refactored|reverted)\b",
    r"\bshould (?:still|already|now|cover|work)\b|\bshould(?:n['’]t| not)? be (?:in|on|(?:under|within)(?! \$?\d)|listed|available|any|saved|visible|waived|covered|free)\b|\b(?:my|our|your) .*\bshould have\b",
    r"\b(?:read|think|thought|certain|sure|believe|told|heard|expect\w*|assume)\b.*\bshould\b|\bif\b[^,]* (?:is|are) required\b|\bi (?:understand|know|see|realize|accept)\b.*\b(?:cannot|can['’]t|must|should)\b",
    r"^\W*i(?:['’]ll| will)\b.*\bmake sure\b|\bi(?:['’]d|['’]m| would| just| really)* (?:want|need|like|wanted|trying) to make sure\b",
    rf"^\W*{_THEN}use (?:it|this|that|these|those|the (?:first|second|third|fourth|last|other|latest|former|latter))\b",
    r"^\W*(?:please |pls )?use (?!.*\b(?:instead|only|always|never|not)\b).* to (?!be\b)\w+",
    r"^\W*(?:please )?use (?:it|this|that|these|those)\b|^\W*(?:please )?use (?:the|my|an?) (?:first|second|third|fourth|last|other|latest|former|latter|file|token|link|url|key|tool|script|command|image|\w+ tool|\w+ command)\b",
    r"^\W*(?:no|yes|yeah|yep|nah|nope)\b\W{0,3}(?:it|that|this|\w+) should (?:be|have) (?!no)|\bmake sure there(?:['’]s| is| are)\b(?!.*\b(?:always|never)\b)|^\W*(?:if|whether|unless) (?:\w+ ){1,2}(?:must|should|shall)\b",
    r"^\W*(?:please )?leave (?:an? |your )|^\W*only (?:\d+ (?:of|out)\b|(?:on|in|when|if|after|with)\b.*\b(?:it|i|they|this|that) (?:is|was|does|\w+s)\b)|\b(?:it|this|that) should (?:compile|build|pass|run|start|load|show|return)\W*$",
    r"\bfor (?:a|one) (?:second|moment|minute|bit|while)\b|\bthe wrong way\b",
    r"^\W*and then\b|^\W*use (?:an? |the same ).*\b(?:for|in) (?:this|that|the other)\b|\b(?:do not|don['’]?t) ask me (?:why|how|what)\b|\bmust be (?:it|that|this|the)\b|^\W*leave it\W*$",
    r"\bimmer (?:noch|wieder)\b|\bsiempre (?:da|falla|sale|me|se|hay|está|es)\b|\btoujours (?:la|le|les|pas|une?|en panne)\b|\bвсегда (?:пада|вылета|выда|возвращ|да[её]т)",
    r"^\W*only .*\b(?:is|are|was|were) (?:missing|broken|wrong|left|affected|failing|there|shown)\b|^\W*only (?:happens|works|fails|occurs|appears|shows)\b",
    r"^\W*(?:nur (?:noch|eine? frage|kurz|mal)|keine? (?:ahnung|sorge|zeit|problem|chance|lust))\b|\bprefer to\b(?<!\bi prefer to)|^\W*keep (?:it (?:up|coming)|me )",
    r"^\W*only (?:one|two|some|a few|the (?:first|last|second|other)|\d+)\b.*\b(?:is|are|fails?|works?|happens?|passes|was|were|has|have|left)\b",
    r"\b(?:that|this|it|which|these|everything|who) should(?: never| not|n['’]t)? (?:work|fix|do\b|help|happen|look|take|go\b|be (?:fine|ok|okay|good|it|enough|easy|all|clear|possible|able|there|here)\b)",
    r"\b(?:what|why|how|where|when|if) (?:should|shall|must)\b|\bshould\?",
    r"\b(?:should|shall) (?:i|we)\b|\bmust-(?:have|see|read)\b|\bif (?:i|we|you|he|she|they) (?:must|should)\b",
    r"\b(?:do not|don['’]?t) (?:know|think|understand|see|get|have|believe|remember|care|mind|recall|worry|hesitate|seem|forget|need any|need to)\b",
    rf"\b{_DOES} (?:\w+ )?(?:always|never|use|keep|follow)\b(?! want)",
    r"\b(?:you|we) (?:can|could|might|may|would|already|currently|previously|normally|usually|just|did|have|had|were|are) (?:\w+ )?(?:use|follow|avoid)\b",
    r"\b(?:not only|if only|the only|only (?:one|thing|problem|issue|difference|way|reason)\b|use cases?\b|how to|used to)",
    r"^\W*(?:do(?! (?:this|that|it|so)\b.*\b(?:without|but)\b)|does|did|is|are|was|were|have|has|can|could|would|should|may|might|am) (?:we|i|it|they|the|this|that|there|he|she|my|these|those)\b",
    r"\b(?:i|i['’]ve|was|were|been|had)\b.*\b(?:at least|at most|no more than)\b|\bno\b.*\b(?:is|are) required\b|\bjust to make sure\b|\bmake sure i\b|\bi(?:['’]ll| will) make sure\b|\bnever mind\b",
    r"\bi(?: would|['’]d)? (?:argue|feel|believe|guess|suppose|assume|be allowed)\b|\bwhether\b.*\b(?:should|must|shall)\b",
    r"\bi(?:['’]d| would)? (?:\w+ )?(?:want|need|like|wanted) to make sure (?:that )?(?:my|i|we|it fits|i['’]\w+)\b",
    r"^\W*(?:if|when|whether|unless|in case)\b(?!.*\b(?:must|never|do not|don['’]?t|always)\b)",
    r"\bfollow (?:these|the|this|those) (?:steps|instructions)\b|\bif (?:you|we|it|they|i)\b.*\b(?:can['’]t|cannot|don['’]t|do not)\b|\b(?:use|follow|prefer|avoid)(?:s|d|r|rs|ed|ing)\b$",
    r"\bkeep (?:getting|seeing|having|up|track|me (?:posted|updated))\b|\bleave (?:me|it (?:to|at|for))\b|\bfollow(?:ing)? up\b",
    # others
    r"\b(?:ich|es|er|man) (?:\w+ )?(?:immer|nie|nur)\b|\bwas soll\b|\bsoll ich\b|\bmuss ich\b|\bdarf ich\b",
    r"为什么|怎么|是否|能否|我(?:不能|必须|应该)|总是(?:报|出|失|返|崩)",
)

_KEYS = frozenset(
    "must mustn mustnt shall shouldn should shouldnt allowed permitted acceptable forbidden prohibited mandatory required most least than maximum max limited circumstances matter "
    "negotiable mind sure important always never only not nt cannot dont don doesn avoid prefer rather insist ensure use stick follow refrain limit restrict respect adhere preserve "
    "leave exclude keep without instead no want require remember "
    "constraint constraints rule rules requirement requirements restriction restrictions convention conventions guidelines donts ts "
    "regeln vorgaben anforderungen reglas restricciones requisitos contraintes exigences "
    "muss musst darf darfst soll sollst sollen sollt sollte sollten niemals nie keinen kein keine keinem keiner keines keinesfalls unbedingt verboten nicht mindestens maximal immer nur verwende "
    "verwenden benutz benutze benutzen nutz nutze nutzen nimm vermeide vermeiden achte achten stell stelle stellen lass lassen halt halte schreib schreibe antworte "
    "debe debes deben nunca siempre prohibido obligatorio puede hay usa usar uses use utiliza utilice utilise utilisez utiliser evita evite solo solamente uniquement seulement garde gardez "
    "doit dois doivent devez devrait toujours interdit obligatoire faut jamais moins assure assurez deve devem devi devono sempre proibido vietato non usi evitare modifiques modifique".split()
)
"""Words of which a wish, or a heading of wishes, in Latin letters without accents has at least one: where none is, there is no need to look closer."""

_OPEN_END = re.compile(r"[:：]\W*$")
_FIRM = re.compile(r"\b(?:not|never|only|no|don['’]?t|nicht|nie|nur)\b|不|勿|禁|只", re.IGNORECASE)
"""What a sentence says that asks for something although it only announces a list."""

_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|`[^`\n]*`")
_MUSES = re.compile(
    r"\W*(?:maybe|perhaps|consider|wow|oh sure|imo)\b|\W*(?:i['’]m|i am) (?:confused|curious)\b|\W*(?:so |also |and )*i(?: would|['’]d| was| also| just)* (?:think|argue|feel|suppose|guess|wonder|wondering|noticed?|expect|found|remember)\b|\W*[\"“]|"
    r"\W*(?:please |can you |could you )?(?:write|tell|compose|generate|create|make up|imagine) (?:me |us )?(?:an? |the |some )?(?:[\w-]+ ){0,2}(?:stor(?:y|ies)|poems?|songs?|tales?|novels?|scenes?|essays?|jokes?|dialogues?|plots?|haikus?)\b|"
    r"\W*(?:please |can you |could you )?(?:explain|describe|discuss|tell me|show me|argue)\b.{0,40}\b(?:why|how|what|whether)\b",
    re.IGNORECASE,
)
"""How a sentence begins that tells what somebody thinks, or what somebody else said."""

_REPORTED = _any(
    r"^\W*(?:the |this |its |their )?(?:[\w-]+ )?(?:docs?|documentation|errors?|linter|compiler|logs?|message|page|spec|readme|manual|console|terminal|output|app|system|website|ci|warning|tooltip|comment on line \d+)\s+(?:only )?(?:says?|said|tells?|told|claims?|states?|reads?|complains?|mentions?|shows?)\b",
    r"\bshould\b.*\bbut\b.*\b(?:is|are|returns?|does|doesn|shows?|gets?|was|instead|not|isn|aren|wasn|did)\b",
)
"""How a sentence tells what something else says, or that something is not as it should be."""

_FIRMLY = _any(
    r"\b(?:must|never|shall)\b|\b(?:do not|don['’]?t)\b|\b(?:should|may|can) (?:not|never|only)\b|\bcannot\b|\bshould (?:remain|stay)\b|\balways\b|\bforbidden\b|\bnot allowed\b|\bavoid\b|\bno \w+ (?:dependenc|librar|packag)",
    r"必须|不要|不得|禁止|不能|絶対|ないで|반드시|하지 ?마|muss\b|darf\b|nicht\b|niemals|debe\b|nunca|doit\b|jamais|нельзя|никогда",
)
"""What forbids and demands wherever it stands."""

_LIMITED = re.compile(
    r"\W*(?:and |but |so )?(?:if|only if|unless|as long as|provided)\b[^?]*\b(?:exceeds?|more than|over|above|under|below|less than|within|up to)\b (?:\$|€|£)?\d[^?]*\Z",
    re.IGNORECASE,
)
"""How a sentence begins that says what is to be done within a limit, and beyond it."""

_ITEM = re.compile(r"\s*\(?\d{1,3}[.)]\s+")
_TAG = re.compile(r",? (?:ok(?:ay)?|alright|k|deal|please|pls)\?\W*$", re.IGNORECASE)
"""A word that makes a question of what is none."""

_SHORTEST = 3
"""Words, or characters where words are not parted, that a constraint has at least."""

_UNPARTED = re.compile(r"[぀-ヿ㐀-鿿가-힣]")


def may_state_a_wish(text: str) -> bool:
    """Tell whether a text holds a word that wishes are made of: where it does not, there is no need to look closer."""
    return not text.isascii() or not _KEYS.isdisjoint(_WORDS.findall(text.lower())) or may_be_terse(text)


def states_a_wish(sentence: str, *, firmly: bool = False) -> bool:
    """Tell whether a sentence says what must or must not be.

    Args:
        sentence: The sentence.
        firmly: Whether only what is forbidden or demanded counts: in a document that describes a thing, "should" and "use" tell what it does.
    """
    own = _TAG.sub("", _ITEM.sub("", _QUOTATION.sub("x", sentence), count=1))
    if _MUSES.match(own) or _REPORTED.search(own) or (firmly and not _FIRMLY.search(own)):
        return False
    if not firmly and (wishes_in_few_words(own) or _LIMITED.match(own)):
        return True
    if not may_state_a_wish(own) or _says_something_else(own):
        return False
    clauses = _CLAUSE.split(own)
    if _OPENS.match(own) and not _REPORTS.search(clauses[0]):
        return True
    return any((_ASKS.search(each) or _BEGINS.match(each)) and not _REPORTS.search(each) for each in clauses)


def _says_something_else(sentence: str) -> bool:
    """Tell whether it is too short to say anything, announces what follows, asks, or tells what somebody thinks."""
    short = len(sentence.split()) < _SHORTEST and len(_UNPARTED.findall(sentence)) < _SHORTEST
    announces = _OPEN_END.search(sentence) and not _FIRM.search(sentence)
    asks = _QUESTION.search(sentence) and not _POLITE.search(sentence)
    return bool(short or announces or asks)
