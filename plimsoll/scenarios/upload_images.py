"""A photographer's work: upload large photographs, one after another or several at a time.

WordPress makes smaller sizes of each. An image is ready when all of them are there: time to that.
"""

import time
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.running.client import StepFailedError
from plimsoll.scenarios.running.clonelist import credentials
from plimsoll.scenarios.running.locustfile import Say, locustfile, runs
from plimsoll.scenarios.running.settings import IdleKeys, origin
from plimsoll.scenarios.wordpress.account import missing_sizes, try_login
from plimsoll.scenarios.wordpress.author import Author, AuthorSettings
from plimsoll.scenarios.wordpress.content import default_folder, file_of, prepare
from plimsoll.scenarios.wordpress.media import Library, size_files

ABOUT = {
    "does": "uploads 100 different photographs of 12 megapixels and more, each until all its sizes are there",
    "needs": "an author's account on WordPress, and some CPU here for the first run",
    "changes": "adds images to the library",
}

_POLL_S = 0.5


class Settings(AuthorSettings):
    """Settings of the photographer."""

    usual_iterations: ClassVar[int] = 100
    idle_keys: ClassVar[IdleKeys] = [
        ("cache", lambda its: its.images, "no photographs are generated: take --images out"),
    ]

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Photographs, by all users together; default: 100, or no limit with --duration-s "
        "(100 different ones).",
    )
    ready_s: float = Field(
        60.0, ge=0, le=86400, description="Seconds after its upload until an image must have all its sizes."
    )
    images: Path | None = Field(None, description="Folder of your own photographs, uploaded in turn.")
    cache: Path | None = Field(
        None, description="Folder for generated photographs; default: plimsoll/images in the user's cache."
    )

    @property
    def different(self) -> int:
        """The number of different photographs; after the last the first is used again."""
        return self.planned or self.usual_iterations

    def kept(self) -> dict[str, Any]:
        """Return the settings for `run.json`: all but paths of this machine."""
        kept = super().kept()
        return {name: value for name, value in kept.items() if name not in ("images", "cache")} | {
            "own_images": self.images is not None
        }


class UploadImages(Author):
    """Uploads one photograph an iteration."""

    scenario = "upload-images"
    settings_type = Settings
    kind = "media"
    _start_ns: ClassVar[dict[Path, int]] = {}

    @classmethod
    def prepare(cls, settings: Any, say: Say) -> None:
        """Make the photographs that are missing on this machine; a wrong password shows before that.

        Raises PlimsollError.
        """
        if settings.images is None:
            folder = settings.cache or default_folder()
            prepare(folder, settings.seed, settings.different, say, lambda: _see_that_it_can_log_in(settings))
        else:
            photographs_in(settings.images)

    def begin(self) -> None:
        """Log in, and open the page with the upload form."""
        super().begin()
        settings = self.settings
        self._photographs = photographs_in(settings.images) if settings.images else []
        self._elsewhere = False
        self._library = Library(self.site, self.who, self.rest, self.run_name)
        self._library.open()

    def work(self, number: int) -> None:
        """Upload one photograph, wait until it is ready, and see that all its files are served."""
        started_ns = time.monotonic_ns()
        first_ns = self._start_ns.setdefault(self.session.directory, started_ns)
        attachment = self._ready(self._library.upload(self._photograph(number), self.created))
        done_ns = time.monotonic_ns()
        self.measure("image ready", (done_ns - started_ns) / 1e6)
        for address in size_files(attachment):
            self._check_file(address)
        work = self.session.work
        if work.done + 1 == work.mine and not work.failed:
            self.measure("all images ready", (done_ns - first_ns) / 1e9, "s")

    def _photograph(self, number: int) -> Path:
        if self._photographs:
            return self._photographs[(number - 1) % len(self._photographs)]
        again = (number - 1) % self.settings.different + 1
        return file_of(self.settings.cache or default_folder(), self.settings.seed, again)

    def _ready(self, number: int) -> dict[str, Any]:
        """Wait until the attachment lists all its sizes, for `ready_s` at most."""
        until_s = time.monotonic() + self.settings.ready_s
        while True:
            attachment = self._library.attachment(number)
            if not (missing := missing_sizes(attachment)):
                return attachment
            if time.monotonic() >= until_s:
                late = f"after {self.settings.ready_s:g} s these sizes are missing: {', '.join(missing)}"
                error = StepFailedError("check sizes", "check_failed", late)
                self.fault(error)
                raise error
            time.sleep(_POLL_S)

    def _check_file(self, address: str) -> None:
        if origin(address) == origin(self.site.base):
            self.site.send("size file", "HEAD", address)
        elif not self._elsewhere:
            self._elsewhere = True
            self.session.writer.event(
                "size files elsewhere", detail="they lie on another host: not asked for"
            )


def _see_that_it_can_log_in(settings: Settings) -> None:
    try:
        try_login(settings, credentials(settings))
    except StepFailedError as error:
        raise SettingsError(f"no photographs were made, since nobody can log in: {error}") from None


def photographs_in(folder: Path) -> list[Path]:
    """Return the files of `folder` that are not hidden, by name. Raises SettingsError if there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    except OSError as error:
        raise SettingsError(f"--images: {folder} cannot be read: {error.strerror}") from None
    if not found:
        raise SettingsError(f"--images: {folder} contains no file")
    return found


run = runs(UploadImages)
locustfile(UploadImages)
