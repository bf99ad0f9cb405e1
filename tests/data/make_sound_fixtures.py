#!/usr/bin/env python3
"""Writes tests/data/sounds/golden.json: what sounds are decoded to and which features are made of them.

    build/venv/bin/python tests/data/make_sound_fixtures.py

Features are computed here a second time, by numpy in double precision: closer to ours than the
reference's own in float32, so that a small change of ours shows as well. What a sound without loss is
at its own rate is told by numpy, too. What our resampler makes of one, and what numpy cannot read, is
told by ourselves: there the test is that it stays the same.

Whoever changes bytes on purpose raises the version in the code and here.
"""

import json
import struct
import zlib
from pathlib import Path

import numpy as np

from make_golden_keys import QWEN2_AUDIO, WHISPER

DATA = Path(__file__).resolve().parent

VERSION = 2  # of the families
DECODER_VERSION = 3
PLACES = 96  # values of a feature that are kept
STEP = 7919
CONFIGS = {"whisper": WHISPER, "whisper_v3": {**WHISPER, "feature_size": 128},
           "qwen2_audio": QWEN2_AUDIO}
# Samples and seed of each tone: a token's least, odd, a second, all of a chunk, and more.
TONES = [(641, 2), (12345, 1), (16000, 0), (480000, 4), (500000, 5)]
RATE, HOP, N_FFT, CHUNK = 16000, 160, 400, 30
# At 16000 a second without loss: the file, and the one that its samples are of.
LOSSLESS = {"plain.wav": "plain.wav", "stereo.wav": "stereo.wav", "float.wav": "float.wav",
            "deep.wav": "deep.wav", "flac.mkv": "plain.wav", "pcm.mov": "plain.wav"}
# CRC-32 of the samples at 16000 a second, by our own word.
PINNED = {"alac.m4a": "db4aa961", "cd.wav": "4e02b216", "stereo.flac": "4e02b216",
          "telephone.wav": "8e6c53ab"}


def hashed(count, seed):
    """Pseudo-random 32-bit words; the tests' hashed()."""
    mask = np.uint64(0xFFFFFFFF)
    n = (np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)) & mask
    n = (n * np.uint64(0x85EBCA6B)) & mask
    n ^= n >> np.uint64(13)
    return (n * np.uint64(0xC2B2AE35)) & mask


def tone(count, seed):
    """The tests' tone()."""
    i = np.arange(count, dtype=np.int64)

    def triangle(step):
        return np.abs((i * step) % 65536 - 32768) - 16384

    swell = np.abs((i * 3) % 65536 - 32768)
    grain = (hashed(count, seed) >> np.uint64(22)).astype(np.int64) - 512
    value = (triangle(901 + 40 * seed) + triangle(2741 + 90 * seed) // 2) * swell // 32768 + grain
    return (value.astype(np.float64) / 32768).astype(np.float32)


def mel_filters(count):
    """[mels, bins]: Slaney's scale and his triangles of equal area, up to 8000 Hz."""
    def hertz(mel):
        return np.where(mel < 15, 200 * mel / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))

    corners = hertz(np.linspace(0, 15 + np.log(8) * 27 / np.log(6.4), count + 2))
    bins = np.linspace(0, RATE / 2, N_FFT // 2 + 1)
    left, middle, right = (corners[i:count + i, None] for i in range(3))
    heights = np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle))
    return np.maximum(heights, 0) * 2 / (right - left)


def log_mel(sound, mels):
    """[mels, frames] as float32."""
    length = CHUNK * RATE
    chunk = np.zeros(length)
    chunk[:min(len(sound), length)] = sound[:length]
    padded = np.pad(chunk, N_FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP][:length // HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)
    power = np.abs(np.fft.rfft(frames * window)) ** 2
    values = np.log10(np.maximum(mel_filters(mels) @ power.T, 1e-10)).astype(np.float32)
    return (np.maximum(values, values.max() - np.float32(8)) + np.float32(4)) / np.float32(4)


def feature_case(config, count, seed):
    values = log_mel(tone(count, seed), CONFIGS[config].get("feature_size", 80))
    flat = values.ravel()
    frames = values.shape[1]
    ones = min(-(-min(count, CHUNK * RATE) // HOP), frames)
    case = {"config": config, "tone": [count, seed], "shape": list(values.shape),
            "tokens": (frames + 1) // 2,
            "values": [float(flat[i * STEP % flat.size]) for i in range(PLACES)],
            "mean": float(flat.astype(np.float64).mean())}
    if config == "qwen2_audio":
        case |= {"tokens": (ones + 1) // 2 // 2, "ones": ones}
    return case


def wav_samples(name):
    """The mean of all channels at the file's own rate."""
    data = (DATA / "clips" / name).read_bytes()
    at = data.index(b"fmt ") + 8
    kind, channels, _, _, _, bits = struct.unpack("<HHIIHH", data[at:at + 16])
    if kind == 0xFFFE:  # it stands behind
        (kind,) = struct.unpack("<H", data[at + 24:at + 26])
    at = data.index(b"data") + 8
    if kind == 3:
        samples = np.frombuffer(data[at:], "<f4")
    else:
        raw = np.frombuffer(data[at:], np.uint8).reshape(-1, bits // 8)
        whole = np.zeros((len(raw), 4), np.uint8)
        whole[:, 4 - bits // 8:] = raw
        samples = (whole.view("<i4").ravel() / 2.0 ** 31).astype(np.float32)
    sums = samples.reshape(-1, channels).sum(axis=1, dtype=np.float32)
    return (sums / np.float32(channels)).astype(np.float32)


def main():
    decoded = {}
    for name, source in LOSSLESS.items():
        samples = wav_samples(source)
        decoded[name] = {"samples": len(samples), "crc32": f"{zlib.crc32(samples.tobytes()):08x}"}
    decoded |= {name: {"samples": len(wav_samples("plain.wav")), "crc32": crc32}
                for name, crc32 in PINNED.items()}
    cases = [feature_case(config, *one) for config in CONFIGS for one in TONES]
    target = DATA / "sounds" / "golden.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({
        "version": VERSION, "decoder_version": DECODER_VERSION, "step": STEP, "configs": CONFIGS,
        "features": cases, "decoded": decoded}, indent=1) + "\n")


if __name__ == "__main__":
    main()
