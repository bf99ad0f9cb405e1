#!/usr/bin/env python3
"""The main job, shown: two encode servers over one store, real photographs, a real network.

Every picture goes to the first server and then to the second, then once more to the first, then a
burst of one new picture goes to one server. The table says where each embedding came from and how
long the answer took. The demo checks its own claims (each picture encoded once in all, the rows of
all answers equal byte for byte) and exits with 1 when one does not hold. It leaves no process and no
file outside the checkout, and no embedding in a store that was there before.
"""

import argparse
import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

from local_engines import ENGINES, EngineFailed, die_with_parent

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "demo"
BURST = 16

def end_in_order(number, _):
    """A signal leaves by way of every `finally`."""
    sys.exit(128 + number)


class ClaimFailed(Exception):
    pass


def claim(holds, text):
    print(f"  {'✓' if holds else '✗'} {text}", flush=True)
    if not holds:
        raise ClaimFailed(text)


def without_password(url):
    return re.sub(r"://[^@/]*@", "://***@", url)


class EncodeServer:
    def __init__(self, name, vitrove, model, store, *more):
        self.name = name
        self.log_path = WORK / f"{name}.log"
        command = [str(vitrove), "serve", "--port", "0", "--encoder", str(model), "--store", store,
                   "--pool-size", "1GiB", *more]
        shown = " ".join(command[1:]).replace(store, without_password(store))
        print(f"  {name}: vitrove {shown}".replace(str(ROOT) + "/", ""), flush=True)
        # What the servers claim is to share, and not to be quick on a machine that is busy.
        environment = {"VITROVE_STORE_TIMEOUT": "10s", **os.environ}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                        stdout=open(self.log_path, "wb"),
                                        stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def wait_ready(self):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)",
                              self.log_path.read_text(errors="replace"))
            if found:
                self.port = int(found[1])
                if self.request("GET", "/ready")[0] == 200 and self.shares():
                    return
            time.sleep(0.02)
        raise ClaimFailed(f"{self.name} did not start, or its store does not work:\n"
                          f"{self.log_path.read_text()[-2000:]}")

    def shares(self):
        """A server serves before its store can be reached; the claims are about sharing."""
        return json.loads(self.request("GET", "/health")[1])["status"] == "ok"

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()

    def encode(self, picture):
        """(metadata of the item, rows, milliseconds as the client saw them)"""
        body = json.dumps({"mm_items": [picture], "modality": "image", "return": "safetensors"})
        started = time.perf_counter()
        status, reply = self.request("POST", "/encode", body)
        milliseconds = (time.perf_counter() - started) * 1000
        if status != 200:
            raise ClaimFailed(f"{self.name} answered {status}: {reply[:500]!r}")
        (length,) = struct.unpack("<Q", reply[:8])
        header = json.loads(reply[8:8 + length])
        metadata = json.loads(header["__metadata__"]["vitrove"])
        return metadata["items"][0], reply[8 + length:], milliseconds

    def metric(self, name):
        text = self.request("GET", "/metrics")[1].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if re.match(rf"{name}(\{{|\s)", line))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def data_url(path):
    return "data:;base64," + base64.b64encode(path.read_bytes()).decode()


def row(picture, server, item, milliseconds):
    print(f"  {picture:<20} {server:<9} {item['source']:<8} {item['tokens']:>6} "
          f"{milliseconds:>9.2f} ms", flush=True)


def wait_for_puts(servers):
    """Puts run behind the replies; the second server can only find what has landed."""
    end = time.monotonic() + 90
    while any(server.metric("vitrove_store_pending") for server in servers):
        if time.monotonic() > end:
            raise ClaimFailed("the puts did not land within 90 s")
        time.sleep(0.01)


def send_all(server, names, urls, answers, times):
    for name in names:
        item, rows, milliseconds = server.encode(urls[name])
        row(name, server.name, item, milliseconds)
        answers.setdefault(name, []).append((item, rows))
        times.setdefault(item["source"], []).append(milliseconds)


def burst(server, url):
    """The same new picture, many times at once: (sources, rows, key)."""
    with concurrent.futures.ThreadPoolExecutor(BURST) as pool:
        replies = list(pool.map(lambda _: server.encode(url), range(BURST)))
    return [item["source"] for item, _, _ in replies], [rows for _, rows, _ in replies], \
        replies[0][0]["key"]


