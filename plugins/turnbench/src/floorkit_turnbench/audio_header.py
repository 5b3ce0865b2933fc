"""Duration of audio from its header: FLAC and WAV bytes, samples never touched.

Sources: RFC 9639 (FLAC), section 8.2, stream information; RIFF WAVE as Microsoft and IBM define it, RF64
as EBU Tech 3306 does.
"""

from __future__ import annotations

import struct


class UnknownAudioError(ValueError):
    """The header does not tell a duration; the message says why."""


def duration_s(audio: memoryview | bytes) -> float:
    """Duration in seconds, frames / sample rate.

    Raises
    ------
    UnknownAudioError
        For other formats, and headers without length.
    """
    view = memoryview(audio)
    magic = bytes(view[:4])
    try:
        if magic == b"fLaC":
            return _flac(view)
        if magic in (b"RIFF", b"RF64"):
            return _wav(view)
    except struct.error as error:
        raise UnknownAudioError(f"the header is cut short ({error})") from error
    raise UnknownAudioError(f"it begins with {magic!r}, neither FLAC nor WAV")


def _flac(view: memoryview) -> float:
    # after the magic and a block header of 4 bytes: 10 bytes of block and frame sizes, then 20 bits of rate,
    # 3 of channels, 5 of sample size and 36 of sample count
    (packed,) = struct.unpack_from(">Q", view, 18)
    rate, samples = packed >> 44, packed & ((1 << 36) - 1)
    if not rate or not samples:
        raise UnknownAudioError("its FLAC header leaves the number of samples open")
    return float(samples) / float(rate)


def _wav(view: memoryview) -> float:
    position, rate, frame_bytes = 12, 0, 0
    long_size: int | None = None
    while position + 8 <= len(view):
        name, size = bytes(view[position : position + 4]), struct.unpack_from("<I", view, position + 4)[0]
        if name == b"ds64":
            (long_size,) = struct.unpack_from("<Q", view, position + 16)
        elif name == b"fmt ":
            rate, frame_bytes = (
                struct.unpack_from("<I", view, position + 12)[0],
                struct.unpack_from("<H", view, position + 20)[0],
            )
        elif name == b"data":
            if not rate or not frame_bytes:
                raise UnknownAudioError("its WAV header has no format before the data")
            if size == 0xFFFFFFFF:  # the size stands in ds64, or was left open by a writer that streamed
                size = long_size if long_size is not None else len(view) - position - 8
            return float(size // frame_bytes) / float(rate)
        position += 8 + size + size % 2
    raise UnknownAudioError("its WAV header has no data")
