"""A real Mooncake cluster for the real-process tests: master and capacity holder over TCP on
ephemeral ports, from the wheel in build/mooncake-venv."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

from support import ROOT, free_port, wait_until

VENV = ROOT / "build" / "mooncake-venv"
PROGRAMS = next((VENV / "lib").glob("python3*/site-packages/mooncake"))


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Cluster:
    """A master and a holder, each of which may be killed and started again."""

    python = VENV / "bin" / "python"

    def __init__(self, folder, *master_arguments):
        self.folder = Path(folder)
        self.master_arguments = master_arguments
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.processes = {}

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def url(self, **options):
        more = {"python": self.python, **options}
        return f"mooncake://{self.address}?" + "&".join(f"{k}={v}" for k, v in more.items())

    def config(self, **more):
        """A file as SGLang's operators write it, for MOONCAKE_CONFIG_PATH."""
        path = self.folder / "mooncake.json"
        path.write_text(json.dumps({
            "local_hostname": "127.0.0.1", "metadata_server": "P2PHANDSHAKE",
            "global_segment_size": 0, "local_buffer_size": "16mb", "protocol": "tcp",
            "device_name": "", "master_server_address": self.address, **more}))
        return path

    def environment(self, **more):
        """What such an operator has besides: his environment with the wheel comes first in PATH."""
        return {"MOONCAKE_CONFIG_PATH": str(self.config(**more)),
                "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}

    def _start(self, name, arguments, is_there, program=None):
        """Another program may take a port between our finding it and Mooncake's opening it."""
        for _ in range(5):
            self.kill(name)
            process = self.processes[name] = subprocess.Popen(
                [PROGRAMS / (program or name), *arguments(), "--logtostderr"], stdin=subprocess.DEVNULL,
                stdout=open(self.folder / f"{name}.log", "wb"), stderr=subprocess.STDOUT)
            wait_until(lambda: is_there() or process.poll() is not None, 30, f"{name} to start")
            if process.poll() is None:
                return
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def start_master(self):
        self._start("mooncake_master", lambda: (
            "--rpc_address=127.0.0.1", f"--rpc_port={self.port}", "--metrics_host=127.0.0.1",
            f"--metrics_port={free_port()}", *self.master_arguments), lambda: listens(self.port))

    def start_holder(self, name="mooncake_client"):
        log = self.folder / f"{name}.log"
        self._start(name, lambda: (
            "--host=127.0.0.1", "--metadata_server=P2PHANDSHAKE", f"--port={free_port()}",
            f"--master_server_address={self.address}", "--global_segment_size=512 MB"),
            lambda: b"Starting real client service" in log.read_bytes(),
            program="mooncake_client")

    def start(self):
        self.start_master()
        self.start_holder()

    def signal(self, number):
        """To all of it."""
        for process in self.processes.values():
            process.send_signal(number)

    def kill(self, name):
        process = self.processes.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def stop(self):
        for name in list(self.processes):
            self.kill(name)


def store_of(server):
    """The store as /stats shows it."""
    return next(store for store in server.stats()["stores"] if store["name"] == "mooncake")


def is_well(store):
    """By itself: what /stats shows also counts breakers, which only traffic closes."""
    return re.search(r"(^|By itself: )ready \(", store["detail"])


def is_ready(server):
    return is_well(store_of(server))


def wait_ready(server):
    wait_until(lambda: is_ready(server), 60, "the store to be ready")


def helper_pid(server):
    found = re.search(r"helper process (\d+)", store_of(server)["detail"])
    return int(found[1]) if found else None


def alive(pid):
    return Path(f"/proc/{pid}").exists()
