"""``python -m lab.bench.page``: how long the page of a long run takes to open in Chromium."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

from tests.browser.test_page import written
from tests.replay.test_run import small_run


def main() -> None:
    """Print the size of a page, and the median of some openings, from address to drawn charts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        run = small_run("openai-chat", asked.turns)
        path = written(Path(folder), run, policies=("default",))
        where = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(
            executable_path=where, args=["--no-sandbox"]
        )
        taken_ms = []
        for _ in range(asked.times):
            page = browser.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("#charts svg")
            taken_ms.append(page.evaluate("performance.now()"))
            page.close()
        browser.close()
        print(
            f"{asked.turns:,} turns, {path.stat().st_size:,} bytes: drawn after "
            f"{median(taken_ms):,.0f} ms (median of {asked.times}; {min(taken_ms):,.0f} to "
            f"{max(taken_ms):,.0f})"
        )


if __name__ == "__main__":
    main()
