"""A photographer's work: upload large photographs, one after another or several at a time.

WordPress makes smaller sizes of each. An image is ready when all of them are there: time to that.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urljoin
from uuid import uuid4

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.running.client import (
    Reply,
    SiteClient,
    StepFailedError,
    StepFailure,
    find_failure,
    visible_text,
)
from plimsoll.scenarios.running.clonelist import Credentials, credentials
from plimsoll.scenarios.running.locustfile import Say, locustfile, on_locust
from plimsoll.scenarios.running.settings import origin
from plimsoll.scenarios.settings import UploadImagesSettings
from plimsoll.scenarios.wordpress.account import (
    Rest,
    attachment_number,
    expect_logged_in,
    fields,
    find_form,
    is_object,
    missing_sizes,
    retry_logged_in,
    retry_renewed,
    try_login,
)
from plimsoll.scenarios.wordpress.author import Author
from plimsoll.scenarios.wordpress.content import default_folder, make_missing, photograph_path

ABOUT = {
    "does": "uploads 100 different photographs of 12 megapixels and more, and waits for all their sizes",
    "needs": "an author's account on WordPress, and some CPU here for the first run",
    "changes": "adds images to the library",
}
_POLL_S = 0.5
_FORM = "//form[@id='file-form']"
# Of a WordPress too old to say what is missing (before 5.3); each only where the image is larger.
_NOT_ALLOWED = re.compile(r"not allowed to upload files|not allowed to attach files")
_NOT_MOVED = re.compile(r"uploaded file could not be moved to")
_UNSAFE = re.compile(r"[^\w.-]")
_LONGEST_STEM = 100  # a file name has 255 bytes at most, and sizes make names longer


class UploadImages(Author):
    """Uploads one photograph an iteration."""

    scenario = "upload-images"
    settings_type = UploadImagesSettings
    kind = "media"
    _start_ns: ClassVar[dict[Path, int]] = {}

    @classmethod
    def prepare(cls, settings: Any, say: Say, *, has_target: bool = True) -> None:
        """Make the photographs that are missing on this machine; a wrong password shows before that.

        Raises PlimsollError.
        """
        if settings.images is None:
            folder = settings.cache or default_folder()
            check = partial(_require_login, settings) if has_target else lambda: None
            make_missing(folder, settings.seed, settings.distinct, say, check)
        else:
            list_photographs(settings.images)

    def begin(self) -> None:
        """Log in, and open the page with the upload form."""
        super().begin()
        settings = self.settings
        self._photographs = list_photographs(settings.images) if settings.images else []
        self._elsewhere = False
        self._library = Library(self.site, self.who, self.rest, self.run_name)
        self._library.open()

    def work(self, number: int) -> None:
        """Upload one photograph, wait until it is ready, and see that all its files are served."""
        started_ns = time.monotonic_ns()
        first_ns = self._start_ns.setdefault(self.session.directory, started_ns)
        attachment = self._await_sizes(self._library.upload(self._photograph(number), self.note_created))
        done_ns = time.monotonic_ns()
        self.measure("image ready", (done_ns - started_ns) / 1e6)
        for address in size_files(attachment):
            self._check_file(address)
        work = self.session.work
        if work.done + 1 == work.share and not work.failed:
            self.measure("all images ready", (done_ns - first_ns) / 1e9, "s")

    def _photograph(self, number: int) -> Path:
        if self._photographs:
            return self._photographs[(number - 1) % len(self._photographs)]
        again = (number - 1) % self.settings.distinct + 1
        return photograph_path(self.settings.cache or default_folder(), self.settings.seed, again)

    def _await_sizes(self, number: int) -> dict[str, Any]:
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
                "size files elsewhere", detail="they are on another host: not requested"
            )


def _require_login(settings: UploadImagesSettings) -> None:
    try:
        try_login(settings, credentials(settings))
    except StepFailedError as error:
        raise SettingsError(f"no photographs were made, since nobody can log in: {error}") from None


def list_photographs(folder: Path) -> list[Path]:
    """Return the files of `folder` that are not hidden, by name. Raises SettingsError if there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    except OSError as error:
        raise SettingsError(f"--images: {folder} cannot be read: {error.strerror}") from None
    if not found:
        raise SettingsError(f"--images: {folder} contains no file")
    return found


