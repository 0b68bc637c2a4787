"""Which scenarios there are: what each does, needs, and changes on the site."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One scenario. Its `module` has the model `Settings` and the function `run`."""

    name: str
    module: str
    does: str
    needs: str
    changes: str | None


CATALOG = {
    entry.name: entry
    for entry in (
        Entry(
            "download",
            "scenarios.download",
            "fetches one large file again and again: the control experiment, since it should not differ",
            "a large file on the site",
            None,
        ),
        Entry(
            "save-article",
            "scenarios.save_article",
            "logs in, writes an article of up to 100 KB, publishes it and saves it again and again",
            "an author's account on WordPress",
            "adds articles and revisions",
        ),
        Entry(
            "upload-images",
            "scenarios.upload_images",
            "uploads 100 different photographs of 12 megapixels and more, each until all its sizes are there",
            "an author's account on WordPress, and some CPU here for the first run",
            "adds images to the library",
        ),
        Entry(
            "upgrade-wordpress",
            "scenarios.upgrade_wordpress",
            "presses the button of the core upgrade, times every phase, and verifies what came of it",
            "an administrator's account on a WordPress that is offered a newer version",
            "upgrades WordPress: once a clone",
        ),
        Entry(
            "upgrade-xenforo",
            "scenarios.upgrade_xenforo",
            "walks through the pages of a forum's upgrade until the last, or runs it over SSH",
            "an administrator's account on a forum that waits for its upgrade",
            "upgrades the forum: once a clone",
        ),
        Entry(
            "visitors",
            "scenarios.visitors",
            "lets up to thousands of visitors read pages with all their files, at a rate or ramping up (k6)",
            "Go for the first run, which builds k6",
            None,
        ),
        Entry(
            "browser",
            "scenarios.browser",
            "spends an author's day in a real browser: read, log in, write, save, upload (k6, Chromium)",
            "an author's account on WordPress, Chromium, and Go for the first run",
            "adds an article and an image",
        ),
    )
}
