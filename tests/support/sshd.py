"""A real sshd on loopback, with keys of its own, for the account that runs the tests."""

import getpass
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.forum import listens
from tests.support.programs import free_port, need
from tests.support.waiting import wait_for


class Sshd:
    """Takes the key `key`, and is known by `known_hosts`."""

    def __init__(self, root: Path) -> None:
        server, keygen = need("sshd"), need("ssh-keygen")
        self.port = free_port()
        self.remote = f"{getpass.getuser()}@127.0.0.1:{self.port}"
        self.key, self.other_key, host_key = root / "key", root / "other", root / "host"
        self.locked_key = root / "locked"
        for path in (self.key, self.other_key, host_key, self.locked_key):
            phrase = "a passphrase" if path == self.locked_key else ""
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", phrase, "-f", str(path)], check=True)
        self.known_hosts = root / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} " + host_key.with_suffix(".pub").read_text())
        authorized = root / "authorized_keys"
        authorized.write_text(self.key.with_suffix(".pub").read_text())
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it; its package makes it at boot
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": host_key,
            "AuthorizedKeysFile": authorized,
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "PidFile": root / "sshd.pid",
        }
        config = root / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        self.log = (root / "sshd.log").open("wb")
        self.process = subprocess.Popen(
            [server, "-D", "-e", "-f", str(config)], stdout=self.log, stderr=self.log
        )
        wait_for("sshd listens", lambda: listens(self.port))

    @property
    def access(self) -> str:
        """Its keys of a host in lab.yml."""
        return f"port: {self.port}, key: {self.key}, known_hosts: {self.known_hosts}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()


def receiving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """This machine as a host over SSH that receives: its keys of a sink. `ssh` knows it meanwhile."""
    (folder / "ssh").mkdir()
    server, program = Sshd(folder / "ssh"), folder / "ssh" / "ssh"
    options = f"-i {server.key} -o UserKnownHostsFile={server.known_hosts}"
    program.write_text(f'#!/bin/sh\nexec {need("ssh")} {options} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    yield {"to": "remote", "host": "root@127.0.0.1", "port": server.port}
    server.stop()
