"""The committed clips and sounds, and sounds made by hand."""

import struct

import numpy

from support import ROOT, data_url, png

CLIPS = ROOT / "tests" / "data" / "clips"
VIDEOS = ["h264.mp4", "h264.mkv", "h264.mov", "fragmented.mp4", "hevc.mp4", "vp8.webm", "vp9.webm",
          "av1.webm", "mpeg4.avi", "mpeg4.mp4", "mjpeg.avi", "exact.mov", "moving.gif"]
SOUNDS = ["plain.wav", "stereo.wav", "cd.wav", "telephone.wav", "float.wav", "deep.wav",
          "stereo.flac", "stereo.mp3", "opus.ogg", "vorbis.ogg", "aac.m4a", "adts.aac", "alac.m4a",
          "pcm.mov", "flac.mkv"]
# What the videos and sounds hold.
FRAMES, WIDTH, HEIGHT = 12, 64, 48
SECONDS = 0.6


def clip(name):
    return (CLIPS / name).read_bytes()


def clip_url(name):
    return data_url(clip(name), "application/octet-stream")


def wav(samples, rate=16000, channels=1, bits=32):
    """Interleaved: 32-bit floats, or whole numbers of 16 or 24 bits."""
    if bits == 32:
        data = numpy.asarray(samples, "<f4").tobytes()
    else:
        whole = numpy.round(numpy.asarray(samples) * (2 ** (bits - 1) - 1)).astype("<i4")
        data = whole.view(numpy.uint8).reshape(-1, 4)[:, :bits // 8].tobytes()
    frame = bits // 8 * channels
    kind = 3 if bits == 32 else 1
    head = struct.pack("<IHHIIHH", 16, kind, channels, rate, frame * rate, frame, bits)
    body = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


# A good file of every modality.
SAMPLES = {"image": png(800), "video": clip("h264.mp4"), "audio": clip("plain.wav")}
