"""Terse wishes: what people type in a few words ("tabs, not spaces", "No emojis.", "ask me before pushing"), in several languages.

A long sentence says by its words that it asks; a short one often by its form alone. So these forms count in short sentences only, as wholes: a limit, a
choice between two things, what is not wanted, a manner, a permission to be asked for, what holds from now on. Beside each stand the forms that look like it and report: "no
luck", "no tests failed", "only one fails". What is asked for once ("add a test") has none of these forms.
"""

# ruff: noqa: RUF001, SIM905 - words of several languages, listed

from __future__ import annotations

import re

__all__ = ["IS_SO", "LONGEST", "NOT_WANTED", "may_be_terse", "wishes_in_few_words"]

LONGEST = 140
"""Characters of a sentence that may be one of these."""


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{form})" for form in forms), re.IGNORECASE)


_PLEASE = r"^\W*(?:(?:please|pls|plz|and|also|but|so|ok(?:ay)?|oh|then|now|btw|just|remember|rules?|reminder|note|nb|important|bitte|por favor|s['’]il (?:te|vous) pla[iî]t|пожалуйста|请)\b[\s,:!–—-]*)*"
_WORD = r"[\w`'\"“”./+#*<>=-]+"
_FEW = rf"{_WORD}(?: {_WORD}){{0,4}}"
_END = r"(?:,? (?:please|pls|plz|thanks|thank you|though|ok|bitte|por favor))?[\s.!)]*$"
_NAME = r"(?!(?:i|it|its|it['’]s|he|she|they|we|you|this|that|these|those|there|here|the|a|an|my|your|our|his|her|yes|yeah|yep|no|nope|ok|okay|sorry|thanks|hm+|sure|still|works?|worked|well|if|when|why|what|how|is|are|was|in|on|at|for|maybe|probably|hopefully|not|same|right|true|false|exactly|of|and|or|but|because|since|after|before|done|fixed|found|got|tried|looks|seems|sounds|i['’]\w+|that['’]s)\b)"
"""What a phrase begins with that names a thing: no pronoun, no article, no answer."""

_LANGUAGE = r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese|korean|turkish|arabic|hindi|swedish|danish|british|american|deutsch|englisch|französisch|español|inglés|français|anglais|italiano|inglese|português|русском|английском|imperative|present tense|past tense|lower ?case|upper ?case|iso|utc|markdown|plain text|bullet points?|one sentence|one line|short|simple)"

NOT_WANTED = (
    r"(?!(?:one|problems?|issues?|idea|clue|luck|worr\w+|need|longer|matter|way|doubt|thanks?|thank|such|more|it|that|this|the|i|we|you|they|but|and|or|if|not|yet|change|changes|difference|errors?|warnings?|failures?|response|"
    r"answer|reply|output|results?|effect|success|signal|access|reason|signs?|trace|hits?|match(?:es)?|wonder|biggie|big (?:deal|thing|problem)|preference|comment\b|opinion|rush|hurry|pressure|sweat|chance|further|other|tests? (?:found|ran|failed|fail|exist)|"
    r"need|is|are|was|there|what|how|why|when|which|just|let|let['’]s|please|can|could|do|don['’]t|should|must|only|even|also|actually|sorry|mine|you['’]\w+|it['’]\w+|that['’]\w+|i['’]\w+|"
    r"entiendo|funciona|sé|se|puedo|tengo|tiene|hay|es|está|están|encuentro|me|lo|la|le|veo|va|sirve|quiero|sabe|son|estoy|he|ha|"
    r"remove|use|keep|go|make|try|wait|stop|leave|put|add|look|read|check|try|run|undo|revert)\b)"
)
"""What behind a "no" tells that something is not there, that it does not matter, or is an answer."""
IS_SO = r"(?!.*\b(?:is|are|was|were|found|failed|fails?|failing|yet|now|left|anymore|any ?more|needed|required|necessary|available|works?|worked|working|happen\w*|changed|appears?|exists?|there|here|seen|shown|broke|broken|ran|exist|match|matched|reported|has been|have been|had been|passed|came|come|so far|at all)\b)"

_NO = rf"no {NOT_WANTED}{IS_SO}{_FEW}"

