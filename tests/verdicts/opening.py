"""How long a report of many runs takes to open in Chromium: the first text, the first figure, all figures.

Writes 200 runs of two scenarios on two backends, makes one report, and opens it several times, each time in a
new page of 1,300 by 900 points. Prints milliseconds since the page was asked for.

    python -m tests.verdicts.opening [--repeats 50] [--times 5]
"""

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from plimsoll.analysis.report.making import make_report
from tests.support.chromium import CHROMIUM, FLAGS
from tests.support.experiment import write_experiment, write_scripted_experiment

_FIRST_TEXT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_FIRST_FIGURE = "document.querySelector('.js-plotly-plot .main-svg') !== null"
_ALL_FIGURES = "document.documentElement.dataset.drawn === 'true'"


def main() -> None:
    """Write, open and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50, help="runs of a scenario on a backend")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opening-") as name, sync_playwright() as playwright:
        folders = [Path(name) / each for each in ("replay", "save-article")]
        write_experiment(folders[0], given.repeats, per_s=20.0)
        write_scripted_experiment(folders[1], ["save-article"], given.repeats)
        made = make_report(folders)
        print(f"{len(made.runs)} runs, {made.path.stat().st_size / 1e6:.1f} MB")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(given.times):
            print(_opened(browser, made.path))
        browser.close()


def _opened(browser: Browser, path: Path) -> str:
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    began_s = time.monotonic()
    page.goto(path.as_uri(), wait_until="commit")
    took_ms = []
    for there in (_FIRST_FIGURE, _ALL_FIGURES):
        while not page.evaluate(there):
            time.sleep(0.02)
        took_ms.append(1000 * (time.monotonic() - began_s))
    text_ms = page.evaluate(_FIRST_TEXT)
    page.close()
    return f"text {text_ms:.0f} ms, first figure {took_ms[0]:.0f} ms, all {took_ms[1]:.0f} ms"


if __name__ == "__main__":
    main()
