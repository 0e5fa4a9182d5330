"""Patterns of keys and tokens that have a form of their own.

Sources: the prefixes and lengths that issuers publish, as collected in the rules of gitleaks (https://github.com/gitleaks/gitleaks,
config/gitleaks.toml) and the plugins of detect-secrets (https://github.com/Yelp/detect-secrets). High entropy alone is not a secret here: a coding
session is full of digests and ids.

Every pattern takes time linear in the text. A token's pattern starts only once in a run of token characters (`_ALONE`), its repetitions are possessive
(Python 3.11), and whatever may lie between two parts is bounded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ALONE = r"(?<![A-Za-z0-9_-])"
"""Before a token: a match starts only at the beginning of a run of token characters."""

_REST = r"[A-Za-z0-9_-]*+"
"""After a token: the rest of the run belongs to it, so that a second pass finds nothing new."""

_BREAK = r"(?:\s|\\[nrt])"
"""White space, or its escapes in JSON and shell strings."""


class Pattern(NamedTuple):
    """One form of a secret.

    Attributes:
        kind: Its name, as the placeholder shows it.
        words: Words in lower case; the pattern is tried only on texts that contain one of them.
        regex: The expression, compiled on first use. Its group `secret` is the secret, or all of it when there is no such group.
        entropy: The least Shannon entropy of the secret, in bits a character; 0 when its form is enough.
    """

    kind: str
    words: tuple[str, ...]
    regex: str | re.Pattern[str]
    entropy: float = 0.0


def _token(kind: str, words: str, form: str) -> Pattern:
    """Return the pattern of a token that is a word of its own, with the rest of its run."""
    return Pattern(kind, tuple(words.split()), _ALONE + form + _REST)


_HAS_DIGIT = r"(?=[A-Za-z_-]{0,200}[0-9])"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        # RFC 7468; the headers of RFC 1421; OpenSSH's and PGP's forms of it. A key whose end was cut off counts too.
        "private-key",
        ("private key",),
        (
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            rf"(?:{_BREAK}{{0,8}}+[A-Za-z-]{{1,20}}+: [^\n\\]{{1,120}}){{0,4}}+"
            rf"{_BREAK}{{0,8}}+[A-Za-z0-9+/=]{{16,}}+(?:{_BREAK}{{1,8}}+[A-Za-z0-9+/=]{{1,200}}+)*+"
            rf"(?:{_BREAK}{{0,8}}+-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9_]*+)?"
        ),
    ),
    _token(
        "aws-access-key", "akia asia abia acca a3t", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}(?![A-Za-z0-9])"
    ),
    _token("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}+"),
    _token("openai-key", "sk-", rf"sk-(?!ant-){_HAS_DIGIT}[A-Za-z0-9_-]{{20,}}+"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    _token("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}+"),
    _token(
        "gitlab-token", "glpat- gldt- glrt- glptt- glsoat- glcbt-", r"gl(?:pat|dt|rt|ptt|soat|cbt)-[A-Za-z0-9_.-]{20,}+"
    ),
    _token("slack-token", "xox xapp-", r"(?:xox[a-z]|xapp)-(?=[A-Za-z-]{0,40}[0-9])[A-Za-z0-9-]{10,}+"),
    Pattern(
        "slack-webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows)/[A-Za-z0-9+/_-]{20,}+)",
    ),
    _token(
        "stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{10,}+"
    ),
    _token("google-api-key", "aiza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token("google-oauth-token", "ya29. gocspx-", r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}+"),
    _token("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}+"),
    _token("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}+"),
    _token("xai-key", "xai-", r"xai-[A-Za-z0-9_-]{60,}+"),
    _token("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,}+"),
    _token("replicate-token", "r8_", r"r8_[A-Za-z0-9]{36,}+"),
    _token("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,}+"),
    _token("pypi-token", "pypi-age", r"pypi-AgE[A-Za-z0-9_-]{40,}+"),
    _token("sendgrid-key", "sg.", r"SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,}+"),
    _token("twilio-key", "sk", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _token("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    _token("vault-token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{24,}+"),
    _token("atlassian-token", "atatt3", r"ATATT3[A-Za-z0-9_=-]{60,}+"),
    _token("telegram-token", ":a", r"[0-9]{5,16}+:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])"),
    _token("age-key", "age-secret-key-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    Pattern(
        "azure-key",
        ("accountkey", "sharedaccesskey"),
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
    ),
    # RFC 7519: three parts, of which the first two are JSON objects
    _token("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]*+"),
    # RFC 9110 11.6.2, RFC 6750 2.1, RFC 7617
    Pattern(
        "authorization",
        ("authorization",),
        (
            r"(?i:authorization)[\"'\\]{0,4}[ \t]{0,3}[:=][ \t]{0,3}[\"'\\]{0,4}(?:(?i:bearer|basic|token|apikey)[ \t]{1,3})?"
            r"(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)"
        ),
        2.5,
    ),
    Pattern("bearer-token", ("bearer ",), r"\b(?i:bearer) {1,3}(?P<secret>[A-Za-z0-9._~+/=-]{20,}+)", 3.0),
    # RFC 3986 3.2.1: a password in an address
    Pattern(
        "url-password",
        ("://",),
        r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}+://[^\s/:@\"'\[\]]{0,100}+:(?P<secret>[^\s/@\"'\[\]]{1,200}+)@",
    ),
    Pattern(
        "assigned-secret",
        ("key", "secret", "token", "passw", "pwd", "credential"),
        (
            r"(?i:api[_-]?key|access[_-]?key|secret|auth[_-]?token|access[_-]?token|refresh[_-]?token|passw(?:or)?d|pwd|passphrase|credential)"
            r"[A-Za-z0-9_.-]{0,20}[\"'\\]{0,4}[ \t]{0,3}(?::=|=>|=|:)[ \t]{0,3}[\"'\\]{0,4}"
            r"(?P<secret>(?=[^\s\"'\\]{0,200}[0-9])[A-Za-z0-9+/=_.~!@#$%^&*-]{8,}+)"
        ),
        2.5,
    ),
)
"""The patterns, the most specific first: what one replaced is a placeholder to the next."""

SECRET_KEY = re.compile(
    r"(?i:(?:[a-z0-9]{1,40}[_.-])?(?:api[_-]?key|x-api-key|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret|(?:access|auth|refresh|id|bearer)[_-]?token"
    r"|token|passw(?:or)?d|pwd|passphrase|private[_-]?key|authorization|credentials?))"
)
"""Names of fields whose value is a secret, whatever its form; the whole name must match."""

_PLACEHOLDER = re.compile(
    r"\[redacted:[a-z0-9-]+\]|\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|<[^<>]{0,100}>|%[A-Za-z_]+%|[*xX.•]+|\{\{.{0,100}\}\}"
)


def is_placeholder(value: str) -> bool:
    """Return whether a value is in place of a secret: a placeholder, a variable, asterisks."""
    return _PLACEHOLDER.fullmatch(value.strip()) is not None
