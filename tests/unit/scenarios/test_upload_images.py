"""Uploads: what is sent, how an image is named, and what the uploader answers."""

import io
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from plimsoll.scenarios.upload_images import find_upload_failure, size_files, upload_name
from tests.support.scenario import NGINX, REST_FATAL, reply, site_client
from tests.support.servers import http_reply, serve_raw


def test_a_body_is_streamed_with_its_length(tmp_path: Any) -> None:
    from plimsoll.scenarios.upload_images import Multipart

    path = tmp_path / "photograph.jpg"
    path.write_bytes(bytes(range(256)) * 1000)
    got = io.BytesIO()

    def answer(connection: socket.socket, request: bytes) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        got.write(body)
        connection.sendall(http_reply(b"taken"))

    with (
        serve_raw(answer) as (port, _),
        site_client(f"http://127.0.0.1:{port}") as (site, _sent),
        Multipart({"name": "x", "_wpnonce": "n"}, "async-upload", path, "p.jpg", "image/jpeg") as body,
    ):
        site.post("upload", "up", data=body, headers={"Content-Type": body.content_type})
    sent = got.getvalue()
    assert path.read_bytes() in sent
    assert b'name="_wpnonce"\r\n\r\nn\r\n' in sent
    assert b'name="async-upload"; filename="p.jpg"\r\nContent-Type: image/jpeg\r\n\r\n' in sent
    assert sent.endswith(b"--\r\n")


NAME = "plimsoll-run-20261123t201500z-0badcafe"


def test_a_long_name_of_a_file_leaves_room_for_the_run_s() -> None:
    name = upload_name(Path("x" * 250 + ".jpeg"), NAME)
    assert len(name) < 200
    assert name.endswith(f"-{NAME}.jpeg")


UPLOADED = json.dumps({"success": True, "data": {"id": 6290, "url": "http://site/x.jpg"}})


def refused(message: str) -> str:
    return json.dumps({"success": False, "data": {"message": message, "filename": "x.jpg"}})


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        (UPLOADED, 200, None, "uploaded"),
        (refused("Sorry, you are not allowed to upload this file type."), 200, "upload_refused", "its type"),
        (refused("x.jpg exceeds the maximum upload size for this site."), 200, "upload_refused", "its size"),
        (
            refused("Sorry, you are not allowed to attach files to this post."),
            200,
            "no_permission",
            "its post",
        ),
        ("Sorry, you are not allowed to upload files.", 200, "no_permission", "the account"),
        ("-1", 200, "nonce_expired", "as WordPress before 4.7 said it"),
        ("-1", 403, "nonce_expired", "as it has said since"),
        (
            refused("The uploaded file could not be moved to wp-content/uploads/2026/11."),
            200,
            "out_of_disk",
            "full",
        ),
        (refused("Failed to write file to disk."), 200, "out_of_disk", "PHP's folder for uploads is full"),
        (
            NGINX.replace("502 Bad Gateway", "413 Request Entity Too Large"),
            413,
            "upload_refused",
            "nginx's limit",
        ),
        ("<p>hello</p>", 200, "check_failed", "no answer of the uploader"),
        ("0", 200, "check_failed", "the action is not known"),
        (REST_FATAL, 500, "php_fatal", "it died while making sizes"),
    ],
)
def test_answers_of_the_uploader_are_understood(body: str, status: int, kind: str | None, says: str) -> None:
    found = find_upload_failure(reply(body, status))
    assert (found.kind if found else None) == kind, says


def test_files_are_those_of_the_sizes_and_the_original() -> None:
    sizes = {name: {"source_url": f"http://site/a-{name}.jpg"} for name in ("thumbnail", "medium", "large")}
    media = {"sizes": sizes, "original_image": "a.jpg"}
    attachment = {"source_url": "http://site/a-scaled.jpg", "media_details": media}
    names = {"a-scaled.jpg", "a.jpg", "a-thumbnail.jpg", "a-medium.jpg", "a-large.jpg"}
    assert {address.rpartition("/")[2] for address in size_files(attachment)} == names
    assert size_files({}) == []
