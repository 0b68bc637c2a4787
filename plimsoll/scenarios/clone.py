"""The list of clones: `plimsoll clone add` first asks the site what it is; `make site` registers its own.

site/list and site/down run `python -m plimsoll.scenarios.clone`: the first scenario on the site of
`make site` needs neither exports nor consent.
"""

import argparse
import json
import re
import shlex
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from plimsoll.common.commands import CommandGroup, json_option, yes_option
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.files import replace_text
from plimsoll.common.hostile import printable
from plimsoll.scenarios.running.clonelist import (
    DEFAULT,
    Clone,
    SiteConfig,
    lock_list,
    read_config,
    read_list_text,
    secret_in,
    with_entry,
    without_entry,
)
from plimsoll.scenarios.running.settings import SiteSettings, cautions, click_options, validate_options

# Quad9's and Cloudflare's, which anybody may ask: that of the house may know clones by the site's name.
PUBLIC_RESOLVERS = ("9.9.9.9", "1.1.1.1")
_DNS_S = 3.0
_TITLE_CHARACTERS = 120
_FOLDER = ".plimsoll"  # beside the list; only its owner may enter


@dataclass(frozen=True)
class SiteIdentity:
    """What a site is: its title, the base URLs that it takes for its own, and where it was asked."""

    title: str | None
    addresses: tuple[str, ...]
    ip: str


@dataclass(frozen=True)
class PublicName:
    """What public DNS gives for a name; `problem` says why that is unknown."""

    name: str
    ips: tuple[str, ...] = ()
    problem: str | None = None


class _Options(SiteSettings):
    """The options of the command."""


@click.group(cls=CommandGroup)
def clone() -> None:
    """Register clones that scenarios may change.

    \b
    Examples:
        plimsoll clone add http://127.0.0.1:8080
        plimsoll clone list
    """  # noqa: D301 \b is click's: keep these lines as they are


@clone.command("list")
@click.option("--site-config", type=Path, default=DEFAULT, help="The list. Default: plimsoll.yml.")
@json_option
def list_(site_config: Path, as_json: bool) -> None:
    """Show the clones that scenarios may change, with the account and the way to each.

    \b
    Examples:
        plimsoll clone list
        plimsoll clone list --site-config plimsoll.yml --json

    Exit codes: 0 done; 2 the list cannot be read.
    """  # noqa: D301 \b is click's: keep these lines as they are
    found = read_config(site_config).clones if site_config.exists() else []
    if as_json:
        click.echo(json.dumps({"clones": [one.model_dump(mode="json") for one in found]}, indent=2))
        return
    for one in found:
        named = one.name if one.name and one.name != urlsplit(one.target).hostname else ""
        parts = [
            *([named] if named else []),
            *([f"“{one.title}”"] if one.title else []),
            *([f"account {one.user}"] if one.user else []),
            *([f"--connect-to {one.connect_to}"] if one.connect_to else []),
        ]
        click.echo(printable(f"{one.target}  {', '.join(parts)}".rstrip(), 2000))
    if not found:
        click.echo(f"No clone is registered in {site_config}: plimsoll clone add URL.")


