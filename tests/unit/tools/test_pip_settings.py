"""What uv is told of pip's settings: the same index, proxy and certificates."""

from pathlib import Path

import pytest

from tools.pip_settings import for_uv, read

ALWAYS = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}


@pytest.mark.parametrize(
    ("case", "pip", "uv"),
    [
        ("nothing is set", {}, {}),
        (
            "a mirror",
            {"index-url": "https://m.example/simple"},
            {"UV_DEFAULT_INDEX": "https://m.example/simple"},
        ),
        (
            "two more",
            {"extra-index-url": "https://a/s\nhttps://b/s"},
            {"UV_INDEX": "https://a/s https://b/s"},
        ),
        ("hosts without TLS", {"trusted-host": "a b:8080"}, {"UV_INSECURE_HOST": "a b:8080"}),
        (
            "folders, of which one is gone",
            {"find-links": "/tmp /gone https://a/w"},
            {"UV_FIND_LINKS": "/tmp,https://a/w"},
        ),
        ("no network", {"no-index": "1"}, {"UV_OFFLINE": "true"}),
        ("no network, but no", {"no-index": "false"}, {}),
        (
            "a proxy",
            {"proxy": "http://p:3128"},
            {"HTTP_PROXY": "http://p:3128", "HTTPS_PROXY": "http://p:3128"},
        ),
        (
            "certificates",
            {"cert": "/c", "client-cert": "/k"},
            {"SSL_CERT_FILE": "/c", "SSL_CLIENT_CERT": "/k"},
        ),
        ("patience", {"default-timeout": "180"}, {"UV_HTTP_TIMEOUT": "180"}),
    ],
)
def test_each_setting_has_a_name_in_uv(case: str, pip: dict[str, str], uv: dict[str, str]) -> None:
    assert for_uv(pip) == {**ALWAYS, **uv}, case


def test_settings_are_read_where_pip_reads_them(tmp_path: Path) -> None:
    for name, index in (("site", "s"), ("home/.config", "h"), ("named", "n")):
        file = tmp_path / name / "pip" / "pip.conf"
        file.parent.mkdir(parents=True)
        file.write_text(
            f"[global]\nindex-url = https://{index}/%20\ntimeout = 9\n[install]\nno_index = {index}\n"
        )
    site = {"XDG_CONFIG_DIRS": str(tmp_path / "site"), "HOME": str(tmp_path / "nobody")}
    named = str(tmp_path / "named" / "pip" / "pip.conf")
    for case, environment, index in (
        ("the user's is stronger", {**site, "HOME": str(tmp_path / "home")}, "https://h/%20"),
        ("the named one is stronger still", {**site, "PIP_CONFIG_FILE": named}, "https://n/%20"),
        (
            "the environment is strongest",
            {**site, "PIP_CONFIG_FILE": named, "PIP_INDEX_URL": "https://e"},
            "https://e",
        ),
        ("no file at all", {**site, "PIP_CONFIG_FILE": "/dev/null"}, ""),
    ):
        assert read(environment).get("index-url", "") == index, case
    assert read({**site, "HOME": str(tmp_path / "home")})["no-index"] == "h", "a section of install's own"
