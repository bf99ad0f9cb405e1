"""A folder that a server may read from, temptations in and around it, and URLs that try them."""

import os
import stat

from clips import SAMPLES
from support import png

FILE_URLS = [
    "file:///etc/passwd", "file://localhost/etc/passwd", "file:/etc/passwd", "FILE:///etc/passwd",
    "file:///etc/passwd#fake.jpg", "file:///etc/passwd?fake.jpg", "file:///dev/zero",
    "file:///dev/urandom", "file:///proc/self/environ", "file:///proc/self/maps",
    "file://{root}/../secret.png", "file://{root}/deep/../../secret.png",
    "file://{root}/%2e%2e/secret.png", "file://{root}/..%2fsecret.png",
    "file://{root}/link-out.png", "file://{root}/absolute-link.png",
    "file://{root}/folder-link/secret.png", "file://{root}/loop.png", "file://{root}/zero-link",
    "file://{root}/fifo.png", "file://{root}/socket.png", "file://{root}", "file://{root}/",
    "file://{root}/deep", "file://{root}-too/picture.png", "file://{root}/picture.png%00.jpg",
    "file://{root}/empty.png", "file://evil.example{root}/picture.png",
    "file://{root}/picture.png\\..\\..\\secret.png", "\\\\host\\share\\a.png", "{root}/picture.png",
    "/etc/passwd", "../secret.png", "file:", "file://", "file:picture.png",
    "local:{root}/picture.png",
]


def allowed_folder(folder):
    """Makes it below `folder`, and returns it."""
    root = folder / "allowed"
    (root / "deep").mkdir(parents=True)
    (root / "picture.png").write_bytes(png(821))
    (root / "deep" / "picture.png").write_bytes(png(822))
    (root / "with space.png").write_bytes(png(823))
    for modality, content in SAMPLES.items():
        (root / modality).write_bytes(content)
    (root / "inner-link.png").symlink_to("deep/picture.png")
    (folder / "secret.png").write_bytes(png(824))
    (folder / "allowed-too").mkdir()
    (folder / "allowed-too" / "picture.png").write_bytes(png(825))
    (root / "link-out.png").symlink_to("../secret.png")
    (root / "absolute-link.png").symlink_to(folder / "secret.png")
    (root / "folder-link").symlink_to("..")
    (root / "loop.png").symlink_to("loop.png")
    (root / "zero-link").symlink_to("/dev/zero")
    os.mkfifo(root / "fifo.png")
    (root / "empty.png").touch()
    os.mknod(root / "socket.png", stat.S_IFSOCK | 0o600)
    return root