@clone.command("add", params=[one for one in click_options(_Options) if one.name != "target"])
@click.argument("url")
@click.option("--name", help="Its name in the list. Default: its host.")
@click.option("--user", help="Account for the scenarios, so that runs need not name one.")
@click.option("--password-file", type=Path, help="File whose first line is its password, chmod 600.")
@click.option("--site-config", type=Path, default=DEFAULT, help="The list. Default: plimsoll.yml.")
@click.option("--resolver", metavar="HOST[:PORT]", help="Public resolver to ask. Default: 9.9.9.9, 1.1.1.1.")
@click.option(
    "--public", is_flag=True, help="Register it although public DNS leads to it: it is not a live site."
)
@yes_option
def add(
    url: str,
    name: str | None,
    user: str | None,
    password_file: Path | None,
    site_config: Path,
    resolver: str | None,
    public: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Detect what the site at URL is, and register it as a clone that scenarios may change.

    \b
    Examples:
        plimsoll clone add http://127.0.0.1:8080
        plimsoll clone add http://127.0.0.1:8081 --name copy --user author --password-file password.txt

    Shows its title, the addresses that it considers its own, and whether public DNS leads to it, as it
    does to a live site: it is then not registered unless you give --public. With --connect-to, the entry
    allows only runs with the same --connect-to. If it is already registered, --name, --user and
    --password-file change its entry. The rest of the list, including comments, stays unchanged.

    Exit codes: 0 it is listed; 1 it is not, for the reason shown; 2 wrong usage, or the site does not answer.
    """  # noqa: D301 \b is click's: keep these lines as they are
    settings = validate_options(_Options, options | {"target": url})
    for caution in cautions(settings):
        click.echo(caution, err=True)
    if password_file:
        secret_in(password_file, "--password-file")
    former = read_config(site_config) if site_config.exists() else SiteConfig()
    same = Clone(target=settings.target, connect_to=settings.connect_to).is_same
    listed = next((one for one in former.clones if same(one)), None)
    if password_file and not (user or (listed and listed.user)):
        raise SettingsError(
            "--password-file: has no effect without --user: name the account, or leave it out"
        )
    found = identify_site(settings)
    known = [query_dns(one, resolver) for one in host_names(settings.target, found.addresses)]
    click.echo("\n".join(describe_site(settings, found, known)))
    if not public and (why := find_live_reason(found.ip, known)):
        click.echo(f"Not listed: {why}", err=True)
        raise SystemExit(1)
    entry = Clone(
        target=settings.target,
        name=name or urlsplit(settings.target).hostname,
        title=found.title,
        connect_to=settings.connect_to,
    ).model_copy(update={"user": user, "password_file": _listed_path(password_file, site_config)})
    if listed:
        entry = _update_entry(listed, entry, name)
        if entry == listed:
            click.echo(f"{site_config} lists it already; nothing was changed.")
            return
    if not yes and not _confirm(site_config):
        click.echo("Not changed." if listed else "Not listed.", err=True)
        raise SystemExit(1)
    _write_entry(site_config, entry, replaces=listed is not None)
    if listed:
        account = f", with the account {printable(entry.user)}" if entry.user else ""
        click.echo(f"{site_config}: the entry was replaced{account}.")
        return
    needed = f" --connect-to {entry.connect_to}" if entry.connect_to else ""
    click.echo(
        f"{site_config}: listed. Scenarios may now change {entry.target} with{needed or 'out further leave'}."
    )
    if weaker := [one for one in former.clones if entry.connect_to and one.allows(entry.target, None)]:
        click.echo(
            f"But the list also has {weaker[0].target} without connect_to, so runs without it are allowed "
            "too: remove that entry."
        )


def _update_entry(listed: Clone, entry: Clone, name: str | None) -> Clone:
    """Return the entry of the list with what was given of `entry`. Another account has another password."""
    given = {"name": name, "user": entry.user, "password_file": entry.password_file}
    other = {"password_file": None} if entry.user not in (None, listed.user) else {}
    return listed.model_copy(update=other | {key: value for key, value in given.items() if value is not None})


def _confirm(config: Path) -> bool:
    if not sys.stdin.isatty():
        raise SettingsError("there is no terminal to ask on: add --yes to register it")
    return click.confirm(f"List it in {config}, so that scenarios may change it?", default=False)


def _write_entry(config: Path, entry: Clone, *, replaces: bool) -> None:
    with lock_list(config) as replace:
        text = read_list_text(config)
        rest = without_entry(text, entry.is_same)
        if replaces and rest == text:
            raise SettingsError(f"{config}: the entry cannot be replaced: change it by hand")
        replace(with_entry(rest, entry))


def _listed_path(file: Path | None, config: Path) -> Path | None:
    """Return the file's path as the list has it: from the list's folder on, where it is below that."""
    if file is None:
        return None
    whole, folder = file.resolve(), config.resolve().parent
    return whole.relative_to(folder) if whole.is_relative_to(folder) else whole


def identify_site(settings: SiteSettings) -> SiteIdentity:
    """Ask the site for its front page and its REST interface. Raises SettingsError if it does not answer."""
    from plimsoll.scenarios.running.client import Reply, SiteClient, StepFailedError, StepFailure

    seen: list[str] = []

    def look(reply: Reply) -> StepFailure | None:
        if reply.location:
            seen.append(reply.location)
        return None

    site = SiteClient(settings, lambda _: None)
    title = None
    try:
        front = site.get("front page", "", check=look)
        if front.status in (401, 403):
            raise SettingsError(
                f"{settings.target} answers with status {front.status}: give the credentials, such as "
                "--basic-auth-file FILE"
            )
        if front.text.strip():
            page = front.page
            title = str(page.xpath("string(//title)")) or None
            seen += map(str, page.xpath("//link[@rel='canonical' or @rel='https://api.w.org/']/@href"))
        rest = site.get("REST interface", "index.php?rest_route=/", check=look)
        if isinstance(rest.data, dict):
            title = str(rest.data.get("name") or "") or title
            seen += [str(rest.data[key]) for key in ("home", "url") if rest.data.get(key)]
    except StepFailedError as error:
        raise SettingsError(f"{settings.target} does not answer as a site: {error.detail}") from None
    finally:
        site.close()
    own = dict.fromkeys(base for one in seen if (base := _base_url(one)))
    shown = printable(" ".join(title.split()), _TITLE_CHARACTERS) if title else None
    return SiteIdentity(shown, tuple(own), _site_ip(settings))


def host_names(target: str, addresses: Iterable[str]) -> list[str]:
    """Return the names of hosts in them, each once, without IP addresses. Pure."""
    hosts = dict.fromkeys(urlsplit(one).hostname or "" for one in (target, *addresses))
    return [host for host in hosts if host and not _is_ip(host) and host != "localhost"]


def query_dns(name: str, resolver: str | None = None) -> PublicName:
    """Ask public DNS, past this machine's own names, for the addresses of `name`."""
    import dns.exception
    import dns.resolver

    asked = dns.resolver.Resolver(configure=False)
    host, port = _host_port(resolver) if resolver else ("", 53)
    asked.nameservers = [host] if host else list(PUBLIC_RESOLVERS)
    asked.port, asked.lifetime = port, _DNS_S
    ips: list[str] = []
    for kind in ("A", "AAAA"):
        try:
            ips += [str(one) for one in asked.resolve(name, kind, search=False)]
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            continue
        except (dns.exception.DNSException, OSError) as error:
            if not ips:
                return PublicName(name, problem=f"no answer ({type(error).__name__})")
    return PublicName(name, tuple(ips))


def find_live_reason(ip: str, known: list[PublicName]) -> str | None:
    """Return why the site at `ip` may be the live one; None if it is not. Pure."""
    for one in known:
        if ip_address(ip) in map(ip_address, one.ips):
            return (
                f"public DNS leads from {one.name} to {ip}, where this site was asked: it is the live site. "
                "Give --connect-to HOST:PORT of the clone; or --public, if the name is the clone's own"
            )
    unknown = next((one for one in known if one.problem), None)
    if unknown and ip_address(ip).is_global:
        return (
            f"public DNS cannot be asked for {unknown.name}: {unknown.problem}, and {ip} is public, so this "
            "may be the live site. Give --resolver HOST of one that answers; or --public, if it is a clone"
        )
    return None


def describe_site(settings: SiteSettings, found: SiteIdentity, known: list[PublicName]) -> list[str]:
    """Return what was found, for people. Pure."""
    way = f" by --connect-to {settings.connect_to}" if settings.connect_to else ""
    lines = [f"{settings.target}{way}, asked at {found.ip}", f"  title      {found.title or 'none'}"]
    lines += [f"  calls itself {printable(one, 200)}" for one in found.addresses]
    for one in known:
        said = one.problem or (", ".join(one.ips) if one.ips else "no address")
        lines.append(f"  public DNS {printable(one.name, 200)}: {said}")
    if not known:
        lines.append("  public DNS has no name to look for")
    return lines


def _base_url(address: str) -> str | None:
    """Return scheme, host and port of an address that the site named; None if it has none."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not re.fullmatch(
        r"[A-Za-z0-9.:_-]{1,253}", parts.hostname or ""
    ):
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def _site_ip(settings: SiteSettings) -> str:
    parts = urlsplit(settings.target)
    host, port = parts.hostname or "", parts.port or 80
    if settings.connect_to:
        host, port = _host_port(settings.connect_to)
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"{host} cannot be resolved: {error.strerror}") from None


def _host_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (host.startswith("[") or ":" not in host):
        return host.strip("[]"), int(port)
    return text.strip("[]"), 53


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def list_clone(config: Path, name: str, target: str, user: str, password: str) -> None:
    """List the site in `config`, in place of what it was listed as before. Raises SettingsError."""
    file = password_file(name)
    entry = Clone(target=target, name=name, user=user, password_file=file)
    with lock_list(config) as replace:
        text = with_entry(_drop_file_entries(read_list_text(config), file), entry)
        try:
            (config.parent / _FOLDER).mkdir(mode=0o700, exist_ok=True)
            replace_text(config.parent / file, password + "\n", mode=0o600)
        except OSError as error:
            raise SettingsError(f"{config.parent / file}: cannot be written: {error.strerror}") from None
        replace(text)


def unlist(config: Path, name: str) -> None:
    """Take the site out of `config`, and remove its password. Raises SettingsError."""
    file = password_file(name)
    with lock_list(config) as replace:
        before = read_list_text(config)
        after = _drop_file_entries(before, file)
        if after != before:
            replace(after)
        (config.parent / file).unlink(missing_ok=True)


def password_file(name: str) -> Path:
    """Return where the password of the site called `name` lies, from the folder of the list on. Pure."""
    return Path(_FOLDER) / f"{name}.password"


def next_command(config: Path, target: str, here: Path) -> str:
    """Return the command to try first on the site, for a shell in the folder `here`. Pure."""
    listed = [] if config == here / DEFAULT else ["--site-config", str(config)]
    words = [
        ".venv/bin/plimsoll",
        "scenario",
        "save-article",
        "--target",
        target,
        *listed,
        "--iterations",
        "3",
    ]
    return shlex.join(words)


def _drop_file_entries(text: str, file: Path) -> str:
    return without_entry(text, lambda clone: clone.password_file == file)


def main() -> int:
    """List or unlist. Exit codes: 0 done, 2 it cannot be."""
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.scenarios.clone",
        description="List the site of `make site` as a clone, with its account.",
    )
    parser.add_argument("verb", choices=["list", "unlist"], help="what to do")
    parser.add_argument("--config", type=Path, required=True, help="the list, such as plimsoll.yml")
    parser.add_argument("--name", required=True, help="SITE_NAME")
    parser.add_argument("--target", help="where the site is")
    parser.add_argument("--user", help="its account; the password comes from standard input")
    given = parser.parse_args()
    config = Path.cwd() / given.config
    try:
        if given.verb == "unlist":
            unlist(config, given.name)
            return 0
        list_clone(config, given.name, given.target, given.user, sys.stdin.readline().rstrip("\n"))
    except PlimsollError as error:
        print(f"make site: {error}", file=sys.stderr)
        return 2
    print(
        f"make site: {given.target} is listed as a clone in {config}, with its account. Next:",
        file=sys.stderr,
    )
    print(next_command(config, given.target, Path.cwd()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
