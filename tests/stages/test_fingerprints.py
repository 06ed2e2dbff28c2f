"""What decides is known by what it shows, in every process, and by every setting it has."""

import os
import subprocess
import sys
from functools import partial

import pytest
from msgspec.structs import fields, replace

from tests.rewording import ON_ARRIVAL, WORDS, forget, reword
from ullage import Policy, Session
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.core.history.ledger import arrival_part
from ullage.core.redaction import common_keys
from ullage.documents import preset
from ullage.documents.presets.continuation import (
    ContinuationSettings,
    continuation,
)
from ullage.documents.presets.multi_stage import (
    MultiStageSettings,
    multi_stage,
)
from ullage.documents.presets.output_cache import (
    CompactionConfig,
    ToolOutputCacheConfig,
    output_cache,
)
from ullage.documents.presets.three_layer import (
    ThreeLayerSettings,
    three_layer,
)
from ullage.documents.presets.token_budget import (
    TokenBudgetSettings,
    token_budget,
)
from ullage.policy import (
    DEFAULT,
    SUMMARISED,
    ProposedEdit,
    Replace,
    fingerprint,
)
from ullage.policy.stages.compact import compact
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.record import record
from ullage.policy.stages.samples import arrivals
from ullage.policy.stages.truncate import by_kind, truncate

PRESETS = (
    "default",
    "continuation",
    "multi_stage",
    "output_cache",
    "three_layer",
    "token_budget",
)


def own(policy, **more):
    return replace(policy, without_recall=None, **more)


def first_lines(window, /, *, lines=5):
    """What a user writes: the first lines of each result."""
    cuts = []
    for spot in window.results(window.fresh, window.size):
        output = window.transcript.output(spot)
        shown = "\n".join(output.text.splitlines()[:lines])
        text = f"{shown}\n{window.words.aside(output.ref, len(output.text))}"
        if len(text) < len(output.text):
            place = window.transcript.address(spot)
            cuts.append(
                ProposedEdit(
                    Replace(place, output.ref, text, "truncated", "lines"),
                    (output,),
                )
            )
    return cuts


def fingerprints():
    """Of the presets, and of a policy with stages of a user's."""
    mine = Policy(
        name="mine-1",
        on_arrival=(partial(first_lines, lines=7), lambda window, /: ()),
        under_pressure=(
            partial(first_lines, lines=frozenset(("a", "b", "c"))),
        ),
    )
    policies = [*map(preset, PRESETS), SUMMARISED, mine]
    return [
        fingerprint(policy, common_keys, ("ask_me",)) for policy in policies
    ]


