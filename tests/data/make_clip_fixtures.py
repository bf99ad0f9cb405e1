#!/usr/bin/env python3
"""Writes the clips and sounds of tests/data/clips with the ffmpeg program, a few KB each.

    build/venv/bin/python tests/data/make_clip_fixtures.py

Not part of a test run: the files are committed, and another version of ffmpeg's encoders would write
others. What they hold is told here once, and again in tests/unit/media/clips.h:
  video   12 frames of 64 x 48 at 10 a second; frame i is one colour all over (frame_color), but for
          a white square of 16 x 16 in its upper left corner
  audio   0.6 seconds of two tones, 440 Hz on the left and 660 Hz on the right, each of amplitude
          0.5; the mono ones are the mean of both
"""

import subprocess
import wave
from pathlib import Path

import numpy as np

CLIPS = Path(__file__).resolve().parent / "clips"
FRAMES, WIDTH, HEIGHT, FPS = 12, 64, 48, 10
SECONDS = 0.6


def frame_color(i: int) -> tuple[int, int, int]:
    return 20 + 18 * i, 230 - 17 * i, (60 * i) % 200 + 20


def frames() -> bytes:
    pixels = np.zeros((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    for i in range(FRAMES):
        pixels[i] = frame_color(i)
        pixels[i, :16, :16] = 255
    return pixels.tobytes()


def tones(rate: int) -> np.ndarray:
    t = np.arange(int(SECONDS * rate)) / rate
    return np.stack([0.5 * np.sin(2 * np.pi * f * t) for f in (440, 660)], -1)


def ffmpeg(name: str, source: list[str], options: list[str], data: bytes) -> None:
    command = ["ffmpeg", "-v", "error", "-y", *source, "-i", "-", "-fflags", "+bitexact",
               "-flags:v", "+bitexact", "-flags:a", "+bitexact", *options, str(CLIPS / name)]
    subprocess.run(command, input=data, check=True)


def video(name: str, *options: str) -> None:
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(FPS)]
    ffmpeg(name, source, list(options), frames())


def copy(source: str, name: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-ss", "0.75", "-i", str(CLIPS / source), "-c",
                    "copy", "-fflags", "+bitexact", str(CLIPS / name)], check=True)


def join(name: str, sources: list[str], *options: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *sources, "-c", "copy", "-fflags", "+bitexact",
                    *options, str(CLIPS / name)], check=True)


def audio(name: str, rate: int, channels: int, *options: str) -> None:
    samples = tones(rate)
    if channels == 1:
        samples = samples.mean(axis=1, keepdims=True)
    source = ["-f", "f32le", "-ar", str(rate), "-ac", str(channels)]
    ffmpeg(name, source, list(options), samples.astype("<f4").tobytes())


