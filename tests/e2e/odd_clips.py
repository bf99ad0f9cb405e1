"""Clips and sounds that ask for far more than they are."""

import struct

from clips import clip, wav


def put(content, at, new):
    return content[:at] + new + content[at + len(new):]


# MP4

def declared_mp4(width, height):
    """The sample entry says that frames are that large."""
    whole = clip("h264.mp4")
    return put(whole, whole.index(b"avc1", whole.index(b"stsd")) + 28,
               struct.pack(">HH", width, height))


def claiming_mp4(samples, size=1):
    """So many samples of one size, in a table of twenty bytes."""
    whole = clip("h264.mp4")
    return put(whole, whole.index(b"stsz") + 8, struct.pack(">II", size, samples))


def lasting_mp4(ticks):
    """Each frame is shown for so long."""
    whole = clip("h264.mp4")
    return put(whole, whole.index(b"stts") + 16, struct.pack(">I", ticks))


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind, *parts):
    return box(kind, bytes(4), *parts)


def numbers(*values):
    return struct.pack(f">{len(values)}I", *values)


def track(handler, table, *beside):
    """A file of one track, its samples told by the tables alone."""
    media = box(b"mdia", full_box(b"hdlr", bytes(4), handler), box(b"minf", box(b"stbl", *table)))
    return (box(b"ftyp", b"isom", bytes(4), b"isom") + box(b"moov", box(b"trak", media, *beside))
            + box(b"mdat", b"x" * (1 << 20)))


def endless_chunks_mp4(chunks=80, samples=0x7fffffff):
    """Plain sound of so many samples a chunk, which take no byte to tell."""
    return track(b"soun", [full_box(b"stts", numbers(1, chunks * samples & 0xffffffff, 1)),
                           full_box(b"stsc", numbers(1, 1, samples, 1)),
                           full_box(b"stsz", numbers(2, chunks * samples & 0xffffffff)),
                           full_box(b"stco", numbers(chunks), bytes(4 * chunks))])


def edited_mp4(edits=10_000, samples=20_000):
    """Each edit takes all samples again."""
    return track(b"vide", [full_box(b"stsz", numbers(40, samples))],
                 box(b"edts", full_box(b"elst", numbers(edits), bytes(12 * edits))))


# AVI and GIF

def declared_avi(width, height):
    whole = clip("mjpeg.avi")
    return put(whole, whole.index(b"strf") + 12, struct.pack("<ii", width, height))


def declared_gif(width, height):
    return put(clip("moving.gif"), 6, struct.pack("<HH", width, height))


# WAV

def claiming_wav(data_bytes, rate=16000):
    """A header that promises so many bytes of sound."""
    whole = wav([0.25] * 1600, rate)
    return put(whole, whole.index(b"data") + 4, struct.pack("<I", data_bytes))


def odd_rate_wav(rate):
    return put(wav([0.25] * 1600), 24, struct.pack("<I", rate))


# FLAC

def crc(data, polynomial, bits):
    top, value = 1 << (bits - 1), 0
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = ((value << 1) ^ (polynomial if value & top else 0)) & (2 * top - 1)
    return value


BLOCK = 65535


def silent_flac(seconds, rate=16000):
    """Silence takes thirteen bytes for every 65535 samples."""
    count = seconds * rate // BLOCK
    packed = rate << 44 | 0 << 41 | 15 << 36 | count * BLOCK  # one channel of 16 bits
    info = struct.pack(">HH", BLOCK, BLOCK) + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    frames = []
    for number in range(count):
        # Frames are numbered as UTF-8 numbers characters.
        head = b"\xff\xf8\x70\x08" + chr(number).encode() + struct.pack(">H", BLOCK - 1)
        head += bytes([crc(head, 0x07, 8)])
        body = head + bytes(3)  # a constant subframe: its kind, and a sample of 16 bits
        frames.append(body + struct.pack(">H", crc(body, 0x8005, 16)))
    return b"fLaC" + b"\x80\0\0\x22" + info + b"".join(frames)


# Name -> (modality, how to make it, the statuses that are right).
BOMBS = {
    "mp4 of 65535 x 65535": ("video", lambda: declared_mp4(65535, 65535), {413}),
    "mp4 of 65535 x 16": ("video", lambda: declared_mp4(65535, 16), {400, 413}),
    "mp4 of no width": ("video", lambda: declared_mp4(0, 48), {400}),
    "mp4 of fifty million frames": ("video", lambda: claiming_mp4(50_000_000), {413}),
    "mp4 of three million frames": ("video", lambda: claiming_mp4(3_000_000), {400}),
    "mp4 of three million frames of nothing": (
        "video", lambda: claiming_mp4(3_000_000, 0), {400, 413}),
    "mp4 that lasts for months": ("video", lambda: lasting_mp4(0x7fffffff), {400, 413}),
    "mp4 of chunks without end": ("audio", endless_chunks_mp4, {413}),
    "mp4 of chunks without end as a clip": ("video", endless_chunks_mp4, {400, 413}),
    "mp4 of ten thousand edits": ("video", edited_mp4, {413}),
    "avi of 2^31 - 1 squared": ("video", lambda: declared_avi(2**31 - 1, 2**31 - 1), {400, 413}),
    "avi of 60000 x 60000": ("video", lambda: declared_avi(60000, 60000), {413}),
    "gif of 65535 x 65535 as a clip": ("video", lambda: declared_gif(65535, 65535), {400, 413}),
    "wav of four gigabytes": ("audio", lambda: claiming_wav(2**32 - 64), {400, 413}),
    "wav of 2^31 samples a second": ("audio", lambda: odd_rate_wav(2**31 - 1), {400, 415}),
    "wav of a rate that needs all filters": ("audio", lambda: odd_rate_wav(44_101), {200}),
    "wav of a rate that needs too many": ("audio", lambda: odd_rate_wav(383_999), {415}),
    "wav of one sample a second": ("audio", lambda: odd_rate_wav(1), {415}),
    "flac of two hours": ("audio", lambda: silent_flac(7200), {413}),
}
