"""What a session was asked to be, as every turn reads it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ullage.core.contract.format import Format, Formats
from ullage.core.contract.policy import Policy, Safeguards
from ullage.core.redaction import Redact
from ullage.core.turn.filling import Asking
from ullage.core.turn.lessons import Lessons
from ullage.core.values.limits import Limits


class Settings(Struct, frozen=True, kw_only=True):
    """What a session was asked to be. See `ullage.Session` for the meaning of each.

    Attributes:
        safeguards: what runs behind the policy.
        formats: the formats that there are.
        lessons: what the provider's answers taught of its limits.
        asking: who is asked for summaries.
        user_tools: tools of the host's own whose results are the user's words, beside
            `ullage.core.values.authors.QUESTION_TOOLS`.
        policy_fingerprint: of the policy, and of the settings that decide with it
            (`ullage.policy.fingerprint`).
        outlines: whether an outline of the history is kept beside the ledger
            (`ullage.core.history.outline`).
        agent: the agent or program that asks, for its outlines.
        client_session: its own name of the session, for its outlines.
        subagent: its own name of the sub-agent that asks, for its outlines.
        may_add_tools: whether the recall tools may be added to the request at hand; False where
            its provider refused them.
    """

    model: str
    policy: Policy
    safeguards: Safeguards
    formats: Formats
    limits: Limits | None = None
    lessons: Lessons = Lessons()
    format: Format | None = None
    tenant: str = ""
    recall: bool | Literal["auto", "host"] = "auto"
    joins: bool = True
    repair: bool = False
    asking: Asking | None = None
    redact: Redact | None = None
    user_tools: tuple[str, ...] = ()
    policy_fingerprint: str = ""
    outlines: bool = False
    agent: str = ""
    client_session: str = ""
    subagent: str = ""
    may_add_tools: bool = True
