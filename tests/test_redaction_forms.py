"""Every form of key that is known is found, in whatever an output puts around it; code is left."""

import base64
import json

import pytest

from ullage.core.redaction import REDACTED, common_keys
from ullage.core.redaction.forms import FORMS

HEX = "0123456789abcdef" * 4
MIXED = "aB3dE5fG7hJ9kL1m" * 8
UPPER = "A1B2C3D4E5F6G7H8" * 4

SAMPLES = {
    "OpenAI, Anthropic, OpenRouter": "sk-ant-api03-" + MIXED[:40],
    "xAI": "xai-" + MIXED[:80],
    "Groq": "gsk_" + MIXED[:52],
    "Perplexity": "pplx-" + MIXED[:48],
    "Replicate": "r8_" + MIXED[:37],
    "Fireworks": "fw_" + MIXED[:24],
    "NVIDIA": "nvapi-" + MIXED[:64],
    "Together": "tgp_v1_" + MIXED[:43],
    "Cerebras": "csk-" + MIXED[:48],
    "Voyage": "pa-" + MIXED[:43],
    "Tavily": "tvly-dev-" + MIXED[:32],
    "E2B": "e2b_" + HEX[:40],
    "Firecrawl": "fc-" + HEX[:32],
    "LangSmith": f"lsv2_pt_{HEX[:32]}_{HEX[:10]}",
    "Hugging Face": "hf_" + MIXED[:34],
    "Hugging Face, organisation": "api_org_" + MIXED[:34],
    "Stripe, secret": "sk_live_" + MIXED[:24],
    "Stripe, restricted": "rk_test_" + MIXED[:24],
    "Stripe, webhook": "whsec_" + MIXED[:32],
    "AWS, long-term": "AKIA" + UPPER[:16],
    "AWS, temporary": "ASIA" + UPPER[:16],
    "AWS, bearer": "ABSK" + MIXED[:120],
    "Google, API": "AIza" + MIXED[:35],
    "Google, access token": "ya29." + MIXED[:100],
    "Google, client secret": "GOCSPX-" + MIXED[:28],
    "Google, refresh token": "1//0" + MIXED[:60],
    "GitHub, personal": "ghp_" + MIXED[:36],
    "GitHub, OAuth": "gho_" + MIXED[:36],
    "GitHub, user to server": "ghu_" + MIXED[:36],
    "GitHub, server to server": "ghs_" + MIXED[:60],
    "GitHub, refresh": "ghr_" + MIXED[:76],
    "GitHub, fine-grained": "github_pat_" + MIXED[:82],
    "GitLab, personal": "glpat-" + MIXED[:20],
    "GitLab, trigger": "glptt-" + HEX[:40],
    "GitLab, deploy": "gldt-" + MIXED[:20],
    "GitLab, runner": "glrt-" + MIXED[:20],
    "GitLab, job": "glcbt-64_" + MIXED[:20],
    "Atlassian": "ATATT3" + MIXED[:120],
    "Atlassian, connect": "ATCTT3" + MIXED[:120],
    "Bitbucket": "ATBB" + MIXED[:32],
    "Slack": "xoxb-123456789012-" + MIXED[:24],
    "Slack, app": f"xapp-1-A012345-123456-{HEX}",
    "SendGrid": f"SG.{MIXED[:22]}.{MIXED[:43]}",
    "Mailgun": "key-" + HEX[:32],
    "Resend": f"re_{MIXED[:8]}_{MIXED[:24]}",
    "Twilio": "SK" + HEX[:32],
    "DigitalOcean, personal": "dop_v1_" + HEX,
    "DigitalOcean, OAuth": "doo_v1_" + HEX,
    "DigitalOcean, refresh": "dor_v1_" + HEX,
    "Vault, service": "hvs." + MIXED[:90],
    "Vault, batch": "hvb." + MIXED[:120],
    "Heroku": "HRKU-" + MIXED[:60],
    "Fly": "fm2_" + MIXED[:100],
    "Netlify": "nfp_" + MIXED[:36],
    "Doppler": "dp.pt." + MIXED[:43],
    "PlanetScale": "pscale_pw_" + MIXED[:43],
    "Supabase, personal": "sbp_" + HEX[:40],
    "Supabase, secret": "sb_secret_" + MIXED[:31],
    "Neon": "napi_" + HEX,
    "Databricks": "dapi" + HEX[:32],
    "Pulumi": "pul-" + HEX[:40],
    "Grafana, cloud": "glc_" + MIXED[:80],
    "Grafana, service account": f"glsa_{MIXED[:32]}_{HEX[:8]}",
    "New Relic": "NRAK-" + UPPER[:27],
    "Sentry, organisation": "sntrys_" + MIXED[:100],
    "Sentry, user": "sntryu_" + HEX,
    "PostHog": "phx_" + MIXED[:43],
    "Linear": "lin_api_" + MIXED[:40],
    "Notion": "ntn_" + MIXED[:46],
    "Notion, earlier": "secret_" + MIXED[:43],
    "Figma": "figd_" + MIXED[:40],
    "Shopify, admin": "shpat_" + HEX[:32],
    "Shopify, custom app": "shpca_" + HEX[:32],
    "Shopify, private app": "shppa_" + HEX[:32],
    "Shopify, shared secret": "shpss_" + HEX[:32],
    "Square": "sq0csp-" + MIXED[:43],
    "Docker, personal": "dckr_pat_" + MIXED[:27],
    "Docker, organisation": "dckr_oat_" + MIXED[:32],
    "npm": "npm_" + MIXED[:36],
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + MIXED[:100],
    "RubyGems": "rubygems_" + HEX[:48],
    "crates.io": "cio" + MIXED[:32],
    "1Password": "ops_eyJ" + MIXED[:100],
    "age": "AGE-SECRET-KEY-1" + UPPER[:58],
    "JSON Web Token": f"eyJ{MIXED[:30]}.eyJ{MIXED[:60]}.{MIXED[:43]}",
    "Azure, client secret": f"aB38Q~{MIXED[:34]}",
    "Discord": f"MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.{MIXED[:27]}",
    "Telegram": "123456789:AA" + MIXED[:33],
    "Mailchimp": f"{HEX[:32]}-us21",
    "Terraform": f"{MIXED[:14]}.atlasv1.{MIXED[:67]}",
    "Airtable": f"pat{MIXED[:14]}.{HEX}",
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{MIXED}\n-----END RSA PRIVATE KEY-----",
}
"""One whole secret of each form that has one."""

