"""Secrets of every known form, made up anew at each run of the program: none stands in a file."""

from random import Random

_RANDOM = Random(20260822)  # noqa: S311 - nothing is protected by them
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASE64 = _LETTERS + "0123456789"


def some(count: int, alphabet: str = _BASE64) -> str:
    """Return so many characters, a digit among the first."""
    return "7" * ("7" in alphabet) + "".join(_RANDOM.choice(alphabet) for _ in range(count - ("7" in alphabet)))


_HEX = "0123456789abcdef"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

SECRETS = {
    "aws-access-key": "AKIA" + some(16, _BASE32),
    "anthropic-key": "sk-ant-api03-" + some(93),
    "openai-key": "sk-proj-" + some(48),
    "github-token": "ghp_" + some(36),
    "gitlab-token": "glpat-" + some(20),
    "slack-token": "xoxb-" + some(12, "0123456789") + "-" + some(24),
    "stripe-key": "sk_live_" + some(24),
    "google-api-key": "AIza" + some(35),
    "google-oauth-token": "ya29." + some(60),
    "huggingface-token": "hf_" + some(34),
    "groq-key": "gsk_" + some(52),
    "xai-key": "xai-" + some(80),
    "perplexity-key": "pplx-" + some(48),
    "replicate-token": "r8_" + some(37),
    "npm-token": "npm_" + some(36),
    "pypi-token": "pypi-AgEIcHlwaS5vcmc" + some(60),
    "sendgrid-key": f"SG.{some(22)}.{some(43)}",
    "twilio-key": "SK" + some(32, _HEX),
    "digitalocean-token": "dop_v1_" + some(64, _HEX),
    "shopify-token": "shpat_" + some(32, _HEX),
    "databricks-token": "dapi" + some(32, _HEX),
    "vault-token": "hvs." + some(90),
    "atlassian-token": "ATATT3" + some(186),
    "telegram-token": "71234567:A" + some(34),
    "age-key": "AGE-SECRET-KEY-1" + some(58, _BASE32),
    "jwt": f"eyJ{some(20)}.eyJ{some(60)}.{some(43)}",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(some(64) for _ in range(6))
    + "\n-----END RSA PRIVATE KEY-----",
}
"""A secret of each kind that stands alone."""
