"""The forms of keys: those that vendors document, and the places where a secret stands in any.

    name         vendor, or place
    hints        a text without any of them has no such key: looked for first, as that is cheap
    pattern      a regular expression; a group named ``kept`` in front of the secret stays

Every pattern is linear: what repeats has a bound, or is followed by what it cannot match itself.

Sources: the prefixes that vendors document, and the rules of secret scanners (GitHub secret
scanning patterns, gitleaks), of 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
"""A key begins behind no letter or digit, or behind an escape of JSON text."""

_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?:[^-]*(?:-(?!----)[^-]*)*-----END [A-Z0-9 ]{0,60}-----"
    r"|(?:(?:\\[rn]|\s)*[A-Za-z0-9+/=]{16,})*)"  # its end was cut off
)


class Form(Struct, frozen=True):
    """One form of key.

    Attributes:
        name: the owner, or where it stands.
        hints: texts of which one is in every text with such a key, in any case of letters if the
            pattern ignores it.
        pattern: finds it.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]

    def is_possible(self, text: str, lower: str) -> bool:
        """Whether a text may hold one; ``lower`` is the text in small letters."""
        looked_at = lower if self.pattern.flags & re.IGNORECASE else text
        return any(hint in looked_at for hint in self.hints)


# Keys that can be told by their beginning: vendor, beginning, what follows it.
_PREFIXED = """
OpenAI, Anthropic, OpenRouter   sk-          [A-Za-z0-9_-]{20,}
xAI                             xai-         [A-Za-z0-9_-]{40,}
Groq                            gsk_         [A-Za-z0-9]{40,}
Perplexity                      pplx-        [A-Za-z0-9]{40,}
Replicate                       r8_          [A-Za-z0-9]{30,}
Fireworks                       fw_          [A-Za-z0-9]{20,}
NVIDIA                          nvapi-       [A-Za-z0-9_-]{40,}
Together                        tgp_v1_      [A-Za-z0-9_-]{30,}
Cerebras                        csk-         [A-Za-z0-9]{30,}
Voyage                          pa-          [A-Za-z0-9_-]{40,}
Tavily                          tvly-        [A-Za-z0-9_-]{20,}
E2B                             e2b_         [a-f0-9]{30,}
Firecrawl                       fc-          [a-f0-9]{32}
LangSmith                       lsv2_        (?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}
Hugging Face                    hf_          [A-Za-z0-9]{30,}
Hugging Face, organisation      api_org_     [A-Za-z0-9]{30,}
Stripe, secret                  sk_          (?:live|test|prod)_[A-Za-z0-9]{16,}
Stripe, restricted              rk_          (?:live|test|prod)_[A-Za-z0-9]{16,}
Stripe, webhook                 whsec_       [A-Za-z0-9+/=]{24,}
JSON Web Token                  eyJ          [\\w-]{8,}\\.eyJ[\\w-]{8,}\\.[\\w-]*
AWS, long-term                  AKIA         [A-Z0-9]{16}
AWS, temporary                  ASIA         [A-Z0-9]{16}
AWS, bearer                     ABSK         [A-Za-z0-9+/=]{80,}
Google, API                     AIza         [A-Za-z0-9_-]{35}
Google, access token            ya29.        [A-Za-z0-9_-]{20,}
Google, client secret           GOCSPX-      [A-Za-z0-9_-]{24,}
Google, refresh token           1//0         [A-Za-z0-9_-]{30,}
GitHub, personal                ghp_         [A-Za-z0-9]{36,}
GitHub, OAuth                   gho_         [A-Za-z0-9]{36,}
GitHub, user to server          ghu_         [A-Za-z0-9]{36,}
GitHub, server to server        ghs_         [A-Za-z0-9_.-]{36,}
GitHub, refresh                 ghr_         [A-Za-z0-9]{36,}
GitHub, fine-grained            github_pat_  [A-Za-z0-9_]{22,}
GitLab, personal                glpat-       [A-Za-z0-9_.-]{20,}
GitLab, trigger                 glptt-       [A-Za-z0-9_-]{20,}
GitLab, deploy                  gldt-        [A-Za-z0-9_-]{20,}
GitLab, runner                  glrt-        [A-Za-z0-9_.-]{20,}
GitLab, job                     glcbt-       [A-Za-z0-9_.-]{20,}
Atlassian                       ATATT3       [A-Za-z0-9_=-]{60,}
Atlassian, connect              ATCTT3       [A-Za-z0-9_=-]{60,}
Bitbucket                       ATBB         [A-Za-z0-9]{24,}
Slack                           xox          [abeoprs]-[A-Za-z0-9-]{10,}
Slack, app                      xapp-        [0-9]-[A-Za-z0-9-]{20,}
SendGrid                        SG.          [A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{16,64}
Mailgun                         key-         [a-f0-9]{32}
Resend                          re_          [A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,}
Twilio                          SK           [a-f0-9]{32}
DigitalOcean, personal          dop_v1_      [a-f0-9]{64}
DigitalOcean, OAuth             doo_v1_      [a-f0-9]{64}
DigitalOcean, refresh           dor_v1_      [a-f0-9]{64}
Vault, service                  hvs.         [A-Za-z0-9_-]{20,}
Vault, batch                    hvb.         [A-Za-z0-9_-]{20,}
Heroku                          HRKU-        [A-Za-z0-9_-]{30,}
Fly                             fm2_         [A-Za-z0-9+/=_-]{40,}
Netlify                         nfp_         [A-Za-z0-9]{30,}
Doppler                         dp.          (?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9._-]{30,}
PlanetScale                     pscale_      (?:pw|tkn|oauth)_[A-Za-z0-9._-]{30,}
Supabase, personal              sbp_         [a-f0-9]{40}
Supabase, secret                sb_secret_   [A-Za-z0-9_-]{20,}
Neon                            napi_        [a-z0-9]{40,}
Databricks                      dapi         [a-f0-9]{32}
Pulumi                          pul-         [a-f0-9]{40}
Grafana, cloud                  glc_         [A-Za-z0-9+/=]{30,}
Grafana, service account        glsa_        [A-Za-z0-9]{32}_[a-f0-9]{8}
New Relic                       NRAK-        [A-Z0-9]{27}
Sentry, organisation            sntrys_      [A-Za-z0-9+/=_-]{40,}
Sentry, user                    sntryu_      [a-f0-9]{64}
PostHog                         phx_         [A-Za-z0-9]{30,}
Linear                          lin_api_     [A-Za-z0-9]{40}
Notion                          ntn_         [A-Za-z0-9]{40,}
Notion, earlier                 secret_      [A-Za-z0-9]{43}
Airtable                        pat          [A-Za-z0-9]{14}\\.[a-f0-9]{64}
Figma                           figd_        [A-Za-z0-9_-]{30,}
Shopify, admin                  shpat_       [a-fA-F0-9]{32}
Shopify, custom app             shpca_       [a-fA-F0-9]{32}
Shopify, private app            shppa_       [a-fA-F0-9]{32}
Shopify, shared secret          shpss_       [a-fA-F0-9]{32}
Square                          sq0csp-      [A-Za-z0-9_-]{40,}
Docker, personal                dckr_pat_    [A-Za-z0-9_-]{20,}
Docker, organisation            dckr_oat_    [A-Za-z0-9_-]{20,}
npm                             npm_         [A-Za-z0-9]{36}
PyPI                            pypi-        [A-Za-z0-9_-]{50,}
RubyGems                        rubygems_    [a-f0-9]{48}
crates.io                       cio          [A-Za-z0-9]{32}
1Password                       ops_         eyJ[A-Za-z0-9_-]{40,}
age                             AGE-SECRET-KEY-1  [A-Z0-9]{50,}
"""