BEHIND = {
    "bearer token": ("Authorization: Bearer ", MIXED[:40]),
    "basic credential": ("Authorization: Basic ", "dXNlcjpodW50ZXIyc2VjcmV0"),
    "Azure, account": ("AccountName=a;AccountKey=", MIXED[:86] + "=="),
    "Azure, shared access": ("SharedAccessKey=", MIXED[:43] + "="),
    "Azure, signature": (
        "https://a.example/b?se=2026&sig=",
        MIXED[:40] + "%3D",
    ),
    "Discord, webhook": (
        "https://discord.com/api/webhooks/123456789012345678/",
        MIXED[:68],
    ),
    "Slack, webhook": (
        "https://hooks.slack.com/services/",
        f"T0123/B0123/{MIXED[:24]}",
    ),
    "URL": ("postgres://", "user:hunter2"),
    "assigned": ("password=", "hunter2secret"),
}
"""What stands in front of a secret that has no form of its own, and stays; and the secret."""

ROUNDS = {
    "alone": lambda text: text,
    "in a sentence": lambda text: f"use {text} for it",
    "in JSON": lambda text: json.dumps({"k": text}),
    "in JSON in JSON": lambda text: json.dumps(json.dumps({"k": text})),
    "in an environment": lambda text: f"HOME=/root\nKEY={text}\nPATH=/bin",
    "in YAML": lambda text: f"env:\n  key: {text}\n",
    "in quotes": lambda text: f"key = '{text}'",
}
around = pytest.mark.parametrize("around", ROUNDS.values(), ids=ROUNDS)


