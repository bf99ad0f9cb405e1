"""Clips and sounds with damage that a decoder might step over: each container is as it was, and one
picture or packet inside is not."""

from clips import clip
from odd_clips import put


# Matroska: elements of an id, a size and a body, some of them inside others.

SEGMENT, CLUSTER, BLOCK = 0x18538067, 0x1f43b675, 0xa3
VOID = b"\xec"
NOTHING = b"\0"  # no id begins like this


def number(content, at, with_marker):
    length = 9 - content[at].bit_length()
    value = int.from_bytes(content[at:at + length], "big")
    return (value if with_marker else value & ((1 << 7 * length) - 1)), at + length


def blocks(content, at=0, end=None):
    """Of each block in turn: where its id stands, and where its packet begins."""
    end = len(content) if end is None else end
    while at < end:
        start = at
        kind, at = number(content, at, True)
        size, at = number(content, at, False)
        if kind in (SEGMENT, CLUSTER):
            yield from blocks(content, at, min(end, at + size))
        if kind == BLOCK:
            yield start, at + 4  # the track, the time, flags
        at += size


def with_block_id(name, nth, new):
    whole = clip(name)
    return put(whole, list(blocks(whole))[nth][0], new)


def with_packet(name, nth, new):
    """Its first bytes are others."""
    whole = clip(name)
    return put(whole, list(blocks(whole))[nth][1], new)


# GIF

def sub_blocks(content, at):
    """Where each begins and ends; the last is empty."""
    while True:
        yield at + 1, at + 1 + content[at]
        if content[at] == 0:
            return
        at += 1 + content[at]


def pixel_blocks(content, nth):
    """The sub-blocks of a picture's compressed pixels."""
    def after_table(flags, at):
        return at + (3 << (flags & 7) + 1 if flags & 0x80 else 0)

    at = after_table(content[10], 13)
    while True:
        if content[at] == 0x2c:
            at = after_table(content[at + 9], at + 10) + 1
            found = list(sub_blocks(content, at))
            if nth == 0:
                return found
            nth -= 1
        else:
            found = list(sub_blocks(content, at + 2))
        at = found[-1][0]


def gif_with_bad_pixels(nth):
    """Codes that nothing before has given a meaning, the ends of blocks untouched."""
    whole = clip("moving.gif")
    begin, end = pixel_blocks(whole, nth)[0]
    return put(whole, begin + 8, b"\xff" * (end - begin - 8))


# MP4, AVI and Ogg

def hevc_without_key_frame():
    """Its only one is of a kind that nobody knows."""
    whole = clip("hevc.mp4")
    return put(whole, whole.index(b"mdat") + 8, bytes([48 << 1]))


def mpeg4_without_key_frame():
    """Its only one calls itself predicted."""
    whole = clip("mpeg4.avi")
    at = whole.index(b"\0\0\1\xb6", whole.index(b"movi")) + 4
    return put(whole, at, bytes([whole[at] | 0x40]))


def mpeg4_without_first_picture():
    """Whoever plays the file is told that this chunk is none of the stream's."""
    whole = clip("mpeg4.avi")
    return put(whole, whole.index(b"00dc", whole.index(b"movi")), b"JUNK")


def ogg_with_lost_page(nth):
    whole = clip("pages.ogg")
    at = -1
    for _ in range(nth + 1):
        at = whole.index(b"OggS", at + 1)
    return put(whole, at + 40, bytes([whole[at + 40] ^ 1]))


# Name -> (modality, the file)
BROKEN = {
    "gif, first picture": ("video", lambda: gif_with_bad_pixels(0)),
    "gif, picture in the middle": ("video", lambda: gif_with_bad_pixels(6)),
    "hevc without a key frame": ("video", hevc_without_key_frame),
    "mpeg-4 without a key frame": ("video", mpeg4_without_key_frame),
    "mpeg-4 without its first picture": ("video", mpeg4_without_first_picture),
    "h.264 that begins amid a group": ("video", lambda: with_block_id("h264.mkv", 0, VOID)),
    "matroska with a block that is none": ("video", lambda: with_block_id("vp9.webm", 5, NOTHING)),
    "av1 with a unit of no known kind": ("video", lambda: with_packet("av1.webm", 4, b"\x4a")),
    "opus with a lost block": ("audio", lambda: with_block_id("opus.webm", 9, NOTHING)),
    "opus with a packet of no frames": ("audio", lambda: with_packet("opus.webm", 9, b"\xff\0")),
    "ogg with a lost page": ("audio", lambda: ogg_with_lost_page(4)),
}