class Library:
    """The media library, for a user who is logged in. Methods raise StepFailedError."""

    def __init__(self, site: SiteClient, who: Credentials, rest: Rest, run: str) -> None:
        """Files get the name `run` behind their own, by which they are found on the site."""
        self._site, self._who, self._rest, self._run = site, who, rest, run
        self._nonce = ""

    def open(self) -> None:
        """Open the page with the upload form, and keep its nonce."""

        def get() -> Reply:
            return self._site.get(
                "upload page", "wp-admin/media-new.php", check=expect_logged_in(_check_form)
            )

        page = retry_logged_in(self._site, self._who, get)
        self._nonce = dict(fields(find_form(page, _FORM)))["_wpnonce"]

    def upload(self, path: Path, created: Callable[[int], None]) -> int:
        """Upload the file at `path`; return its attachment's number.

        `created` gets the number as soon as the site names it, even in an error reply.
        """

        def check(reply: Reply) -> StepFailure | None:
            if (number := attachment_number(reply)) is not None:
                created(number)
            return expect_logged_in(find_upload_failure)(reply)

        def once() -> Reply:
            return self._send(path, check)

        number = int(retry_renewed(once, self.open).data["data"]["id"])
        created(number)
        return number

    def _send(self, path: Path, check: Callable[[Reply], StepFailure | None]) -> Reply:
        name = upload_name(path, self._run)
        sent = {"name": name, "action": "upload-attachment", "_wpnonce": self._nonce}
        kind = guess_type(name)[0] or "application/octet-stream"
        try:
            body = Multipart(sent, "async-upload", path, name, kind)
        except OSError as error:
            raise StepFailedError(
                "upload", "other", f"{path} cannot be read: {error.strerror}", hopeless=True
            ) from None
        with body:
            headers = {"Content-Type": body.content_type}
            return self._site.post(
                "upload", "wp-admin/async-upload.php", data=body, headers=headers, check=check
            )

    def attachment(self, number: int) -> dict[str, Any]:
        """Return the site's data of the attachment, with its sizes."""
        data: dict[str, Any] = self._rest.get(
            "check sizes", f"wp/v2/media/{number}", {"context": "edit"}, is_object
        ).data
        return data


def upload_name(path: Path, run: str) -> str:
    """Return the name under which the file at `path` is uploaded by the run named `run`. Pure."""
    stem, end = (_UNSAFE.sub("-", part) for part in (path.stem, path.suffix))
    return f"{stem[:_LONGEST_STEM]}-{run}{end}"


def _check_form(reply: Reply) -> StepFailure | None:
    if found := find_failure(reply):
        return found
    form = find_form(reply, _FORM)
    if form is None or "_wpnonce" not in dict(fields(form)):
        return StepFailure("check_failed", f"no upload form: {visible_text(reply.text)}")
    return None


def find_upload_failure(reply: Reply) -> StepFailure | None:
    """Return the failure in an upload's reply, or None; a refusal has status 200. Pure."""
    text = reply.text.strip()
    if text == "-1":
        return StepFailure("nonce_expired", f"status {reply.status}: -1")
    if reply.status == 413:
        return StepFailure("upload_refused", f"status 413, the file is too large: {visible_text(text)}")
    if found := find_failure(reply):
        return found
    data = _mapping(reply.data)
    inner = _mapping(data.get("data"))
    if data.get("success") is True and str(inner.get("id", "")).isdigit():
        return None
    message = visible_text(str(inner.get("message") or text))
    if _NOT_MOVED.search(message):  # WordPress itself does not know why; a clone's folder is rarely read-only
        return StepFailure("out_of_disk", f"{message} (The disk is full, or PHP may not write there.)")
    if _NOT_ALLOWED.search(message):
        return StepFailure("no_permission", message)
    if data.get("success") is False:
        return StepFailure("upload_refused", message)
    return StepFailure("check_failed", f"status {reply.status}, not the uploader's answer: {message}")


def size_files(attachment: dict[str, Any]) -> list[str]:
    """Return the addresses of the files of all sizes, and of the original where it was scaled. Pure."""
    details = _mapping(attachment.get("media_details"))
    sizes = _mapping(details.get("sizes"))
    source = str(attachment.get("source_url") or "")
    found = [source, *(str(_mapping(size).get("source_url") or "") for size in sizes.values())]
    if original := details.get("original_image"):
        found.append(urljoin(source, str(original)))
    return sorted({address for address in found if address})


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class Multipart:
    """The body of a `multipart/form-data` request: `fields`, then the file."""

    def __init__(self, fields: Mapping[str, str], name: str, path: Path, file_name: str, kind: str) -> None:
        """Open the file, sent in field `name` as `file_name` of media type `kind`. Raises OSError."""
        mark = uuid4().hex
        head = "".join(
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in fields.items()
        )
        head += (
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n'
            f"Content-Type: {kind}\r\n\r\n"
        )
        self.content_type = f"multipart/form-data; boundary={mark}"
        self._head, self._tail = head.encode(), f"\r\n--{mark}--\r\n".encode()
        self._file = path.open("rb")
        self._length = len(self._head) + os.fstat(self._file.fileno()).st_size + len(self._tail)

    def __len__(self) -> int:
        return self._length

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` further bytes; none at the end."""
        if self._head:
            piece, self._head = self._cut(self._head, size)
            return piece
        if piece := self._file.read(size):
            return piece
        piece, self._tail = self._cut(self._tail, size)
        return piece

    @staticmethod
    def _cut(whole: bytes, size: int) -> tuple[bytes, bytes]:
        return (whole, b"") if size < 0 else (whole[:size], whole[size:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


run = on_locust(UploadImages)


locustfile(UploadImages)