_WHOLE = _any(
    # what is not wanted
    rf"{_PLEASE}{_NO}(?:,? (?:and )?no {_FEW}){{0,3}}{_END}",
    rf"^\W*(?:keep )?(?:nothing|everything|anything|[a-z-]{{3,}}s) (?:under|below|over|above|within|up to|shorter than|longer than) \$?\d[\d,.]*(?: ?{_WORD}){{0,2}}{_END}",
    rf"{_PLEASE}no {NOT_WANTED}{_FEW},? (?:please|pls|plz)\b|{_PLEASE}write (?:the )?tests? first\b",
    rf"{_PLEASE}skip (?:the |all |any )?(?:explanations?|intro\w*|comments?|small talk|preamble|summar\w+|details|chit-?chat|fluff|pleasantries|disclaimers?|boilerplate)\b",
    rf"{_PLEASE}{_NAME}[a-z]\w+(?<!ed)(?: {_WORD}){{1,12}}(?:[,;(–—:]| -) ?(?:so |and |but |with )?{_NO}{_END}",
    rf"^[^,]{{3,60}}, so (?:no|nothing|never|don['’]t) {IS_SO}(?!luck|idea|problem|worr|need|clue|error|change)\w+",
    rf"{_PLEASE}without (?!(?:it|that|this|success|luck|any (?:luck|success|problem|error|effect)|errors?|the \w+ it)\b){_FEW}{_END}",
    rf"{_PLEASE}(?:change|touch|modify|edit|add|remove|install) nothing\b",
    rf"{_PLEASE}hands off (?:the |my |our )?{_WORD}",
    r"^\W*(?:the |my |our )?[\w./-]+(?: \w+)? (?:is|are) (?:strictly )?off[- ]limits\b",
    r"^\W*[\w.-]+/[\w./-]* (?:is|are|stays?) (?:read[- ]only|frozen|untouched)\b",
    rf"{_PLEASE}stop (?!being|going|trying|running into)\w+ing\b",
    # one thing and not another
    rf"{_PLEASE}{_NAME}{_FEW}, not (?!sure|yet|really|now|working|bad|good|that|this|a |the ){_FEW}{_END}",
    rf"{_PLEASE}{_NAME}{_WORD}(?: {_WORD}){{0,2}} (?:over|instead of|rather than) {_FEW}{_END}",
    rf"^\W*{_NAME}(?!(?:does|do|did|can|could|works?|please|also|just|me|him|why)\b){_WORD} not {_NAME}{_WORD}{_END}",
    rf"{_PLEASE}(?:use|prefer|always|never|avoid) {_NAME}{_FEW}{_END}",
    rf"{_PLEASE}{_NAME}[a-z]{{3,}}(?<!s)(?<!ed) only (?!one\b|once|twice|half|the (?:first|failing|last)){_WORD}",
    rf"^\W*(?:short|brief|concise|simple|plain|direct|non-?stop|economy|business|aisle|window|vegetarian|vegan|kosher|halal|gluten[- ]free|{_LANGUAGE})\b[\w ]{{0,30}},? (?:please|pls|bitte|por favor)[\s.!]*$",
    rf"^\W*(?:en|auf|in|em|на) {_LANGUAGE}\b[\w ]{{0,20}}[\s.!]*$",
    rf"{_PLEASE}{_NAME}{_WORD}(?: {_WORD}){{0,2}} only{_END}",
    rf"{_PLEASE}only {_NAME}(?!\w+s (?:in|on|when|if|for|with)\b)(?!(?:one|two|three|some|few|partially|happens|works|fails|works?|thing|problem|issue|\d+)\b){_WORD}(?: {_WORD}){{0,3}}{_END}",
    rf"{_PLEASE}{_NAME}(?!\w+ (?:it|this|that|them|these)\b){_FEW} everywhere{_END}",
    r"^\W*(?:snake|camel|pascal|kebab|title|sentence)[_ -]?case\b(?!.*\b(?:is|was|are)\b)|^\W*(?:single|double) quotes\b(?!.*\b(?:is|are|was)\b)",
    # limits
    rf"{_PLEASE}(?:max|min)(?:imum|imal|\.)?:? (?:{_WORD} ){{0,3}}\d",
    r"^\W*\d+[- ]?(?:spaces?|columns?|chars?|characters|lines|words|sentences|paragraphs) (?:for|per|indent\w*|max\w*|min\w*|at most|only|or less|or fewer|tops|each)\b",
    # manner
    rf"{_PLEASE}(?:answer|reply|respond|write|speak|talk|explain|comment|document|report)\b(?: \w+){{0,3}} in (?:\w+ )?{_LANGUAGE}\b",
    rf"{_PLEASE}(?:answer|reply|respond)\b.*\b(?:words?|sentences?|lines?|paragraphs?|bullets?)\b",
    rf"^\W*i(?:['’]d like| want| need)\b[^?]{{3,80}}, (?:and |but |with )?{_NO}{_END}",
    r"^\W*(?:if|when|whenever|once|before|after|each time|every time) you (?:change|add|edit|touch|write|create|modify|commit|push|remove|delete|rename|refactor|fix|use|introduce|update|install|move)\b.*, (?:then |also |please )?(?!tell|let|i\b|you\b|it\b|we\b|there\b|the\b)[a-z]+ ",
    r"^\W*(?:schreib\w*|antworte\w*|verfass\w*|kommentier\w*)\b.*\bauf (?:deutsch|englisch|französisch|spanisch)\b",
    rf"{_PLEASE}(?:answer|reply|respond|explain|write)\b(?: \w+)? (?:briefly|concisely|shortly|tersely|formally|politely|only|always)\b",
    rf"^\W*(?:the |all )?(?:commit messages?|messages|comments?|docstrings?|names|variables?|identifiers|code|docs?|answers?|replies|output|dates|titles|everything|all text|[\w-]+ names?) in (?:\w+ )?{_LANGUAGE}\b",
    rf"{_PLEASE}be (?:\w+ )?(?:brief|concise|short|terse|careful|conservative|strict|explicit|consistent|polite|formal|precise|specific|honest|critical|minimal|thorough)\b(?! about (?:it|that)\?)",
    rf"{_PLEASE}(?:indent (?:with|by|using)|(?:call|address) me|explain .* (?:like|as if)|cite) ?\b",
    rf"^\W*{_NAME}{_FEW} (?:is |are )?preferred\b|^\W*ideally,? (?:i|we)\b|^\W*[\w ]{{3,30}}: (?:no|never|not (?:allowed|needed|wanted))[\s.!]*$",
    rf"{_PLEASE}treat {_WORD}(?: {_WORD}){{0,3}} as\b",
    rf"{_PLEASE}(?:stay|remain) (?:within|inside|in|on|under|below|away from|out of|with|at) (?!touch|tuned|here\b)",
    rf"{_PLEASE}(?:keep|hold) (?!going|on\b|working|trying|in\b|it up|up\b|me\b){_WORD} \w+",
    # permission
    rf"{_PLEASE}ask (?:me )?(?:if|when(?:ever)?|about anything)\b|{_PLEASE}let (?:me|us) (?:review|see|check|know|approve|confirm|read|look)\b.*\bbefore\b",
    rf"{_PLEASE}(?:confirm|check|double[- ]check) (?:with \w+ )?before\b",
    rf"{_PLEASE}ask (?:for \w+ |me |first )?(?:before|first)\b|{_PLEASE}ask,? (?:do not|don['’]t) (?:guess|assume)\b",
    rf"{_PLEASE}(?:do not|don['’]?t|never|avoid) (?!worry|bother|care|know|mind|panic|sweat|think|understand|see\b|get\b|forget|remember|you\b|we\b|i\b|it\b|that\b|have\b|need)\w+(?: {_WORD})?{_END}",
    r"^\W*(?:if|when|whenever|in case|before|after)\b[^?]*,? (?:then )?(?:please )?(?:stop and|stop,|ask (?:me|us|first|before)|wait for|check with (?:me|us)|confirm with (?:me|us))\b",
    # what holds from now on
    rf"{_PLEASE}(?:from now on|from here on|going forward|henceforth|for the rest of this (?:chat|session|conversation))\b",
    r"^(?!.*\b(?:i|he|she|they)\b).*\b(?:from now on|going forward)[\s.!]*$",
    rf"^\W*(?:every|each|all|any) (?:{_WORD} ){{1,3}}(?:needs? (?!fix|attention|work\b|help|updat)\w+|gets? (?:an?|its) (?!\d|error|fail|time)|goes? (?:in|into|through|under)\b|belongs? (?:in|to|under)\b)",
    rf"^\W*(?:new )?(?!(?:it|this|is|was|does|he|she)\b)[\w-]+s (?:go|belong|live) (?:in|into|under) {_WORD}",
    rf"^\W*one [\w-]+ (?:per [\w-]+|at a time)(?: only| max)?{_END}",
    r"^(?!.*\b(?:i|it|he|she|they|is|are|was|were|fails?|crash\w*|happens?|gets?|got|hangs?|stops?|errors?|add|put|insert|print|write|show|create|log|append|check|tell)\b).*\b(?:after|before|with|on|at the end of) (?:each|every) [\w-]+",
    r"^\W*we (?:always|only|never) (?!get|got|see|saw|have|had|fail|end up|run into|did|was|were|need|wanted)\w+(?<!ed)\b",
    # German
    r"^\W*(?:bitte )?(?:frage?|fragt|fragen sie) (?:mich|uns|erst|vorher|vor|bevor|immer)\b",
    r"^[^.]*\b(?:frage?|fragt) (?:mich|uns) (?:\w+ )?(?:vor|bevor|vorher|erst|immer)\b",
    r"^\W*(?:bitte )?(?:bleibe?|bleibt|bleiben sie) (?:bei|in|unter|innerhalb)\b",
    r"^\W*(?:bitte )?(?:fass|fasst|rühr\w*|änder\w*|lösch\w*|benutz\w*|verwend\w*|nutz\w*|mach\w*|schreib\w*|push\w*|commit\w*|starte?|entfern\w*|installier\w*|erfinde?|rate?|füge?|nimm)\b.*\b(?:nicht|nichts|nie|niemals|keine?[nmrs]?)\b",
    r"^\W*(?:bitte )?nicht \w+en\b|^\W*bitte (?:duzen|siezen)\b",
    r"^\W*(?:bitte )?(?:nur|ausschließlich) (?!noch|eine? frage|kurz|mal|ein|zwei|die frage|so\b|dass|wenn|manchmal|der|das)\w+(?: \w+){0,3}[\s.!]*$",
    r"^\W*(?:bitte )?(?:keine?[nmrs]?|ohne|weder) (?!ahnung|sorge|zeit|angst|problem|chance|änderung|fehler|erfolg|lust|antwort|ergebnis|wirkung|frage)\w+(?: \w+){0,3}[\s.!]*$",
    r"^\W*[\wäöüß-]+(?: [\wäöüß-]+){0,2} (?:statt|anstatt|anstelle von) [\wäöüß-]+",
    # Romance languages
    r"^\W*(?:sin|sans|senza|sem|nada de|niente|nessun\w*|nenhum\w*|pas (?:de |d['’])|aucune?) ?(?!éxito|exito|problema|problèm|souci|suerte|embargo|dubbio|dúvida|doute|idée|erro)[\wáéíóúñçàèêôãõ-]+(?: [\w'’áéíóúñçàèêôãõ-]+){0,4}[\s.!]*$",
    r"^\W*(?:ne|n['’])(?: ?)(?!marche|fonctionne|sais|comprends|trouve|peux|veux|vois|va\b|répond|s['’])\w+ (?:pas|jamais|rien|plus)\b",
    r"^\W*(?:não|nao) (?!sei|funciona|entendo|consigo|tenho|é|está|há|posso|quero|encontr|vejo)\w+",
    r"^\W*non (?!funziona|so\b|capisco|riesco|ho\b|è|c['’]è|va\b|posso|trovo|vedo|voglio|sono)\w+(?:re|are|ere|ire)\b",
    r"^\W*(?:responde|respondé|contesta|escribe|réponds|répondez|écris|rispondi|scrivi|responda|escreva)\b(?: \w+){0,2} (?:en|in|em) \w+",
    r"^\W*(?:m[aá]ximo|m[íi]nimo|maximum|au plus|al massimo|no máximo) .*\d",
    r"^\W*[\wáéíóúñç-]+(?: [\wáéíóúñç-]+){0,2},? (?:en lugar de|en vez de|au lieu de|invece di|em vez de) \w+",
    # Russian
    r"^\W*(?:пожалуйста,? )?не (?!надо|нужно|нравится|понимаю|знаю|могу|вижу|работает|получается|помню|думаю|уверен|хватает|запуска|открыва|наш)\w+(?:й|йте|и|ите|ь|ьте)\b",
    r"^.*\b(?:спрашивай|спрашивайте|спроси меня|уточняй)\b",
    r"^\W*(?:отвечай|отвечайте|пиши|пишите)\b(?: \w+)? (?:на|по)\b",
    r"^\W*(?:без|вместо) (?!проблем|успеха|изменений|ошибок|понятия|разницы)\w+(?: \w+){0,4}[\s.!]*$",
    r"^\W*(?:не (?:более|больше|менее)|максимум|минимум) .*\d",
    # Chinese, Japanese, Korean
)
"""What a sentence is from its beginning."""