_ASSIGNED = (
    r"(?P<kept>(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[_-]?key|apikey"
    r"|access[_-]?key|account[_-]?key|private[_-]?token|client[_-]?secret|auth[_-]?key)"
    r"(?:[_-]?(?:access[_-]?)?key|[_-]?token|[_-]?value)?"
    r"\\{0,3}[\"']?[ \t]{0,4}(?:=>|:=|[:=])[ \t]{0,4}\\{0,3}[\"']?)"
    r"(?!\[redacted\])(?!(?:[a-z_]\w{0,60}\.){1,8}[a-z_])(?!\w{0,80}[(\[{])"
    r"(?=[^\s\"'<>,;&]{0,120}?[0-9])(?=[^\s\"'<>,;&]{0,120}?[a-z])"
    r"[a-z0-9+/_-][^\s\"'<>,;&\\]{7,512}"
)
"""``PASSWORD=hunter2hunter``, ``"api_key": "0123abcd"``, ``x-api-key: …``: a value with letters and
digits, which no path of names (``settings.key2``) and no call is."""

# Keys that have no beginning of their own: what or whose, hints, pattern. A pattern that begins
# with ^ begins as keys do.
_OTHERS = r"""
bearer token          bearer            (?i)(?P<kept>bearer[ \t]{1,4})[a-z0-9._~+/=-]{20,}
basic credential      basic             (?i)(?P<kept>:\s{0,4}["']?basic[ \t]{1,4})[a-z0-9+/_=-]{8,}
Azure, account        AccountKey=       (?P<kept>AccountKey=)[A-Za-z0-9+/]{40,}={0,2}
Azure, shared access  SharedAccessKey=  (?P<kept>SharedAccessKey=)[A-Za-z0-9+/]{40,}={0,2}
Azure, signature      sig=              (?P<kept>[?&]sig=)[A-Za-z0-9%+/]{30,}={0,2}
Azure, client secret  Q~                ^[\w~.]{3}[0-9]Q~[\w~.-]{31,34}
Discord               .                 ^[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}
Discord, webhook      /api/webhooks/    (?P<kept>/api/webhooks/[0-9]{15,22}/)[\w-]{50,}
Slack, webhook        hooks.slack.com   (?P<kept>hooks\.slack\.com/[a-z]{6,10}/)[\w/-]{20,}
Telegram              :AA               ^[0-9]{8,10}:AA[\w-]{32,34}
Mailchimp             -us               ^[a-f0-9]{32}-us[0-9]{1,2}\b
Terraform             .atlasv1.         ^[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}
URL                   ://               (?P<kept>://)[^\s/:@"'\\]{0,100}:[^\s/@"'\\]{1,200}(?=@)
"""


def _prefixed() -> Iterator[Form]:
    for row in _PREFIXED.strip().splitlines():
        name, prefix, rest = re.split(r" {2,}", row)
        yield Form(
            name, (prefix,), re.compile(_begun_by(re.escape(prefix), rest))
        )


def _begun_by(prefix: str, rest: str) -> str:
    """A key's pattern with its prefix in front, which the engine looks for faster than `BEGINS`."""
    begins = rf"(?:(?<![A-Za-z0-9]{prefix})|(?<=\\[nrtbf]{prefix}))"
    return f"{prefix}{begins}{rest}"


def _others() -> Iterator[Form]:
    for row in _OTHERS.strip().splitlines():
        name, hint, pattern = re.split(r" {2,}", row)
        yield Form(
            name,
            (hint,),
            re.compile(re.sub(r"^\^", lambda _: BEGINS, pattern)),
        )


FORMS = (
    *_prefixed(),
    *_others(),
    Form("private key", ("PRIVATE KEY",), re.compile(_PEM)),
    Form(
        "assigned",
        ("pass", "pwd", "secret", "token", "key"),
        re.compile(f"(?i){_ASSIGNED}"),
    ),
)
"""All forms, in the order in which they are looked for."""
