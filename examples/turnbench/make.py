"""Make the synthetic turnbench example: conversations annotated by three people, and two systems' output.

    python examples/turnbench/make.py

writes next to this file, always the same bytes:

    test/*.parquet, dev/*.parquet   the official column layout, audio columns holding headers of silence only
    events.json                     system "endpointer": committed events on test
    probs-{eot,int}.json            system "vap": probabilities on test
    dev-probs-{eot,int}.json        the same system on dev, where its thresholds are chosen

Nothing in it is anybody's speech. Turns alternate with pauses, backchannels and interruptions; each annotator
sees them with some jitter, now and then misses one or calls it something else.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20260904
RATE_HZ = 12.5
SAMPLE_RATE = 16_000
TURN_LABELS = ("Normal Turn", "Regular Turn", "Strong Floor Hold", "Bounded Response", "Filler")
BACKCHANNEL_LABELS = ("Acknowledgement Backchannel", "Continuer Backchannel", "Reaction Backchannel")
INTERRUPTION_LABELS = ("Floor-taking Competitive Interruption", "Floor-taking Cooperative Interruption")
ATTEMPT_LABELS = ("Non-floor Taking Competitive Interruption", "Non-floor Taking Cooperative Interruption")
TYPES = ("Casual/Spontaneous", "Instructional")

Event = tuple[float, float, str]


def true_events(rng: np.random.Generator, duration_s: float) -> dict[int, list[Event]]:
    """What really happens: for each speaker (start, end, fine label), in order of time."""
    events: dict[int, list[Event]] = {1: [], 2: []}
    speaker, now = int(rng.integers(1, 3)), 1.0 + rng.random()
    interrupts = False
    while now < duration_s - 12.0:
        segments = int(rng.integers(1, 4))
        for segment in range(segments):
            length = rng.uniform(1.0, 3.5)
            label = str(rng.choice(INTERRUPTION_LABELS if interrupts else TURN_LABELS))
            interrupts = False
            events[speaker].append((now, now + length, label))
            if rng.random() < 0.25:
                start = now + rng.uniform(0.4, 0.8) * length
                kind = BACKCHANNEL_LABELS if rng.random() < 0.8 else ATTEMPT_LABELS
                events[3 - speaker].append((start, start + rng.uniform(0.2, 0.6), str(rng.choice(kind))))
            now += length
            if segment < segments - 1:
                now += rng.uniform(0.4, 1.5)
        interrupts = bool(rng.random() < 0.2)
        now += -rng.uniform(0.3, 0.7) if interrupts else rng.uniform(0.2, 1.0)
        speaker = 3 - speaker
    return {who: sorted(track) for who, track in events.items()}


def annotate(rng: np.random.Generator, events: list[Event], duration_s: float) -> list[dict[str, Any]]:
    """One annotator's view of a speaker's events."""
    track = []
    for start, end, label in events:
        if rng.random() < 0.06:
            continue
        seen = label
        if rng.random() < 0.06:
            seen = str(rng.choice((*TURN_LABELS, *BACKCHANNEL_LABELS, "Laughter")))
        first = max(0.0, start + rng.normal(0.0, 0.04))
        last = min(max(first + 0.1, end + rng.normal(0.0, 0.05)), duration_s)
        track.append({"start_s": round(first, 3), "end_s": round(last, 3), "label": seen, "text": ""})
    return sorted(track, key=lambda event: event["start_s"])


def flac_header(duration_s: float) -> bytes:
    """A FLAC stream information block for that duration, without any audio."""
    samples = round(duration_s * SAMPLE_RATE)
    packed = (SAMPLE_RATE << 44) | (0 << 41) | (15 << 36) | samples
    return b"fLaC" + struct.pack(">I", (0x80 << 24) | 34) + bytes(10) + struct.pack(">Q", packed) + bytes(16)


def write_shard(path: Path, conversations: list[dict[str, Any]], rng: np.random.Generator) -> None:
    """One parquet shard in the official layout."""
    event = pa.struct(
        [("start_s", pa.float64()), ("end_s", pa.float64()), ("label", pa.string()), ("text", pa.string())]
    )
    audio = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns: dict[str, Any] = {"conversation_id": pa.array([one["id"] for one in conversations])}
    for speaker in (1, 2):
        values = [
            {"bytes": flac_header(one["duration_s"]), "path": f"{one['id']}_{speaker}.flac"}
            for one in conversations
        ]
        columns[f"speaker_{speaker}_audio"] = pa.array(values, type=audio)
    for speaker in (1, 2):
        for annotator in "abc":
            tracks = [annotate(rng, one["events"][speaker], one["duration_s"]) for one in conversations]
            columns[f"speaker_{speaker}_annotation_{annotator}"] = pa.array(tracks, type=pa.list_(event))
    columns["metadata"] = pa.array([{"conversation_type": one["type"]} for one in conversations])
    columns["audio_status"] = pa.array(["clean"] * len(conversations))
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="snappy")


def committed(rng: np.random.Generator, one: dict[str, Any]) -> dict[str, Any]:
    """Events of a plain endpointer: late after most ends of turn, and after some pauses too."""
    entry: dict[str, Any] = {"conversation_id": one["id"]}
    for speaker in (1, 2):
        ends, onsets = [], []
        for start, end, label in one["events"][speaker]:
            if label in TURN_LABELS and rng.random() < 0.7:
                ends.append(end + rng.uniform(0.3, 1.0))
            if label in INTERRUPTION_LABELS and rng.random() < 0.6:
                onsets.append(start + rng.uniform(0.2, 0.8))
            if label in BACKCHANNEL_LABELS and rng.random() < 0.12:
                onsets.append(start + rng.uniform(0.1, 0.2))
        entry[f"speaker_{speaker}"] = {
            "eot": sorted({round(time, 2) for time in ends if time < one["duration_s"]}),
            "interruption": sorted({round(time, 2) for time in onsets if time < one["duration_s"]}),
        }
    return entry


def probabilities(rng: np.random.Generator, one: dict[str, Any], task: str) -> dict[str, Any]:
    """Frame probabilities of a model that rises after the events of the task, less so after look-alikes."""
    frames = int(np.floor(one["duration_s"] * RATE_HZ))
    time = (np.arange(frames) + 1) / RATE_HZ
    entry: dict[str, Any] = {"conversation_id": one["id"]}
    for speaker in (1, 2):
        # mostly silence of the model, now and then a stray bump
        value = np.maximum(0.0, rng.normal(-0.1, 0.09, frames))
        own = one["events"][speaker]
        other = [start for start, _, label in one["events"][3 - speaker] if label in TURN_LABELS]
        for number, (start, end, label) in enumerate(own):
            if task == "int" and label not in TURN_LABELS:
                height, peak = (0.65 if label in INTERRUPTION_LABELS else 0.3), start + 0.3
            elif task == "eot" and label in (*TURN_LABELS, *INTERRUPTION_LABELS):
                resumes = own[number + 1][0] if number + 1 < len(own) else np.inf
                gives_floor = any(end - 0.1 < onset < resumes for onset in other)
                height, peak = (0.7 if gives_floor else 0.35), end + 0.35
            else:
                continue
            bump = np.clip(height + rng.normal(0.0, 0.18), 0.0, 1.0)
            value = np.maximum(value, bump * np.exp(-(((time - peak) / 0.15) ** 2)))
        entry[f"speaker_{speaker}"] = {"prob": np.round(np.clip(value, 0.0, 1.0), 3).tolist()}
    return entry


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    folder = Path(__file__).resolve().parent
    for split, prefix, count in (("test", "", 6), ("dev", "dev-", 4)):
        rng = np.random.default_rng([SEED, count])
        conversations = []
        for number in range(count):
            duration_s = float(rng.integers(100, 150))
            conversations.append(
                {
                    "id": str(number + 1 if split == "test" else number + 101),
                    "duration_s": duration_s,
                    "events": true_events(rng, duration_s),
                    "type": TYPES[number % 2],
                }
            )
        half = count // 2
        for shard, part in enumerate((conversations[:half], conversations[half:])):
            write_shard(folder / split / f"{split}-{shard:05d}-of-00002.parquet", part, rng)
        if split == "test":
            entries = [committed(rng, one) for one in conversations]
            write_json(folder / "events.json", {"schema_version": 1, "predictions": entries})
        for task in ("eot", "int"):
            file = {"schema_version": 1, "task": task, "frame_rate_hz": RATE_HZ}
            write_json(
                folder / f"{prefix}probs-{task}.json",
                {**file, "probs": [probabilities(rng, one, task) for one in conversations]},
            )


if __name__ == "__main__":
    main()