_WITHIN = _any(
    r"\bnothing (?:else )?(?:may|should|must|is allowed to|is to)\b",
    r"\b(?:please|pls|can you|could you|would you)(?: please)? not \w+",
    r"\b(?:my|our|the) budget (?:is|of)\b|\b(?:can['’]?t|cannot|won['’]t|do not want to|don['’]t want to) (?:spend|pay)\b.*\b(?:more than|over|above)\b",
    r"\b(?:cannot|can not|can['’]t|may not|mustn['’]t|must not) (?:exceed|go over|take (?:more|longer)|cost (?:more|over)|be (?:more|larger|longer|bigger|slower) than)\b",
    r"\b(?:ask|check with|confirm with|consult|tell|show|warn|notify|run it by|get back to) (?:me|us)\b.*\b(?:before|first|every time|each time|beforehand)\b",
    r"\b(?:wait for|get|needs?|ask for) (?:my|our) (?:ok(?:ay)?|approval|go(?:[- ]ahead)?|confirmation|permission|sign-?off|consent)\b",
    r"\bwithout (?:asking|checking with|my (?:ok|approval|permission|consent)|confirmation|approval|permission)\b",
    r"\bi (?:want|need|would like|expect)(?: for)? you to (?:always|never|ask|confirm|check with|only|avoid|stick|wait|not)\b|\bi['’]d like you to (?:always|never|ask|confirm|check with|only|avoid|stick|wait|not)\b",
    r"\byou (?:may|are) (?:only|not (?:allowed|permitted|supposed)?)\b ?(?!be\b|have\b|know|sure|alone)\w+",
    r"\bwe never (?!saw|had|got|did|was|were|knew|found|really|\w+ed\b)\w+",
    r"\b(?:it|this|that|everything|the [\w-]+(?: [\w-]+)?|they|these) (?:has|have|needs?) to (?:work|run|stay|remain|fit|support|compile|pass|be (?:able|compatible|idempotent|deterministic|fast|portable|\w+ed))\b",
    r"\bwe (?:can['’]?t|cannot) (?:break|change|afford|use|rely|depend|touch|modify|drop|lose|exceed|ship|add|upgrade|store|log|expose)\b|\bno exceptions\b|\bi (?:do not|don['’]?t|can['’]?t|cannot) (?:eat|drink|fly|drive|speak|smoke)\b|\bi want (?:everything|all of|every|each)\b",
    r"\b(?:please|pls) be (?:brief|concise|short|careful|patient|polite|specific|honest|gentle|quick|thorough|precise)\b|\b(?:willing|able|happy|prepared) to (?:pay|spend) .*\d",
    r"\bi can only (?!imagine|see|find|guess|think|say|reproduce|get|assume|hope|log|access)\w+",
    r"\b(?:i['’]m|i am|we are|we['’]re|she['’]s|he['’]s|my \w+ is) (?:\w+ )?(?:allergic to|vegan|vegetarian|lactose intolerant)\b|\b(?:is|are|am) allergic\b|\bbudget:? (?:is |of )?(?:\$|€)?\d|\d ?(?:eur|euros?|usd|dollars|bucks|\$|€)?,? (?:max|maximum|tops)[\s.!]*$",
    r"\b(?:preg[úu]ntame|cons[úu]ltame|av[íi]same|demande[- ]moi|demandez[- ]moi|chiedimi|me pergunte|pergunte-me|previens[- ]moi) .*\b(?:antes|avant|prima|antes de)\b",
    r"(?:回答|说明|解释|输出)(?:要|请|得)?(?:尽量)?(?:简短|简洁|精简|简明|详细)|(?:日本語|英語)で[。\s]*$",
    r"前.{0,4}(?:先|要|请|必须)?.{0,2}(?:问我|问一下|询问|征求|跟我确认|和我确认|经我)|先问我|问过我再",
    r"(?:用|使用|以)(?:简体|繁体)?(?:中文|英文|英语|日语|日文|德语|法语|汉语|韩语)(?:回答|回复|写|输出|交流|沟通|来|$)",
    r"ないで(?:ください|下さい|くれ|ほしい|ね|よ)?[。！!\s]*$|(?:日本語|英語|中国語|韓国語)で(?:答|書|返|お願い|回答|説明)|前に.{0,6}(?:確認|聞いて|相談)",
    r"지 ?마(?:세요|라|십시오|요|시오)?[.!\s]*$|(?:한국어|영어|일본어|중국어)로(?:만)? ?(?:답|써|작성|대답|말|설명)|전에 .{0,8}(?:물어|확인)",
)
"""What a sentence says somewhere."""

