"""Names that an editor completes, names from a setting, and what each event is told to."""

import os

import ullage
from ullage.documents import PolicyName
from ullage.wires import FormatName

policy: PolicyName = "three_layer"
format: FormatName = "openai-chat"


freed: dict[str, int] = {}


def told(event: ullage.Event) -> None:
    if event.kind == "pruned":
        freed[event.where] = event.tokens_before - event.tokens_after


session = ullage.Session(
    "gpt-5.4", policy=policy, format=format, on_event=told
)
chosen = ullage.Session("gpt-5.4", policy=os.environ.get("POLICY", "default"))
limited = ullage.Session(
    "house-7b", limits=ullage.Limits(window_tokens=32_000)
)
