"""The page in a real browser: what a person sees, does and hears of it."""

import sys
from typing import NamedTuple

import pytest

from tests.cli.terminal import ullage
from tests.replay.evidence.conversation import errand
from tests.replay.test_report import EVIL, PROFILE, evil_run, picture
from tests.replay.test_run import small_run
from tests.session.provider import Provider
from tests.session.test_why import talked
from ullage.tools.replay.report import page_of
from ullage.tools.replay.report.pages import INDEX, pages_of_replays
from ullage.tools.replay.rows import row_of, rows_of
from ullage.tools.replay.run import replay_run

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("the browser")]
POLICIES = ("default", "token_budget")


def written(
    folder,
    run,
    policies=POLICIES,
    title="What would a policy have done?",
    **more,
):
    drawn, rows = picture(run, policies=policies)
    path = folder / "report.html"
    more |= {"rows": rows, "profiles": [PROFILE]}
    page = page_of(title, "Runs.", pictures=[drawn], **more)
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return written(
        tmp_path_factory.mktemp("report"), small_run("openai-chat", 40)
    )


def conversation_page(folder):
    """The page of a conversation whose cache broke in many ways, from its store."""
    path, store = folder / "conversation.html", folder / "kept.db"
    with pytest.MonkeyPatch.context() as patch:
        talked(store, Provider().watch(patch))[0].close()
    ran = ullage("inspect", str(store), "--html", str(path))
    assert ran.status == 0, ran.err
    return path


def test_it_says_what_left_the_window_and_why_the_cache_broke(
    opened, tmp_path
):
    page = opened(conversation_page(tmp_path))
    breaks = page.locator("#why-breaks li")
    expect(breaks.first).to_contain_text("The system prompt changed at ")
    expect(page.locator("#why-breaks")).to_contain_text("By the client: 2 ")
    expect(page.locator("#why-batches li").first).to_contain_text("by ann: ")
    tables = page.locator("#why-tables table")
    assert tables.count() == 2, "by tool, and by file"
    expect(tables.first.locator("tbody th")).to_have_text("read")


class Outcome(NamedTuple):
    pictures: list
    rows: list
    profiles: list


def expect(locator):
    """Waits for what it says, without a word of script in the page (its policy forbids that)."""
    from playwright.sync_api import expect

    return expect(locator)


def turn(page):
    return page.locator("#where").text_content()


def test_each_policy_has_its_row_its_chart_and_its_marks(opened, report):
    page = opened(report)
    assert page.locator("#table tbody tr").count() == len(POLICIES)
    assert page.locator(".chart").count() == len(POLICIES)
    assert page.locator(".chart:first-child .mark").count() > 0
    label = page.locator(".chart svg").first.get_attribute("aria-label")
    assert "40 turns" in label
    assert "default" in label


@pytest.fixture(scope="module")
def errands(tmp_path_factory):
    """Of a run in which old results are needed again."""
    found = [("errand", replay_run(errand(1), 8_000, profiles=[PROFILE]))]
    rows = rows_of(found, row_of)
    drawn, _ = picture(small_run("openai-chat", 4))
    path = tmp_path_factory.mktemp("errands") / "report.html"
    page = {"pictures": [drawn], "rows": rows, "profiles": [PROFILE]}
    path.write_text(page_of("Errands", "Runs.", **page), encoding="utf-8")
    return path


def test_a_row_tells_what_was_needed_and_what_it_cost(opened, errands):
    page = opened(errands)
    (row,) = page.locator("#table tbody tr").all()
    told = row.text_content()
    assert "recallable, 0% lost" in told
    assert " of $" in told
    assert page.locator("#evidence-bars svg").count() > 0


def test_it_opens_with_the_window_and_ends_with_the_table(opened, errands):
    page = opened(errands)
    order = page.evaluate(
        "[...document.querySelectorAll('section:not([hidden])')].map((s) => s.id)"
    )
    assert order == ["outcome", "run", "evidence", "session", "policies"]
    labels = page.locator(".chart svg text").all_text_contents()
    assert any(text.startswith("limit ") for text in labels)
    assert any(text.startswith("without ullage ") for text in labels)
    assert {"turn 1", "turn 4"} <= set(labels)


def figures(page):
    return page.locator("#outcome dt").all_text_contents()


