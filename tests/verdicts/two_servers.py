"""Tries of `plimsoll ab` against two nginx on this machine: alike, and one late by 200 ms in 1 % of answers.

    .venv/bin/python -m tests.verdicts.two_servers slow 20 --out build/two-servers
    .venv/bin/python -m tests.verdicts.two_servers alike 20 --out build/two-servers

A try that is there already is not made again, so it goes on where it was stopped. At the end it prints how
often each verdict came, and how long tries took beside the time that was foretold.
"""

import argparse
import asyncio
import json
import re
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.programs import PLIMSOLL, ROOT, free_port, listens, need, wait_for

LOG = ROOT / "examples" / "access.log"
LATE_S, SHARE = 0.2, 1  # of answers, in percent
_LINE = re.compile(r'"(?:GET|HEAD) (\S+) [^"]*" 200 (\d+)')
_CONFIG = """worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; {temporary}
  split_clients $request_id $late {{ {share} * ""; }}
  server {{
    listen 127.0.0.1:{port}; root {root};
    location / {{ if ($late) {{ return 418; }} error_page 418 = @late; try_files $uri $uri/index.html =404; }}
    location @late {{ proxy_pass http://127.0.0.1:{late}; proxy_set_header X-Path $uri; }}
    location /.in-time/ {{ internal; alias {root}/; }}
  }}
}}
"""


def build_site(folder: Path) -> None:
    """Write a file of the logged size for each path of the log."""
    sizes = {path.partition("?")[0]: int(size) for path, size in _LINE.findall(LOG.read_text())}
    for path, size in sizes.items():
        file = folder / path.lstrip("/")
        file = file / "index.html" if path.endswith("/") else file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)


@contextmanager
def serve_late(wait_s: Callable[[], float] = lambda: LATE_S) -> Iterator[int]:
    """Serve what has nginx answer after a while, with the file that was asked for."""
    loop = asyncio.new_event_loop()
    port = free_port()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        found = re.search(r"^X-Path: /(.*)\r$", head, re.MULTILINE)
        path = found[1] if found else ""
        path = f"{path}index.html" if path.endswith("/") or not path else path
        await asyncio.sleep(wait_s())
        writer.write(
            f"HTTP/1.0 200 OK\r\nX-Accel-Redirect: /.in-time/{path}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()

    loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", port))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(loop.stop)


@contextmanager
def serve_nginx(site: Path, share: int, late: int) -> Iterator[str]:
    """Serve the site; so many percent of answers are late."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o755)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        config = folder / "nginx.conf"
        config.write_text(
            _CONFIG.format(
                folder=folder,
                temporary=temporary,
                share=f"{share}% 1;" if share else "",
                port=port,
                root=site,
                late=late,
            )
        )
        with subprocess.Popen([need("nginx"), "-c", str(config)], stderr=subprocess.DEVNULL) as nginx:
            try:
                wait_for("nginx", lambda: listens(port))
                yield f"http://127.0.0.1:{port}"
            finally:
                nginx.terminate()


def make_try(kind: str, out: Path, late: int, site: Path, further: list[str]) -> dict[str, object]:
    """Make one try, and return what came."""
    share = SHARE if kind == "slow" else 0
    with serve_nginx(site, 0, late) as baseline, serve_nginx(site, share, late) as candidate:
        command = [str(PLIMSOLL), "ab", str(LOG), "--baseline", baseline, "--candidate", candidate]
        command += ["--speed", "2", "--duration", "15s", "--json", "--out", str(out), *further]
        began_s = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took_s = time.monotonic() - began_s
    if not done.stdout:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    gates = [
        {key: each[key] for key in ("metric", "verdict", "estimate", "lower", "upper")}
        for each in found["gates"]
    ]
    load = Path("/proc/loadavg").read_text().split()[0]
    return {
        "verdict": found["verdict"],
        "took_s": took_s,
        "says": done.stderr.splitlines(),
        "gates": gates,
        "findings": sorted({each["name"] for each in found["findings"]}),
        "load": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=["slow", "alike"])
    parser.add_argument("tries", type=int)
    parser.add_argument("--out", type=Path, required=True)
    asked, further = parser.parse_known_args()
    folder = (asked.out / asked.kind).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    site = folder / "site"
    if not site.is_dir():
        build_site(site)
    with serve_late() as late:
        for number in range(1, asked.tries + 1):
            path = folder / f"{number}.json"
            if not path.exists():
                found = make_try(asked.kind, folder / str(number), late, site, further)
                path.write_text(json.dumps(found, indent=1))
                print(number, found["verdict"], f"{found['took_s']:.0f} s", flush=True)
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    print(dict(Counter(each["verdict"] for each in results)))


if __name__ == "__main__":
    main()
