"""Two sides before anything is measured: what is refused, and what the refusal tells to do."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from plimsoll.ab.targets import ServedSide, check_sides
from plimsoll.common.errors import PlimsollError, SettingsError
from tests.support.servers import Reply, make_pair, serve_http

LOG = '10.0.0.1 - - [20/Nov/2026:10:00:0{n} +0000] "GET /{page} HTTP/1.1" 200 5 "-" "x"\n'


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("log") / "access.log"
    path.write_text("".join(LOG.format(n=n, page=page) for n, page in enumerate("abc")))
    return str(path)


def served(
    status: int = 200, body: bytes = b"one site", location: str | None = None, tls: Path | None = None
) -> AbstractContextManager[str]:
    """A server whose front page is so, and whose other pages are alike."""

    def answer(_: str, path: str, __: bytes) -> Reply:
        headers = {"Content-Type": "text/html", **({"Location": location} if location else {})}
        return (status, body, headers) if path == "/" else (200, body, {"Content-Type": "text/html"})

    return serve_http(answer, tls)


def test_one_site_on_two_servers(log: str) -> None:
    with served() as one, served() as other:
        check_sides((ServedSide("baseline", one), ServedSide("candidate", other)), [log], None, False)


def test_a_site_that_redirects_to_its_own_name_is_asked_by_it(log: str) -> None:
    name = "http://shop.example"
    with served(301, location=f"{name}/") as one, served(301, location=f"{name}/") as other:
        sides = (
            ServedSide("baseline", name, one.removeprefix("http://")),
            ServedSide("candidate", name, other.removeprefix("http://")),
        )
        check_sides(sides, [log], None, False)


def refusal(one: str, other: str, log: str) -> str:
    with pytest.raises(SettingsError) as refused:
        check_sides((ServedSide("baseline", one), ServedSide("candidate", other)), [log], None, False)
    return str(refused.value)


def test_one_server_twice(log: str) -> None:
    with served() as one:
        assert "is the baseline itself" in refusal(one, one, log)


def test_both_sides_down_are_named_at_once(log: str) -> None:
    with served() as one, served() as other:
        pass
    said = refusal(one, other, log)
    assert f"--baseline: {one}: does not answer: Connection refused" in said
    assert f"--candidate: {other}: does not answer: Connection refused" in said


def test_a_redirect_to_the_sites_own_name_is_refused_with_the_remedy(log: str) -> None:
    with served() as one, served(302, location="https://shop.example/") as other:
        said = refusal(one, other, log)
    assert "redirects to https://shop.example/" in said
    assert "--candidate https://shop.example --candidate-connect-to 127.0.0.1:443" in said


def test_an_error_instead_of_the_front_page(log: str) -> None:
    with served() as one, served(502) as other:
        assert f"--candidate: {other}: answers 502" in refusal(one, other, log)


def test_other_pages(log: str) -> None:
    with served() as one, served(body=b"another site") as other:
        assert "--candidate: is not the same site: 3 of 3 pages differ" in refusal(one, other, log)
        check_sides((ServedSide("baseline", one), ServedSide("candidate", other)), [log], None, True)


def test_a_certificate_of_ones_own(log: str, tmp_path: Path) -> None:
    certificate, key = make_pair(tmp_path, "127.0.0.1")
    both = tmp_path / "both.pem"
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    with served(tls=both) as one, served(tls=both) as other:
        assert "its certificate is not valid" in refusal(one, other, log)
        sides = (ServedSide("baseline", one, None, True), ServedSide("candidate", other, None, True))
        check_sides(sides, [log], None, False)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with (
        served() as one,
        served() as other,
        pytest.raises(PlimsollError, match="does not exist: check the name"),
    ):
        sides = (ServedSide("baseline", one), ServedSide("candidate", other))
        check_sides(sides, [str(tmp_path / "none.log")], None, False)
