"""Takes the pictures of the documents: the report and the web page of a run, in a browser of this machine.

    python run_sts.py --loss smooth_k2
    python benchmarks/pictures.py outputs/quickstart-smooth_k2

Needs the extras `demo` and `browser`, and Chromium. The pictures go to `docs/pictures/`.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

DOCUMENT_PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WINDOW_WIDTH, REPORT_HEIGHT, PAGE_HEIGHT = 1000, 1500, 760
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def main() -> None:
    """Takes them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    run = parser.parse_args().run.resolve()
    DOCUMENT_PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, serve(run) as address:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WINDOW_WIDTH, "height": REPORT_HEIGHT})
        tab.goto((run / "report.html").as_uri())
        tab.screenshot(path=DOCUMENT_PICTURES / "report.png")
        tab = browser.new_page(viewport={"width": WINDOW_WIDTH, "height": PAGE_HEIGHT})
        tab.set_default_timeout(120_000)  # the first visit builds the page
        tab.goto(address)
        take_page(tab)
        browser.close()


@contextmanager
def serve(run: Path) -> Iterator[str]:
    """The address of the run's web page, as long as the block lasts."""
    command = [sys.executable, "-m", "sts_regression", "demo", f"--model_name_or_path={run}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := ADDRESS.search(line)))
        finally:
            process.terminate()


def take_page(tab: Any) -> None:
    """The web page with the first example, scored."""
    tab.get_by_role("button", name="Close pair").click()
    tab.get_by_role("button", name="Score", exact=True).click()
    tab.get_by_text("Cosine").last.wait_for()
    tab.wait_for_timeout(1000)  # the panel fades in
    tab.screenshot(path=DOCUMENT_PICTURES / "page.png")


if __name__ == "__main__":
    main()