def show(servers, pictures, keys):
    *regular, late = pictures
    names = [path.name for path in regular]
    urls = {path.name: data_url(path) for path in pictures}
    answers, times = {}, {}
    first, second = servers

    print(f"\n  {'picture':<20} {'server':<9} {'from':<8} {'tokens':>6} {'answered in':>12}")
    send_all(first, names, urls, answers, times)
    wait_for_puts(servers)
    send_all(second, names, urls, answers, times)
    send_all(first, names, urls, answers, times)
    keys.update(item["key"] for a in answers.values() for item, _ in a)

    print(f"\n  {BURST} requests at once for one new picture, {late.name}, to {first.name}:")
    sources, burst_rows, key = burst(first, urls[late.name])
    keys.add(key)
    print("  " + ", ".join(f"{sources.count(s)} {s}" for s in sorted(set(sources))))
    wait_for_puts(servers)

    encodes = sum(server.metric("vitrove_encoder_items_total") for server in servers)
    lookups = sum(server.metric("vitrove_lookups_total") for server in servers)
    saved = sum(server.metric("vitrove_encode_seconds_saved_total") for server in servers)
    median = {source: statistics.median(values) for source, values in times.items()}

    print("\nClaims")
    claim(encodes == len(pictures), f"{len(pictures)} pictures, {encodes:.0f} encodes: each once in "
                                    "all, on both servers together")
    claim(all(a[0][0]["source"] == "encoded" and a[1][0]["source"] == "store"
              and a[2][0]["source"] == "local" for a in answers.values()),
          "each was encoded by the first server, came to the second from the store, and was a local "
          "hit the next time")
    claim(all(rows == a[0][1] for a in answers.values() for _, rows in a),
          "all answers for a picture have the same rows, byte for byte")
    claim(sources.count("encoded") == 1 and len(set(burst_rows)) == 1,
          f"the burst of {BURST} ran the encoder once and all got its rows")

    print("\nTotals")
    print(f"  pictures {len(pictures)}, lookups {lookups:.0f}, encodes {encodes:.0f}, "
          f"hits {lookups - encodes:.0f}")
    print(f"  encode time saved: {saved:.2f} s")
    print(f"  median answer: encoded {median['encoded']:.1f} ms, from the store "
          f"{median['store']:.1f} ms, from the pool {median['local']:.1f} ms")
    print(f"  a hit in the pool was {median['encoded'] / median['local']:.0f} times faster, a hit in "
          f"the store {median['encoded'] / median['store']:.0f} times")


@contextlib.contextmanager
def store_of(choice):
    """(URL, further flags for the servers, what to say of it): files, an engine started for the
    demo, or a store that is there already."""
    if choice is None:
        yield f"file://{WORK}/store?capacity=1GiB", [], "a folder"
    elif choice in ENGINES:
        with ENGINES[choice](WORK / "store") as engine:
            yield engine.url, [], engine.words
    else:
        # Under an epoch of its own nothing is found that an earlier run has left.
        yield choice, ["--epoch", str(secrets.randbelow(1 << 62))], without_password(choice)


def remove_all(server, keys):
    for key in keys:
        server.request("DELETE", f"/embeddings/{key}")


def run(vitrove, choice):
    pictures = sorted(path for path in (ROOT / "build" / "sample" / "pictures").iterdir()
                      if path.suffix.lower() in (".png", ".jpg", ".jpeg"))
    with contextlib.ExitStack() as stack:
        url, more, words = stack.enter_context(store_of(choice))
        print(f"Two encode servers, one store: {words}")
        servers = []
        for name in ("server A", "server B"):
            servers.append(EncodeServer(name, vitrove, ROOT / "build" / "sample" / "model", url,
                                        *more))
            stack.callback(servers[-1].stop)
            servers[-1].wait_ready()
        keys = set()
        if more:
            stack.callback(remove_all, servers[0], keys)
        show(servers, pictures, keys)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrove", type=Path, required=True)
    parser.add_argument("--store", metavar="WHICH",
                        help="redis or mooncake: one is started for the demo; or any store URL "
                             "(default: files)")
    args = parser.parse_args()
    die_with_parent()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_in_order)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    try:
        run(args.vitrove.resolve(), args.store)
        return 0
    except (ClaimFailed, EngineFailed) as failed:
        print(f"\nThe demo failed: {failed}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(WORK / "store", ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
