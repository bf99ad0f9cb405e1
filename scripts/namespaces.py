"""How to start a program that may mount file systems and make networks of its own.

The real-process tests fill a disk, make a directory read-only and give an origin a public address,
all with the kernel's own means. Whatever they mount or make is theirs alone and ends with them.
"""

import os
import subprocess

NEEDED = ("the real-process tests need mount and network namespaces: run as root, as a user who may "
          "make user namespaces (Debian's default) or use sudo without a password, and in a "
          "container with --privileged")

# Within mounts of its own, so that it leaves nothing behind whoever runs it.
PROBE = ("unshare", "--mount", "--net", "sh", "-c",
         "mount -t tmpfs tmpfs /mnt && ip link set lo up")


def candidates(env):
    """Words to put before a command, best first. `env` is what the command needs to see."""
    root = ["unshare", "--mount"]
    yield root
    # Root over nothing but a network and mounts of its own.
    yield ["unshare", "--user", "--map-root-user", "--mount", "--net",
           "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    yield ["sudo", "-n", "env", *(f"{name}={value}" for name, value in env.items()), *root]


def works(words):
    try:
        return subprocess.run([*words, *PROBE], stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, timeout=60).returncode == 0
    except OSError:  # no such program here
        return False


def launcher(env):
    """The first words that work, or None where none do."""
    path = {"PATH": os.environ.get("PATH", "")}
    return next((words for words in candidates({**path, **env}) if works(words)), None)


if __name__ == "__main__":
    if launcher({}) is None:
        print(f"note: {NEEDED}", flush=True)