def test_what_it_saved_and_whether_anything_was_lost_comes_before_all(
    opened, errands
):
    page = opened(errands)
    money, needed, peak = figures(page)
    assert money.startswith("$")
    assert money.endswith((" saved", " more"))
    assert needed in ("Nothing lost", "Nothing old was needed")
    assert peak.endswith(" tokens at most")
    words = page.locator("#outcome dd").all_text_contents()
    assert "Answers and prompt caching are counted." in words[0]
    assert (
        "of what the agent needed from older results was in view" in words[1]
    )
    top = page.locator("#outcome").bounding_box()["y"]
    assert top < page.locator("#run").bounding_box()["y"]


def test_each_policy_has_an_outcome_of_its_own(opened, report):
    page = opened(report)
    names = page.locator("#outcome h3").all_text_contents()
    assert [name.split(" · ")[0] for name in names] == [*POLICIES]
    assert len(figures(page)) == 3 * len(POLICIES)


def test_a_page_of_sums_leads_to_a_page_a_run_and_holds_no_text_of_them(
    opened, tmp_path
):
    run = small_run("openai-chat", 12)
    drawn, rows = picture(run)
    replays = Outcome([drawn], rows, [PROFILE])
    pages = pages_of_replays(replays)
    assert [*pages] == [INDEX, "run-1.html"]
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / name for name in pages]
    page = opened(files[0], until="#outcome dt", beside=files)
    assert len(figures(page)) == 3
    assert not page.locator("#turns").is_visible()
    page.locator("#runs-drawn a").click()
    expect(page.locator("#where")).to_have_text("turn 12 of 12")
    assert page.locator("#outcome dt").first.text_content()
    task = next(
        message["content"]
        for message in run.messages
        if message["role"] == "user"
    )
    assert task[:40] in page.locator("#run-named").text_content()
    assert task[:40] not in pages[INDEX]


def test_the_run_is_named_and_what_it_came_to_is_said_in_words(opened, report):
    page = opened(report)
    named = page.locator("#run-named").text_content()
    assert named.startswith("“")
    assert named.endswith("” · gpt-4.1 · small")
    said = page.locator("#said span")
    assert said.count() == len(POLICIES)
    assert "tokens were sent instead of" in said.first.text_content()
    assert " in 40 calls for $" in said.first.text_content()
    assert "prompt caching counted" in said.first.text_content()


def test_a_link_opens_the_turn_and_the_policy_it_was_made_at(opened, report):
    page = opened(report)
    page.locator("#tries").select_option("1")
    page.evaluate("go(11)")
    expect(page.locator("#where")).to_have_text("turn 12 of 40")
    link = page.evaluate("location.hash")
    assert link == "#run=1&shown=2&turn=12"
    other = opened(report)
    other.evaluate("(hash) => { location.hash = hash }", link)
    expect(other.locator("#where")).to_have_text("turn 12 of 40")
    assert other.locator("#tries").input_value() == "1"
    other.evaluate("location.hash = '#run=9&shown=7&turn=nonsense'")
    expect(other.locator("#where")).to_have_text("turn 12 of 40")


def test_the_history_is_searched_from_match_to_match(opened, report):
    page = opened(report)
    page.locator("#search").fill("a LINE of output")
    page.locator("#next").click()
    first = page.locator(".msg.found")
    expect(first).to_have_count(1)
    before = first.get_attribute("aria-posinset")
    page.locator("#next").click()
    expect(
        page.locator(f".msg.found:not([aria-posinset='{before}'])")
    ).to_have_count(1)
    page.locator("#search").fill("nowhere to be found")
    page.locator("#next").click()
    assert page.locator(".msg.found").get_attribute("aria-posinset") != before


def test_a_ref_is_copied_by_a_button(opened, report):
    page = opened(report)
    page.locator("#before").click()
    button = page.locator("#detail .edit button.small").first
    ref = page.locator("#detail .edit code").nth(1).text_content()
    assert button.get_attribute("aria-label") == f"Copy the ref {ref}"
    button.click()
    expect(button).not_to_have_text("copy")


