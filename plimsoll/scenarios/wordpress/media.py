"""Uploads to WordPress's media library, and what its answers mean."""

import re
from collections.abc import Callable
from mimetypes import guess_type
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from plimsoll.scenarios.running.client import Reply, SiteClient, StepFailedError, Trouble, trouble, words
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.wordpress.account import (
    Rest,
    expect_logged_in,
    fields,
    form_at,
    is_object,
    twice,
    with_login,
)
from plimsoll.scenarios.wordpress.multipart import Multipart

_FORM = "//form[@id='file-form']"
# Of a WordPress too old to say what is missing (before 5.3); each only where the image is larger.
_NOT_ALLOWED = re.compile(r"not allowed to upload files|not allowed to attach files")
_NOT_MOVED = re.compile(r"uploaded file could not be moved to")
_UNSAFE = re.compile(r"[^\w.-]")
_LONGEST_STEM = 100  # a file name has 255 bytes at most, and sizes make names longer


class Library:
    """The media library, for a user who is logged in. Methods raise StepFailedError."""

    def __init__(self, site: SiteClient, who: Credentials, rest: Rest, run: str) -> None:
        """Files get the name `run` behind their own, by which they are found on the site."""
        self._site, self._who, self._rest, self._run = site, who, rest, run
        self._nonce = ""

    def open(self) -> None:
        """Open the page with the upload form, and keep its nonce."""

        def get() -> Reply:
            return self._site.get("upload page", "wp-admin/media-new.php", check=expect_logged_in(_has_form))

        page = with_login(self._site, self._who, get)
        self._nonce = dict(fields(form_at(page, _FORM)))["_wpnonce"]

    def upload(self, path: Path, created: Callable[[int], None]) -> int:
        """Upload the file at `path`; return its attachment's number.

        `created` gets the number as soon as the site names it, even in an error reply.
        """

        def check(reply: Reply) -> Trouble | None:
            number = reply.headers.get("x-wp-upload-attachment-id", "")
            if number.isdigit():
                created(int(number))
            return expect_logged_in(upload_trouble)(reply)

        def once() -> Reply:
            return self._send(path, check)

        number = int(twice(once, self.open).data["data"]["id"])
        created(number)
        return number

    def _send(self, path: Path, check: Callable[[Reply], Trouble | None]) -> Reply:
        name = named(path, self._run)
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


def named(path: Path, run: str) -> str:
    """Return the name under which the file at `path` is uploaded by the run named `run`. Pure."""
    stem, end = (_UNSAFE.sub("-", part) for part in (path.stem, path.suffix))
    return f"{stem[:_LONGEST_STEM]}-{run}{end}"


def _has_form(reply: Reply) -> Trouble | None:
    if found := trouble(reply):
        return found
    form = form_at(reply, _FORM)
    if form is None or "_wpnonce" not in dict(fields(form)):
        return Trouble("check_failed", f"no upload form: {words(reply.text)}")
    return None


def upload_trouble(reply: Reply) -> Trouble | None:
    """Return the trouble in an upload's reply, or None; a refusal has status 200. Pure."""
    text = reply.text.strip()
    if text == "-1":
        return Trouble("nonce_expired", f"status {reply.status}: -1")
    if reply.status == 413:
        return Trouble("upload_refused", f"status 413, the file is too large: {words(text)}")
    if found := trouble(reply):
        return found
    data = _mapping(reply.data)
    inner = _mapping(data.get("data"))
    if data.get("success") is True and str(inner.get("id", "")).isdigit():
        return None
    message = words(str(inner.get("message") or text))
    if _NOT_MOVED.search(message):  # WordPress itself does not know why; a clone's folder is rarely read-only
        return Trouble("out_of_disk", f"{message} (The disk is full, or PHP may not write there.)")
    if _NOT_ALLOWED.search(message):
        return Trouble("no_permission", message)
    if data.get("success") is False:
        return Trouble("upload_refused", message)
    return Trouble("check_failed", f"status {reply.status}, not the uploader's answer: {message}")


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
