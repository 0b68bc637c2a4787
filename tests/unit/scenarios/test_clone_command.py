"""`plimsoll clone add`: what a site says of itself, whether public DNS leads to it, what is written."""

import json
import shlex
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode
import dns.rrset
import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.scenarios.clone import (
    PublicName,
    _update_entry,
    find_live_reason,
    host_names,
    list_clone,
    next_command,
    password_file,
    unlist,
)
from plimsoll.scenarios.running.clonelist import Clone, Credentials, credentials, read_config
from plimsoll.scenarios.running.settings import ChangingSettings
from tests.support.scenario import write_secret
from tests.support.servers import serve_wsgi

Page = Callable[[dict[str, Any]], tuple[str, list[tuple[str, str]], bytes]]


def blog(host: str, title: str = "The Gazette") -> Page:
    def page(environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        if "rest_route" in environ["QUERY_STRING"]:
            answer = json.dumps({"name": title, "home": host, "url": host}).encode()
            return "200 OK", [("Content-Type", "application/json")], answer
        text = f"<html><head><title>{title} – news</title><link rel='canonical' href='{host}/'></head></html>"
        return "200 OK", [("Content-Type", "text/html")], text.encode()

    return page


@contextmanager
def site(page: Page) -> Iterator[int]:
    def answer(environ: dict[str, Any], start: Any) -> list[bytes]:
        status, headers, body = page(environ)
        start(status, headers)
        return [body]

    with serve_wsgi(answer) as url:
        yield int(url.rpartition(":")[2])


@contextmanager
def public_dns(names: dict[str, str]) -> Iterator[str]:
    """A resolver that knows these names; its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                try:
                    data, sender = listening.recvfrom(4096)
                except OSError:
                    return
                query = dns.message.from_wire(data)
                question = query.question[0]
                answer = dns.message.make_response(query)
                ip = names.get(question.name.to_text().rstrip("."))
                if ip and question.rdtype == 1:
                    answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", "A", ip))
                elif not ip:
                    answer.set_rcode(dns.rcode.NXDOMAIN)
                listening.sendto(answer.to_wire(), sender)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        host, port = listening.getsockname()
        yield f"{host}:{port}"
        listening.close()


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["clone", "add", "--site-config", str(folder / "plimsoll.yml"), *words])


LIVE = "http://www.example.org"


def test_a_clone_under_the_sites_name_is_listed_with_its_way(tmp_path: Path) -> None:
    (tmp_path / "plimsoll.yml").write_text("# mine\nclones:\n  - http://other # keep\n")
    with site(blog(LIVE)) as port, public_dns({"www.example.org": "203.0.113.7"}) as resolver:
        way = f"127.0.0.1:{port}"
        done = run(tmp_path, LIVE, "--connect-to", way, "--resolver", resolver, "--yes")
        again = run(tmp_path, LIVE, "--connect-to", way, "--resolver", resolver)
    assert done.exit_code == 0, done.output
    for words in (
        "The Gazette",
        f"by --connect-to {way}",
        "asked at 127.0.0.1",
        "www.example.org: 203.0.113.7",
    ):
        assert words in done.output
    other, entry = read_config(tmp_path / "plimsoll.yml").clones
    assert (other.target, entry.target, entry.title, entry.connect_to) == (
        "http://other",
        LIVE,
        "The Gazette",
        way,
    )
    assert (tmp_path / "plimsoll.yml").read_text().startswith("# mine\nclones:\n  - http://other # keep\n")
    assert again.exit_code == 0
    assert "lists it already" in again.output
    assert len(read_config(tmp_path / "plimsoll.yml").clones) == 2


def test_a_listed_clone_gets_its_account(tmp_path: Path) -> None:
    password = write_secret(tmp_path / "password", "pw\n")
    listing = tmp_path / "plimsoll.yml"
    with site(blog("http://127.0.0.1")) as port:
        url = f"http://127.0.0.1:{port}"
        listing.write_text(f"# mine\nclones:\n  - {url}\n  - http://other # keep\n")
        assert run(tmp_path, url, "--user", "anna").exit_code == 2, "asked first"
        nobodys = run(tmp_path, url, "--password-file", str(password), "--yes")
        done = run(tmp_path, url, "--user", "anna", "--password-file", str(password), "--yes")
        annas = run(tmp_path, url, "--password-file", str(password), "--yes")
        other = run(tmp_path, url, "--user", "bert", "--yes")
        again = run(tmp_path, url, "--user", "bert", "--yes")
        below = run(tmp_path, f"{url}/blog", "--yes")
        listing.write_text(f"clones: [{url}]\n")
        by_hand = run(tmp_path, url, "--user", "anna", "--yes")
    assert "the entry was replaced, with the account anna" in done.output
    assert "--password-file: has no effect without --user" in nobodys.output
    assert "nothing was changed" in annas.output
    assert "with the account bert" in other.output
    assert "nothing was changed" in again.output
    assert below.exit_code == 0
    assert f"Scenarios may now change {url}/blog" in below.output
    assert by_hand.exit_code == 2
    assert "change it by hand" in by_hand.output


def test_an_entry_that_is_replaced_keeps_what_was_not_given(tmp_path: Path) -> None:
    listed = Clone(target="http://a", name="mine", user="anna", password_file=Path("pw"), title="Harbour")
    new = Clone(target="http://a", name="a", title="Harbour 2")
    assert _update_entry(listed, new, None) == listed
    assert _update_entry(listed, new, "other").name == "other"
    assert _update_entry(listed, new.model_copy(update={"user": "anna"}), None) == listed
    assert _update_entry(listed, new.model_copy(update={"user": "bert"}), None).password_file is None


def test_where_public_dns_leads_is_the_live_site(tmp_path: Path) -> None:
    with site(blog(LIVE)) as port, public_dns({"www.example.org": "127.0.0.1"}) as resolver:
        url = f"http://127.0.0.1:{port}"
        done = run(tmp_path, url, "--resolver", resolver, "--yes")
        assert done.exit_code == 1, "the site calls itself www.example.org, which leads here"
        assert "it is the live site" in done.output
        assert "--connect-to HOST:PORT" in done.output
        assert not (tmp_path / "plimsoll.yml").exists()
        done = run(tmp_path, url, "--resolver", resolver, "--yes", "--public")
    assert done.exit_code == 0
    assert read_config(tmp_path / "plimsoll.yml").clones[0].target == url


def test_nothing_is_written_that_nobody_agreed_to(tmp_path: Path) -> None:
    with site(blog("http://127.0.0.1")) as port:
        done = run(tmp_path, f"http://127.0.0.1:{port}")
    assert done.exit_code == 2
    assert "add --yes" in done.output
    assert not (tmp_path / "plimsoll.yml").exists()


def test_a_guarded_site_is_asked_with_what_lets_in(tmp_path: Path) -> None:
    def guarded(environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        if environ.get("HTTP_AUTHORIZATION") != "Basic YTpiYzEyMzQ1Ng==":
            return "401 Unauthorized", [], b"who?"
        return blog("http://127.0.0.1")(environ)

    key = write_secret(tmp_path / "access", "a:bc123456\n")
    with site(guarded) as port:
        url = f"http://127.0.0.1:{port}"
        done = run(tmp_path, url, "--yes")
        assert done.exit_code == 2
        assert "--basic-auth-file FILE" in done.output
        done = run(tmp_path, url, "--yes", "--basic-auth-file", str(key))
    assert done.exit_code == 0, done.output
    assert "bc123456" not in done.output + (tmp_path / "plimsoll.yml").read_text()


def test_what_a_site_says_of_itself_is_hostile(tmp_path: Path) -> None:
    evil = blog('http://x"\n  - http://live', title='\x1b[31m"\n  - target: http://live # </title>')
    with site(evil) as port:
        done = run(tmp_path, f"http://127.0.0.1:{port}", "--yes")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    clones = read_config(tmp_path / "plimsoll.yml").clones
    assert [one.target for one in clones] == [f"http://127.0.0.1:{port}"]


def test_a_list_with_mistakes_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "plimsoll.yml").write_text("clone: []\n")
    done = run(tmp_path, "http://127.0.0.1:1", "--yes")
    assert done.exit_code == 2
    assert "clone: is not a known key" in done.output


def test_a_site_that_does_not_answer_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "http://127.0.0.1:1", "--yes")
    assert done.exit_code == 2
    assert "http://127.0.0.1:1 does not answer as a site" in done.output


REASONS = [
    ("a clone elsewhere", "10.0.0.5", [PublicName("a.example", ("203.0.113.7",))], None),
    ("the live site", "203.0.113.7", [PublicName("a.example", ("203.0.113.7",))], "--connect-to HOST:PORT"),
    ("the same in IPv6", "2001:db8:0:0::1", [PublicName("a.example", ("2001:db8::1",))], "is the live site"),
    ("nobody knows, at home", "10.0.0.5", [PublicName("a.example", problem="no answer")], None),
    ("nobody knows, outside", "8.8.8.8", [PublicName("a.example", problem="no answer")], "--resolver HOST"),
]


@pytest.mark.parametrize(("why", "ip", "known", "says"), REASONS)
def test_what_may_be_the_live_site(why: str, ip: str, known: list[PublicName], says: str | None) -> None:
    found = find_live_reason(ip, known)
    assert (found is None) is (says is None), why
    assert (says or "") in (found or "")


def test_only_names_are_looked_for() -> None:
    said = (
        "https://a.example",
        "http://a.example:81",
        "http://[::1]:80",
        "http://localhost",
        "http://b.example",
    )
    assert host_names("http://127.0.0.1:8080", said) == ["a.example", "b.example"]


# Sites of `make site`.


URL = "http://127.0.0.1:8080"


def test_the_site_is_listed_with_its_account(tmp_path: Path) -> None:
    config = tmp_path / "plimsoll.yml"
    config.write_text("# mine\nclones:\n  - http://other # keep\n")
    for port in ("8080", "8081", "8081"):  # again, and on another port
        list_clone(config, "plimsoll", f"http://127.0.0.1:{port}", "admin", "plimsoll-clone")
    assert [one.target for one in read_config(config).clones] == ["http://other", "http://127.0.0.1:8081"]
    secret = tmp_path / password_file("plimsoll")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    settings = ChangingSettings(target="http://127.0.0.1:8081", site_config=config)
    assert credentials(settings, {}) == Credentials("admin", "plimsoll-clone")
    list_clone(config, "tank", URL, "admin", "plimsoll-clone")
    unlist(config, "plimsoll")
    unlist(config, "plimsoll")
    assert [one.target for one in read_config(config).clones] == ["http://other", URL]
    assert config.read_text().startswith("# mine\nclones:\n  - http://other # keep\n")
    assert not secret.exists()


def test_the_last_site_leaves_a_list_that_can_be_read(tmp_path: Path) -> None:
    config = tmp_path / "plimsoll.yml"
    list_clone(config, "plimsoll", URL, "admin", "x")
    unlist(config, "plimsoll")
    assert read_config(config).clones == []
    list_clone(config, "plimsoll", URL, "admin", "x")
    assert [one.target for one in read_config(config).clones] == [URL]


def test_the_next_command_names_a_list_that_is_not_the_usual_one(tmp_path: Path) -> None:
    usual = shlex.split(next_command(tmp_path / "plimsoll.yml", URL, tmp_path))
    assert usual[:5] == [".venv/bin/plimsoll", "scenario", "save-article", "--target", URL]
    assert "--site-config" not in usual
    other = shlex.split(next_command(tmp_path / "a b.yml", URL, tmp_path))
    assert other[other.index("--site-config") + 1] == str(tmp_path / "a b.yml")