def test_an_edit_opens_to_what_was_cut_why_and_its_ref(opened, report):
    page = opened(report)
    page.locator("#before").click()
    detail = page.locator("#detail")
    assert "edit" in detail.locator("h3").text_content()
    edit = detail.locator(".edit").first
    assert "bash" in edit.text_content()
    assert "the view was over 90% of its limit" in edit.text_content()
    assert len(edit.locator("code").nth(1).text_content()) == 16
    edit.locator("summary").click()
    assert "ullage" in edit.locator("pre").text_content()


def test_keys_move_the_turn_and_find_the_edits(opened, report):
    page = opened(report)
    assert turn(page) == "turn 40 of 40"
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#where")).to_have_text("turn 39 of 40")
    page.keyboard.press("p")
    expect(page.locator("#detail h3")).to_contain_text(" at turn ")
    page.locator("#turn").focus()
    page.keyboard.press("Home")
    expect(page.locator("#where")).to_have_text("turn 1 of 40")


def test_the_history_shows_what_was_visible_at_a_turn(opened, report):
    page = opened(report)
    seen = page.locator(".msg:not([hidden])").count()
    assert page.locator(".msg.s2, .msg.s3").count() > 0, (
        "placeholders, or within a summary"
    )
    page.evaluate("go(0)")
    expect(page.locator(".msg:not([hidden])")).to_have_count(1)
    assert seen > 100
    assert page.locator(".instead").count() == 0, "nothing had been edited yet"


def test_what_stands_in_the_place_of_messages_is_shown_before_them(
    opened, report
):
    page = opened(report)
    page.locator("#before").click()
    record = page.locator(".account").last
    expect(record).to_contain_text("shown instead of messages ")
    expect(record).to_contain_text("bash(path=a.py)")
    page.evaluate("go(0)")
    expect(page.locator(".account")).to_have_count(0)


def test_the_original_of_what_was_edited_is_one_press_away(opened, report):
    page = opened(report)
    page.locator("#before").click()
    edited = page.locator(".msg.s3.t-result:not([hidden])").last
    assert not edited.locator("> pre").is_visible()
    edited.locator(".more").click()
    assert "a line of output" in edited.locator("> pre").text_content()
    assert edited.locator("> pre").is_visible()
    assert edited.locator(".more").get_attribute("aria-expanded") == "true"


def test_every_policy_can_be_looked_at_in_the_history(opened, report):
    page = opened(report)
    page.locator("#tries").select_option("1")
    assert "token_budget" in page.locator("#map").get_attribute("aria-label")
    assert (
        page.locator(".chart")
        .nth(1)
        .evaluate("box => box.classList.contains('chosen')")
    )