def test_there_is_a_sample_of_every_form():
    assert sorted([*SAMPLES, *BEHIND]) == sorted(form.name for form in FORMS)


@around
@pytest.mark.parametrize("name", SAMPLES)
def test_a_key_is_taken_out_and_nothing_else(name, around):
    (form,) = (form for form in FORMS if form.name == name)
    assert form.pattern.search(SAMPLES[name]) or name == "private key"
    text = around(SAMPLES[name])
    shown = common_keys(text)
    assert MIXED[:14] not in shown
    assert HEX[:16] not in shown
    assert UPPER[:16] not in shown
    assert shown == around("@").replace("@", REDACTED)
    assert common_keys(shown) is shown


@around
@pytest.mark.parametrize("name", BEHIND)
def test_what_leads_to_a_secret_stays(name, around):
    before, secret = BEHIND[name]
    behind = "@db/x" if name == "URL" else ""
    text = around(before + secret + behind)
    shown = common_keys(text)
    assert secret not in shown
    assert shown == around(f"{before}@@{behind}").replace("@@", REDACTED, 1)


ASSIGNED = [
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "x-api-key: 0123456789abcdef0123456789abcdef",
    "DB_PASSWORD=hunter2secret",
    'password: "hunter2secret"',
    "{'client_secret': 'a1b2c3d4e5f6'}",
    '{"apiKey": "a1b2c3d4e5f6"}',
    '"{\\"api_key\\": \\"a1b2c3d4e5f6\\"}"',
    "export GITHUB_TOKEN=a1b2c3d4e5f6",
    "secret => 'a1b2c3d4e5f6'",
    "accessKey := a1b2c3d4e5f6",
    "Private-Token: a1b2c3d4e5f6",
    "passphrase=correct4horse",
]


@pytest.mark.parametrize("text", ASSIGNED)
def test_what_is_assigned_to_the_name_of_a_secret_is_one(text):
    shown = common_keys(text)
    assert REDACTED in shown
    assert not any(
        part in shown
        for part in ("a1b2", "hunter2", "wJalr", "01234", "correct4")
    )
    assert common_keys(shown) == shown


CODE = """
max_tokens: 4096, output_tokens=12345678, token_count = 2 ** 20
password = getpass.getpass("Password 1: ")
api_key = os.environ["OPENAI_API_KEY_2"]
api_key=settings.providers2.key
token = response2.json()["token"]
secret = secrets.token_hex(32)
def login(password: str, token: str | None = None) -> None: ...
if (password == other_password2) return;
tokens = tokenizer.encode(text1)
The password is wrong. Basic authentication, a basic understanding of it.
https://example.org:8080/a@b task-force sk-1 AKIA gh_x risk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
uuid 550e8400-e29b-41d4-a716-446655440000, sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
secretName: my-secret, keyboard: qwerty, primary_key: id
"""


def test_code_and_prose_stay_the_very_same_object():
    assert common_keys(CODE) is CODE


def test_what_is_in_another_encoding_stays():
    """It is documented: what is encoded has no form to be told by."""
    packed = base64.b64encode(SAMPLES["Groq"].encode()).decode()
    assert common_keys(packed) is packed


HOSTILE = [
    *(
        "-----BEGIN PRIVATE KEY-----",
        "eyJa.",
        "://a:",
        "password=",
        "basic ",
        "api_key: a.b.c.",
    ),
    *(
        "secret=a1",
        "MAAAAAAAAAAAAAAAAAAAAAAA.",
        "pat",
        "0:AA",
        "hooks.slack.com/services/",
        "sk_",
    ),
]


@pytest.mark.parametrize("part", HOSTILE)
def test_a_hostile_text_takes_no_longer_than_any_other(part):
    text = part * (600_000 // len(part))
    assert len(common_keys(text)) <= 2 * len(text)
