"""The page as text: it is whole, it is closed, and content in it is inert."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

from msgspec.structs import replace

from tests.replay.test_run import small_run
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.engines import LocalEngine
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.many import Job, ResultFile, replay_all
from ullage.tools.replay.report import (
    Album,
    DrawnReplay,
    Picture,
    packed,
    page_of,
)
from ullage.tools.replay.rows import row_of, rows_of
from ullage.tools.replay.run import replay_run
from ullage.tools.replay.tracer import Tracer

EVIL = "</script ></script><script>document.title='taken'</script><img src=x onerror=alert(1)>"
PROFILE = PROFILES["anthropic-5m"]


def picture(run, window_tokens=16_000, policies=("default",)):
    """One run drawn under some policies, and the rows of its table."""
    traces, found = [], []
    for policy in policies:
        tracer = Tracer(Judge().text)
        replayed = replay_run(
            run,
            window_tokens,
            profiles=[PROFILE],
            policy=policy,
            on_view=tracer,
        )
        traces.append(packed(tracer.trace(policy)))
        found.append(("runs.jsonl", replayed))
    drawn = Picture(
        name=run.id,
        calls=found[0][1].calls,
        peak=found[0][1].raw_peak_tokens,
        story=packed(tracer.story(run)),
        traces=traces,
    )
    return drawn, rows_of(found, row_of)


def evil_run():
    """A run whose every text tries to leave its place."""
    run = small_run("openai-chat", 12)
    for message in run.messages:
        if isinstance(message.get("content"), str):
            message["content"] = EVIL + message["content"]
    return run


class Elements(HTMLParser):
    """The tags of a page, and what stands in each script and style."""

    def __init__(self):
        super().__init__()
        self.tags, self.bodies, self.within = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.bodies.append("")
        self.within = True

    def handle_data(self, data):
        if self.within:
            self.bodies[-1] += data

    def handle_endtag(self, tag):
        self.within = False


def parsed(page):
    elements = Elements()
    elements.feed(page)
    return elements


def evil_page():
    drawn, rows = picture(evil_run())
    return page_of(
        EVIL,
        EVIL,
        pictures=[drawn],
        rows=rows,
        profiles=[PROFILE],
        command=EVIL,
        notes=[EVIL],
    )


def test_content_makes_no_element_and_ends_none():
    elements = parsed(evil_page())
    scripts = [
        attributes for tag, attributes in elements.tags if tag == "script"
    ]
    kinds = [attributes.get("type") for attributes in scripts]
    assert kinds == ["application/json", "text/plain", "text/plain", None]
    assert "img" not in {tag for tag, _ in elements.tags}
    bodies = zip(elements.tags, elements.bodies, strict=True)
    (summary,) = (
        text for (_, a), text in bodies if a.get("type") == "application/json"
    )
    assert "<" not in summary
    assert json.loads(summary)["lead"] == EVIL
    assert not any(
        name.startswith("on")
        for _, attributes in elements.tags
        for name in attributes
    )


def test_the_page_runs_its_own_script_and_style_and_may_do_nothing_else():
    elements = parsed(evil_page())
    by_tag = list(zip(elements.tags, elements.bodies, strict=True))
    (policy,) = (a["content"] for (_, a), _ in by_tag if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        body = next(
            text for (name, a), text in by_tag if name == tag and not a
        )
        digest = base64.b64encode(
            hashlib.sha256(body.encode()).digest()
        ).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_nothing_is_fetched():
    elements = parsed(evil_page())
    places = [
        v
        for _, a in elements.tags
        for k, v in a.items()
        if k in ("src", "href")
    ]
    assert set(places) <= {"data:,", "#outcome"}
    bodies = [t for (tag, a), t in zip(elements.tags, elements.bodies, strict=True)
              if tag in ("script", "style") and not a]  # fmt: skip
    addresses = re.findall(r"https?://\S+", "".join(bodies))
    assert set(addresses) == {'http://www.w3.org/2000/svg";'}, (
        "the name of SVG, never fetched"
    )


def test_what_is_packed_comes_out_again():
    drawn, _ = picture(small_run("openai-chat", 2))
    page = page_of("t", "l", pictures=[drawn])
    elements = parsed(page)
    (story, trace) = (
        json.loads(zlib.decompress(base64.b64decode(text)))
        for (tag, a), text in zip(elements.tags, elements.bodies, strict=True)
        if a.get("type") == "text/plain"
    )
    assert (story["run"], trace["policy"]) == ("small", "default")


def drawn(name, peak, policy="default", line=1):
    sound = replay_run(small_run("openai-chat", 1), 16_000, profiles=[PROFILE])
    replayed = replace(sound, run=name, raw_peak_tokens=peak, policy=policy)
    return DrawnReplay(
        replayed=replayed, line=line, story=b"s", trace=policy.encode()
    )


def test_the_largest_runs_are_drawn_each_with_its_tries_in_order():
    album = Album(2)
    for name, peak in (("small", 10), ("large", 30), ("middle", 20)):
        for policy in ("b", "a"):
            album.add(drawn(name, peak, policy))
    tries = [("a", 16_000), ("b", 16_000), ("missing", 16_000)]
    pictures = album.pictures(tries)
    assert [each.name for each in pictures] == ["large", "middle"]
    assert [each.traces for each in pictures] == [[b"a", b"b"]] * 2


def test_two_runs_of_one_name_are_two():
    album = Album(4)
    album.add(drawn("one", 10, line=1))
    album.add(drawn("one", 20, line=2))
    assert [each.peak for each in album.pictures([("default", 16_000)])] == [
        20,
        10,
    ]


def test_turns_are_made_when_asked_for_and_are_not_kept(tmp_path):
    path, run = tmp_path / "kept.jsonl", small_run("openai-chat", 2)
    tries = (("default", 16_000),)
    plain = Job((PROFILE,))
    for job, kind in (
        (Job((PROFILE,), draws=True), DrawnReplay),
        (plain, type(None)),
    ):
        kept = ResultFile(path)
        ((_, outcome, _),) = replay_all(
            iter([("f", run, 0)]), tries, job, LocalEngine(), kept
        )
        assert isinstance(outcome, DrawnReplay) == (kind is DrawnReplay)
    assert b"story" not in path.read_bytes()


def test_a_chart_is_named_by_the_budget_that_was_asked_for():
    job, run = Job((PROFILE,), draws=True), small_run("openai-chat", 4)
    for room, share in ((0.2, 0.2), (16_000, None)):
        kept = ResultFile(None)
        tries = (("default", room),)
        ((_, outcome, _),) = replay_all(
            iter([("f", run, 0)]), tries, job, LocalEngine(), kept
        )
        assert json.loads(zlib.decompress(outcome.trace))["share"] == share
