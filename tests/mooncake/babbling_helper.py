#!/usr/bin/env python3
"""Stands in for the interpreter of the Mooncake helper. Whatever it is asked for, it answers calls that nobody has
made, and never stops."""

import array
import json
import socket
import struct
import sys

MAP, SETUP, ANSWER, STARTED, STATE = 2, 1, 16, 17, 18
HEADER = struct.Struct("=IHHQII")
OK = struct.pack("=IqQ", 1, 0, 0)


def frame(kind, call, payload):
    return HEADER.pack(0x4B4D5456, 1, kind, call, len(payload), 0) + payload


def read(link, count):
    data = b""
    while len(data) < count:
        more = link.recvmsg(count - len(data), socket.CMSG_SPACE(array.array("i").itemsize))[0]
        if not more:
            sys.exit()
        data += more
    return data


link = socket.socket(fileno=3)
link.sendall(frame(STARTED, 0, json.dumps({"ok": True, "provider": "babble", "many_runs": True}).encode()))
while True:
    _, _, kind, call, size, _ = HEADER.unpack(read(link, HEADER.size))
    read(link, size)
    if kind == MAP:
        link.sendall(frame(ANSWER, call, OK))
    elif kind == SETUP:
        link.sendall(frame(STATE, 0, json.dumps({"ok": True}).encode()))
    else:
        try:
            flood = 20_000 * frame(ANSWER, 999_999, OK)  # more quickly than anybody reads
            while True:
                link.sendall(flood)
        except OSError:
            sys.exit()