def test_light_and_dark_follow_the_system_and_the_button(opened, report):
    shade = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(report), opened(report, scheme="dark")
    before = light.evaluate(shade)
    assert before != dark.evaluate(shade)
    light.locator("#theme").click()
    assert light.evaluate(shade) == dark.evaluate(shade)
    light.locator("#theme").click()
    assert light.evaluate(shade) == before


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(opened, report, width):
    page = opened(report, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


CORNER = """() => {
  const table = document.querySelector("#policies .scroll").getBoundingClientRect();
  const section = document.querySelector("#policies").getBoundingClientRect();
  return { edge: [table.right - 4, table.top + 2], card: [section.left + 4, table.top + 2] };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_goes_on_has_a_shadow_where_it_does(
    opened, report, scheme
):
    page = opened(report, width=390, scheme=scheme)
    page.locator("#policies .scroll").scroll_into_view_if_needed()

    def pixels(place):
        x, y = page.evaluate(CORNER)[place]
        return page.screenshot(clip={"x": x, "y": y, "width": 3, "height": 3})

    assert pixels("edge") != pixels("card"), "more to come"
    page.locator("#policies .scroll").evaluate(
        "box => { box.scrollLeft = box.scrollWidth }"
    )
    assert pixels("edge") == pixels("card"), "the end"


def test_the_policies_keep_their_names_while_the_table_is_scrolled_by_keys(
    opened, report
):
    page = opened(report, width=390)
    first, last = (
        page.locator("tbody th").first,
        page.locator("tbody td.gates").first,
    )
    before = first.bounding_box()["x"], turn(page)
    expect(last).not_to_be_in_viewport()
    page.locator("#policies .scroll").focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    expect(last).to_be_in_viewport()
    assert (first.bounding_box()["x"], turn(page)) == before, (
        "the arrows moved the table alone"
    )


def test_a_phone_and_a_screen_reader_are_told_that_the_table_goes_on(
    opened, report
):
    phone, desk = opened(report, width=390), opened(report)
    told = "The table goes on to the right: scroll it sideways."
    expect(phone.locator("#sideways")).to_be_visible()
    expect(desk.locator("#sideways")).to_be_hidden()
    for page in (phone, desk):
        expect(page.locator("#policies .scroll")).to_have_role("region")
        expect(page.locator("#policies .scroll")).to_have_accessible_name(
            "Table of policies"
        )
        expect(
            page.locator("#policies .scroll")
        ).to_have_accessible_description(told)


ENDS = """() => [...document.querySelectorAll("#evidence-bars > :first-child dd:nth-of-type(even)")]
  .map((share) => {
    const text = document.createRange();
    text.selectNodeContents(share);
    return text.getBoundingClientRect().right;
  })"""


def test_the_shares_of_evidence_stand_in_one_column(opened, errands):
    ends = opened(errands).evaluate(ENDS)
    assert len(ends) > 1
    assert len(set(ends)) == 1


UNDER_THE_BAR = """() => {
  const bar = document.querySelector(".bar").getBoundingClientRect();
  const here = document.activeElement.getBoundingClientRect();
  const under = here.top >= bar.top && here.bottom <= bar.bottom;
  return under && !document.activeElement.closest(".bar");
}"""


def test_what_has_the_focus_is_never_hidden_by_the_bar(opened, report):
    page = opened(report)
    for _ in range(24):
        page.keyboard.press("Tab")
        assert not page.evaluate(UNDER_THE_BAR)
    assert page.evaluate("document.activeElement.className") == "more"


def test_content_is_shown_as_text_and_never_taken_for_markup(opened, tmp_path):
    page = opened(
        written(
            tmp_path,
            evil_run(),
            policies=("default",),
            title=EVIL,
            notes=[EVIL],
        )
    )
    assert page.title() == EVIL
    assert page.locator("main img").count() == 0
    assert EVIL in page.locator(".msg").first.text_content()


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const low = [];
  const texts = "p, h1, h2, h3, th, td, small, label, li, summary, code, .pill, output";
  for (const element of document.querySelectorAll(texts)) {
    if (!element.textContent.trim() || !element.offsetParent) continue;
    const ink = parse(getComputedStyle(element).color);
    const [one, other] = [light(ink), light(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) low.push([element.tagName, element.textContent.slice(0, 30), ratio]);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(opened, report, scheme):
    """WCAG AA: 4.5 to 1."""
    assert opened(report, scheme=scheme).evaluate(CONTRAST) == []


NAMELESS = """() => [...document.querySelectorAll(
    "button, select, input, canvas, svg[role], [role=feed], [role=region]")]
  .filter((element) => element.checkVisibility())
  .filter((element) => !(element.getAttribute("aria-label")
    || element.getAttribute("aria-labelledby") || element.labels?.length
    || element.textContent.trim()))
  .map((element) => element.outerHTML.slice(0, 80))"""


def test_everything_one_can_use_has_a_name(opened, report):
    page = opened(report)
    assert page.evaluate(NAMELESS) == []
    assert page.locator("html").get_attribute("lang") == "en"
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map((h) => h.tagName)"
    )
    assert levels[0] == "H1"
    assert levels.count("H1") == 1


def test_a_session_of_500_turns_can_be_looked_at(opened, tmp_path, capsys):
    """That it opens and answers. How fast is told and not asserted: it depends on the machine."""
    path = written(
        tmp_path, small_run("openai-chat", 500), policies=("default",)
    )
    page = opened(path)
    drawn_ms, size = page.evaluate("performance.now()"), path.stat().st_size
    with capsys.disabled():
        sys.stdout.write(
            f"\na page of 500 turns, {size:,} bytes: drawn after {drawn_ms:.0f} ms\n"
        )
    assert turn(page) == "turn 500 of 500"
    page.evaluate("go(250)")
    expect(page.locator("#where")).to_have_text("turn 251 of 500")
    assert page.locator(".msg:not([hidden])").count() > 500