def main() -> None:
    CLIPS.mkdir(exist_ok=True)
    h264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-qp", "10", "-g", "6", "-bf", "2"]
    matrix = ["-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709"]
    video("h264.mp4", *h264, "-movflags", "+faststart")
    video("bt709.mp4", *matrix, *h264)
    video("h264.mkv", *h264)
    video("h264.mov", *h264)
    video("fragmented.mp4", *h264, "-movflags", "+frag_keyframe+empty_moov")
    video("hevc.mp4", "-c:v", "libx265", "-pix_fmt", "yuv420p", "-x265-params",
          "qp=10:log-level=none", "-tag:v", "hvc1")
    video("vp8.webm", "-c:v", "libvpx", "-crf", "4", "-b:v", "1M", "-auto-alt-ref", "1",
          "-lag-in-frames", "10")
    video("vp9.webm", "-c:v", "libvpx-vp9", "-crf", "8", "-b:v", "0")
    video("av1.webm", "-c:v", "libaom-av1", "-crf", "8", "-cpu-used", "8")
    video("mpeg4.avi", "-c:v", "mpeg4", "-q:v", "1")
    video("mpeg4.mp4", "-c:v", "mpeg4", "-q:v", "1", "-bf", "2")
    video("deep.mp4", "-c:v", "libx264", "-pix_fmt", "yuv444p10le", "-qp", "10")
    video("large.mp4", "-vf", "scale=640:640", *h264)
    video("mjpeg.avi", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "2")
    video("exact.mov", "-c:v", "png")
    video("moving.gif")
    video("variable.mkv", "-vf", "setpts='if(lt(N,6),N,6+4*(N-6))/10/TB'", "-fps_mode", "vfr", *h264)
    # Two minutes of gray in HD: large when decoded, and nearly nothing as a file.
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "color=c=gray:s=1920x1080:r=2:d=120",
                    "-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast", "-g", "250", "-threads", "1",
                    "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
                    str(CLIPS.parent / "parity" / "long_hd.mp4")], check=True)
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", str(CLIPS / "h264.mp4"), "-c", "copy",
                    "-fflags", "+bitexact", "-metadata:s:v:0", "rotate=90",
                    str(CLIPS / "turned.mp4")], check=True)
    # What a cut leaves that is not at a key frame, or at one that others before it refer to.
    copy("h264.mp4", "trimmed.mp4")
    video("open.mkv", "-c:v", "libx265", "-pix_fmt", "yuv420p", "-x265-params",
          "open-gop=1:keyint=5:min-keyint=5:bframes=2:qp=10:log-level=none")
    copy("open.mkv", "trimmed.mkv")
    (CLIPS / "open.mkv").unlink(missing_ok=True)
    audio("plain.wav", 16000, 1, "-c:a", "pcm_s16le")
    audio("stereo.wav", 16000, 2, "-c:a", "pcm_s16le")
    audio("cd.wav", 44100, 2, "-c:a", "pcm_s16le")
    audio("telephone.wav", 8000, 1, "-c:a", "pcm_s16le")
    audio("float.wav", 16000, 1, "-c:a", "pcm_f32le")
    audio("deep.wav", 16000, 2, "-c:a", "pcm_s24le")
    audio("stereo.flac", 44100, 2, "-sample_fmt", "s16")
    audio("stereo.mp3", 44100, 2, "-b:a", "96k")
    audio("opus.ogg", 48000, 2, "-c:a", "libopus", "-b:a", "48k")
    audio("pages.ogg", 48000, 1, "-c:a", "libopus", "-b:a", "16k", "-page_duration", "100000")
    audio("vorbis.ogg", 44100, 2, "-c:a", "libvorbis", "-q:a", "3")
    audio("aac.m4a", 44100, 2, "-c:a", "aac", "-b:a", "96k")
    audio("adts.aac", 44100, 2, "-c:a", "aac", "-b:a", "96k")
    audio("alac.m4a", 16000, 1, "-c:a", "alac")
    audio("opus.webm", 48000, 2, "-c:a", "libopus", "-b:a", "48k")
    audio("pcm.mov", 16000, 1, "-c:a", "pcm_s16le")
    audio("flac.mkv", 16000, 1, "-c:a", "flac", "-sample_fmt", "s16")
    for name, clip, sound in [("both.mp4", "h264.mp4", "aac.m4a"), ("both.mov", "h264.mov", "pcm.mov"),
                              ("both.webm", "vp8.webm", "opus.webm"), ("both.mkv", "h264.mkv", "flac.mkv")]:
        join(name, ["-i", str(CLIPS / clip), "-i", str(CLIPS / sound)])
    # A picture on the cover of a song.
    cover = str(CLIPS.parent / "media" / "plain.jpg")
    join("cover.m4a", ["-i", str(CLIPS / "aac.m4a"), "-i", cover], "-map", "0", "-map", "1",
         "-disposition:v", "attached_pic")
    join("cover.mkv", ["-i", str(CLIPS / "flac.mkv")], "-attach", cover, "-metadata:s:t",
         "mimetype=image/jpeg")


if __name__ == "__main__":
    main()
