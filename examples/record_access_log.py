#!/usr/bin/env python3
"""Records examples/access.log: for a minute, visitors browse a shop that a real nginx serves on loopback.

Run it to make the example again: ``python3 examples/record_access_log.py``. It wants nginx, and changes
nothing else. The visitors are drawn from a seed, each with an address of 127.0.0.0/8 and a user agent of its
own; they fetch pages with their assets over kept-open connections, ask again for what they have (304), follow
broken links (404), and a few knock as scanners do. The log is what nginx wrote.
"""

import argparse
import http.client
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PORT = 18321
SECONDS = 60
VISITORS = 400

WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
ANDROID = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) "
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
AGENTS = [
    WINDOWS + "Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
    MAC + "Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)",
    ANDROID + "Chrome/142.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://bot.example/)",
]

POSTS = [
    f"/2026/{month:02}/{name}/"
    for month in range(1, 12)
    for name in ("mast", "keel", "anchor", "tide", "harbour")
]
PAGES = [
    "/",
    "/about/",
    "/shop/",
    "/feed/",
    "/search/?s=rope",
    "/category/boats/",
    "/category/boats/page/2/",
    *POSTS,
]
ASSETS = [
    "/wp-content/themes/plain/style.css?ver=6.8",
    "/wp-includes/js/jquery/jquery.min.js?ver=3.7.1",
    "/wp-content/uploads/logo.svg",
    "/wp-content/themes/plain/body.woff2",
]
IMAGES = [f"/wp-content/uploads/2026/{month:02}/photo-{n}.jpg" for month in range(1, 12) for n in range(4)]
MISSING = ["/favicon.ico", "/apple-touch-icon.png", "/old-page.html", "/wp-content/uploads/2019/lost.jpg"]
KNOCKS = [
    b"GET /wp-login.php HTTP/1.1\r\nHost: x\r\n"
    b"User-Agent: Mozilla/5.0 zgrab/0.x\r\nConnection: close\r\n\r\n",
    b"GET /.env HTTP/1.0\r\n\r\n",
    b'GET /?q="><script>alert(1)</script> HTTP/1.1\r\nHost: x\r\n'
    b"User-Agent: <b>bold</b>\r\nConnection: close\r\n\r\n",
    b"\x16\x03\x01\x00\xee\x01\x00\x00\xea\x03\x03\r\n\r\n",
    b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example:443\r\n\r\n",
    b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n",
    b"POST /xmlrpc.php HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /caf\xc3\xa9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /a b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
]

NGINX = """
daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{ worker_connections 512; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; image/jpeg jpg; font/woff2 woff2; }}
  access_log {root}/access.log combined;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  keepalive_requests 100000;
  server {{
    listen 127.0.0.1:{port}; root {root}/www; index index.html; server_name shop.example;
    location = /wp-login.php {{ return 302 /; }}
    location = /xmlrpc.php {{ return 405; }}
  }}
}}
"""


def make_site(www: Path, rng: random.Random) -> None:
    """Writes the files: pages of 5 to 60 kB, assets, photographs of 30 to 250 kB."""
    sizes = {path: rng.randint(5_000, 60_000) for path in PAGES}
    sizes |= {path: rng.randint(3_000, 90_000) for path in ASSETS}
    sizes |= {path: rng.randint(30_000, 250_000) for path in IMAGES}
    for path, size in sizes.items():
        name = path.split("?")[0]
        file = www / name.lstrip("/") / "index.html" if name.endswith("/") else www / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(rng.randbytes(size))


class Visitor(threading.Thread):
    """One visitor: arrives, looks at a few pages with their assets, thinks in between."""

    def __init__(self, number: int, start: float) -> None:
        super().__init__()
        self.rng = random.Random(number)
        self.start_at = start + self.rng.random() * SECONDS * 0.9
        self.end_at = start + SECONDS
        self.agent = self.rng.choice(AGENTS)
        address = f"127.{self.rng.randint(0, 9)}.{self.rng.randint(0, 255)}.{self.rng.randint(2, 254)}"
        self.http = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10, source_address=(address, 0))
        self.seen: dict[str, str] = {}  # path: Last-Modified

    def fetch(self, path: str, referer: str) -> None:
        headers = {"Host": "shop.example", "User-Agent": self.agent}
        if referer:
            headers["Referer"] = referer
        if path in self.seen and path not in PAGES:
            headers["If-Modified-Since"] = self.seen[path]
        method = "HEAD" if "Bot" in self.agent and self.rng.random() < 0.2 else "GET"
        self.http.request(method, path, headers=headers)
        answer = self.http.getresponse()
        answer.read()
        if answer.status == 200:
            self.seen[path] = answer.headers["Last-Modified"]

    def run(self) -> None:
        time.sleep(max(0.0, self.start_at - time.time()))
        referer = self.rng.choice(["", "https://www.search.example/", "http://forum.example/thread/1"])
        while time.time() < self.end_at:
            page = self.rng.choice(PAGES) if self.rng.random() < 0.8 else "/"
            self.fetch(page, referer)
            referer = f"http://shop.example{page}"
            if "Bot" not in self.agent:
                for asset in ASSETS + self.rng.sample(IMAGES, self.rng.randint(0, 4)):
                    if asset not in self.seen or self.rng.random() < 0.25:
                        self.fetch(asset, referer)
            if self.rng.random() < 0.06:
                self.fetch(self.rng.choice(MISSING), referer)
            if self.rng.random() < 0.22:
                return
            time.sleep(self.rng.expovariate(1 / 5))


def knock(text: bytes) -> None:
    """Sends bytes as a scanner would, from an address of its own."""
    with socket.create_connection(
        ("127.0.0.1", PORT), timeout=5, source_address=("127.66.6.6", 0)
    ) as scanner:
        scanner.sendall(text)
        while scanner.recv(4096):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("access.log"))
    out = parser.parse_args().out
    root = Path(tempfile.mkdtemp(prefix="plimsoll-example-"))
    make_site(root / "www", random.Random(1))
    root.chmod(0o755)
    (root / "nginx.conf").write_text(NGINX.format(root=root, port=PORT))
    nginx = subprocess.Popen(["nginx", "-c", str(root / "nginx.conf"), "-e", str(root / "error.log")])
    try:
        time.sleep(1)
        start = time.time()
        visitors = [Visitor(number, start) for number in range(VISITORS)]
        for visitor in visitors:
            visitor.start()
        for text in KNOCKS * 2:
            time.sleep(2.5)
            knock(text)
        for visitor in visitors:
            visitor.join()
    finally:
        nginx.send_signal(signal.SIGQUIT)
        nginx.wait()
    shutil.copyfile(root / "access.log", out)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
