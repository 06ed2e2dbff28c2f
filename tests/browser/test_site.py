"""The built site in a real browser, light and dark: nothing is too wide, and axe finds nothing."""

import shutil
import subprocess

import pytest

from tests.browser.test_accessible import FOUND, axe
from tests.site.test_site import BUILDER, ROOT

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("the browser")]
__all__ = ["axe"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not BUILDER.exists():
        pytest.skip("the builder is not installed: make docs")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "zensical.toml", folder)
    subprocess.run([BUILDER, "build"], cwd=folder, capture_output=True, check=True, timeout=100)
    return folder / "dist" / "site"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_found_in_the_site(browser, axe, site, scheme):
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    for name in ("index", "failures", "api/sessions"):
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto((site / f"{name}.html").as_uri())
            page.wait_for_function("document.querySelector('.md-code__nav')?.ariaLabel ?? true")
            page.wait_for_timeout(200)  # colours go over into one another
            page.evaluate(axe)
            assert page.evaluate(FOUND) == [], (name, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