_ONCE = _any(
    r"^\W*use (?:it|this|that|these|those)\b|^\W*use (?:the|my|our|an?) .*\b(?:i|we|you|below|above|attached|i['’]\w+)\b|^\W*(?:please )?use .* to (?!be\b)\w+",
    r"\?\W*$|^\W*(?:do|does|did|is|are|was|were|have|has) (?:you|we|i|it|they|there|the|this|that)\b|^\W*(?:what|why|how|where|who|which)\b",
    r"^\W*(?:i think|i guess|maybe|perhaps|wow|oh sure|great job|nice)\b",
    r"\b(?:keep|stay) (?:getting|seeing|having|track|posted|tuned|up with)\b",
    r"^\W*(?:stop|wait|hold on)[\s,.!]*$|\bfor (?:a|one) (?:second|moment|minute|bit|while)\b|\bthe wrong way\b|\bprefer to\b|\bkeep (?:it (?:up|coming)|me )",
    r"\b(?:prefer not|never mind)\b",
)
"""What looks like one of these and asks for something that is done once, or asks, or tells."""

_KEYS = frozenset(
    "if whenever ideally preferred patient willing prepared indent call address explain skip nothing under below over above after before one please pls bitte let i we nichts everything cite camelcase pascalcase dont don no not only everywhere without nothing never stop hands off limits use prefer avoid over instead case quotes max min maximum minimum spaces space columns chars lines words budget spend exceed answer reply respond write speak talk "
    "explain comment comments document report messages be treat stay remain keep hold ask check confirm consult tell show warn notify wait approval permission guess assume may allowed now forward henceforth every each all any go goes belong "
    "live per needs need has have allergic vegan vegetarian in "
    "frag frage fragt bleib bleibe bleibt fass fasst mach schreib schreibe nicht nur keine kein keinen ohne statt anstatt hasta sin sans senza sem nada niente pas aucun aucune preg preguntame pregunta pregú avisame demande demandez chiedimi pergunte "
    "ne non nao responde contesta escribe réponds réponds répondez rispondi scrivi responda escreva en máximo maximo minimo au al vez lieu invece".split()
)
_WORDS = re.compile(r"[a-z]+")


def may_be_terse(text: str) -> bool:
    """Tell whether a text holds a word that these forms are made of: where it does not, there is no need to look closer."""
    return not text.isascii() or not _KEYS.isdisjoint(_WORDS.findall(text.lower()))


def wishes_in_few_words(sentence: str) -> bool:
    """Tell whether a short sentence states a constraint by its form."""
    return len(sentence) <= LONGEST and _has_the_form(sentence) and _ONCE.search(sentence) is None


def _has_the_form(sentence: str) -> bool:
    return _WHOLE.match(sentence) is not None or _WITHIN.search(sentence) is not None