def test_a_fingerprint_is_the_same_in_every_process():
    script = "from tests.stages.test_fingerprints import fingerprints; print(fingerprints())"
    for seed in ("0", "1", "2"):
        env = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        command = [sys.executable, "-c", script]
        run = subprocess.run(
            command, env=env, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == str(fingerprints()), run.stderr


def test_an_import_makes_no_samples_and_runs_no_stage():
    script = (
        "import ullage\nfrom ullage.policy.stages import fingerprints, samples\n"
        "from ullage.policy import DEFAULT\n"
        "assert not samples.arrivals.cache_info().currsize\n"
        "assert not fingerprints._fingerprint.cache_info().currsize\n"
        "ullage.Session('gpt-4.1')\n"
        "ullage.Session('gpt-4.1', tenant='ada')\n"
        "assert fingerprints._fingerprint.cache_info()[:2] == (1, 1)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_nothing_is_read_or_written_for_it():
    forget()
    opened = []
    sys.addaudithook(
        lambda name, _: opened.append(name) if opened is not None else None
    )
    fingerprint(DEFAULT)
    seen, opened = {*opened}, None
    assert not {
        name
        for name in seen
        if name.startswith(("open", "socket", "subprocess", "os."))
    }


def test_each_sample_is_of_another_kind():
    names = [sample.name for sample in arrivals()]
    assert len({*names}) == len(names) >= 12
    assert arrivals() is arrivals()


def test_every_sample_but_those_that_stay_is_cut_by_some_policy():
    """A sample that nothing cuts would show nothing of a change."""
    stay = {
        "a short text",
        "an image",
        "a program's result",
        "an answer of the user's",
        "a table",
    }
    asked = []

    def watch(window, /):
        cuts = truncate(
            window,
            shape=partial(
                by_kind, limit_chars=dict.fromkeys(LIMIT_CHARS, 500)
            ),
        )
        if window.size > 1:
            asked.append(bool(cuts))
        return cuts

    fingerprint(Policy(name="watching", on_arrival=(watch,)))
    cut = {
        sample.name
        for sample, is_cut in zip(arrivals(), asked[:14], strict=True)
        if is_cut
    }
    assert {sample.name for sample in arrivals()} - cut <= stay


# ── stages of a user's ───────────────────────────────────────────────────────────────────


def test_a_users_stage_is_known_by_its_settings_its_policys_name_and_what_it_shows():
    def policy(stage, name="mine-1"):
        return Policy(name=name, on_arrival=(stage,))

    first = fingerprint(policy(first_lines))
    assert first == fingerprint(policy(partial(first_lines, lines=5)))
    assert first != fingerprint(policy(partial(first_lines, lines=6)))
    assert first != fingerprint(policy(first_lines, "mine-2"))

    def made(word):
        def stage(window, /):
            return [
                cut._replace(edit=replace(cut.edit, text=word))
                for cut in first_lines(window)
            ]

        return stage

    def twin(kind):
        def stage(window, /):
            words = {"a": "one", "b": "two"}
            return made(words[kind[-1]])(window)

        return stage

    assert fingerprint(policy(made("one"))) != fingerprint(policy(made("two")))
    assert arrival_part(fingerprint(policy(twin("a")))) != arrival_part(
        fingerprint(policy(twin("b")))
    )


def test_two_functions_of_one_name_differ_by_what_they_show():
    here = {}
    for word in ("one", "two"):
        source = f"def stage(window, /):\n    return shown(window, {word!r})"
        exec(source, names := {"shown": _worded, "__name__": __name__})
        here[word] = fingerprint(
            Policy(name="mine-1", on_arrival=(names["stage"],))
        )
    assert here["one"] != here["two"]


def _worded(window, word):
    return [
        cut._replace(edit=replace(cut.edit, text=word))
        for cut in first_lines(window)
    ]


def test_a_stage_that_fails_on_a_sample_is_known_by_its_error():
    def failing(error):
        def stage(window, /):
            if window.size > 1:
                raise known[error]("tide")
            return ()

        return stage

    known = {"value": ValueError, "key": KeyError}
    policies = [
        Policy(name="mine-1", on_arrival=(failing(error),)) for error in known
    ]
    Session("gpt-4.1", policy=policies[0])
    assert len({fingerprint(policy) for policy in policies}) == 2


def test_what_a_user_decides_under_pressure_is_not_run():
    def stage(window, /):
        raise AssertionError("it was asked")

    policy = Policy(
        name="mine-1", under_pressure=(stage,), guard=stage, on_request=stage
    )
    first = fingerprint(policy)
    assert first != fingerprint(replace(policy, name="mine-2"))
    assert arrival_part(first) == arrival_part(
        fingerprint(replace(policy, name="mine-2"))
    )


def test_a_users_stage_is_run_once_for_all_sessions_of_a_policy():
    asked = []

    def stage(window, /):
        asked.append(window.size)
        return ()

    policy = Policy(name="mine-1", on_arrival=(stage,))
    for tenant in ("ada", "bo"):
        Session("gpt-4.1", policy=policy, tenant=tenant)
        assert len(asked) == 2 * 2 * len(arrivals()), (
            "two boundaries, with recall and without"
        )


class Engine:
    """Takes secrets out with something that no other process could know."""

    def __init__(self, word):
        self.word = word
        self.lock = object()

    def redact(self, text):
        return text.replace("tide", self.word)


def test_what_redacts_is_known_by_name_and_by_what_it_shows():
    ada, bo = Engine("ada"), Engine("bo")
    assert fingerprint(DEFAULT, ada.redact) == fingerprint(
        DEFAULT, Engine("ada").redact
    )
    assert (
        len(
            {
                fingerprint(DEFAULT, each)
                for each in (None, ada.redact, bo.redact, str)
            }
        )
        == 4
    )

    def failing(text):
        raise ValueError(text)

    assert fingerprint(DEFAULT, failing)


# ── words ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reworded(monkeypatch):
    """Puts another word in place of one, for a test."""
    forget()
    yield partial(reword, monkeypatch)
    forget()


@pytest.mark.parametrize(("place", "old", "new", "part"), WORDS)
def test_one_changed_word_changes_the_fingerprint(
    reworded, place, old, new, part
):
    before = fingerprint(SUMMARISED)
    reworded(place, old, new)
    after = fingerprint(SUMMARISED)
    assert before != after
    assert (arrival_part(before) != arrival_part(after)) == (
        part == ON_ARRIVAL
    )


def test_what_is_decided_under_pressure_shows_nothing_otherwise_that_was_sent():
    policies = [
        own(DEFAULT),
        own(DEFAULT, under_pressure=()),
        own(DEFAULT, guard=None),
        own(DEFAULT, ahead=compact),
        own(DEFAULT, diagnostic="{count}"),
    ]
    prints = [fingerprint(policy) for policy in policies]
    assert len({*prints}) == len(prints)
    assert len({*map(arrival_part, prints)}) == 1


# ── every setting ────────────────────────────────────────────────────────────────────────

OTHER = {
    "enable_disk_spillover": True,
    "spill_directory": "elsewhere",
    "tool_output_limits": {"bash": 100},
    "compaction_threshold": 0.91,
    "compaction_target_percent": 51,
    "prune_threshold": 0.86,
    "COMPACTION_BUDGET_TOKENS": 32_100,
    "context_budget_tokens": 30_000,
    "enabled": False,
    "auto": False,
    "threshold_ratio": 0.81,
    "model": "gpt-4.1",
    "summary_prompt": "Write a <summary>.",
    "summary_directives": ("Name files.",),
    "retain_prompt": "Keep a <retain>.",
    "retain_directives": ("Keep refs.",),
    "compaction": CompactionConfig(enabled=False),
}
"""Another value of each setting that is no number to add one to. No setting decides nothing."""


def settings_of(kind, make):
    for field in fields(kind):
        value = getattr(kind(), field.name)
        other = OTHER[field.name] if field.name in OTHER else value + 1
        changed = partial(make, kind(**{field.name: other}))
        yield pytest.param(make, changed, id=f"{kind.__name__}-{field.name}")


def cache_of(compaction):
    return output_cache(ToolOutputCacheConfig(compaction=compaction))


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        *settings_of(TokenBudgetSettings, token_budget),
        *settings_of(MultiStageSettings, multi_stage),
        *settings_of(ContinuationSettings, continuation),
        *settings_of(ThreeLayerSettings, three_layer),
        *settings_of(ToolOutputCacheConfig, output_cache),
    ],
)
def test_every_setting_of_every_preset_is_part_of_the_fingerprint(
    make, changed
):
    assert fingerprint(make()) != fingerprint(changed())


@pytest.mark.parametrize(
    "name", [field.name for field in fields(CompactionConfig)]
)
def test_every_setting_of_a_compaction_is_part_of_the_fingerprint(name):
    value = getattr(CompactionConfig(), name)
    other = OTHER[name] if name in OTHER else value + 1
    assert fingerprint(output_cache()) != fingerprint(
        cache_of(CompactionConfig(**{name: other}))
    )


@pytest.mark.parametrize("function", [truncate, record, emergency, compact])
def test_every_keyword_of_our_stages_is_part_of_the_fingerprint(function):
    prints = {
        fingerprint(own(DEFAULT, guard=function, on_arrival=(function,)))
    }
    for name in function.__kwdefaults__:
        stage = partial(function, **{name: first_lines})
        prints.add(fingerprint(own(DEFAULT, guard=stage, on_arrival=(stage,))))
    assert len(prints) == 1 + len(function.__kwdefaults__)
