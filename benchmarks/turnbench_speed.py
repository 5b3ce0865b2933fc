"""Speed of turnbench gold, scoring, sweep and probability reading, as ratios to plain loops in the same run.

    python benchmarks/turnbench_speed.py [--conversations 38] [--minutes 12] [--rates 12.5 50]

The yardsticks: for gold the plain loops of ``floorkit_turnbench.reference``; for the sweep a loop over
thresholds that goes through every frame of every conversation again, commits and scores it; for reading,
``json.loads``. The plain sweep is timed on ``--plain-thetas`` thresholds, spread evenly over the candidates,
and scaled to all of them: its cost is one rescan a threshold. Times are of the processor, so that other
programs disturb the ratios little.

The data is synthetic and seeded: turns, pauses, backchannels and interruptions annotated three times with
jitter, about as dense as the official dev set, and probabilities with noise in every frame.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from floorkit_turnbench import reference
from floorkit_turnbench.conversation import Conversation, Gold, make_conversation
from floorkit_turnbench.gold import build_gold
from floorkit_turnbench.kernel import committed_times, score_task
from floorkit_turnbench.labels import ANNOTATORS, CLASSES, FINE_LABELS
from floorkit_turnbench.probabilities import Probabilities, parse_probabilities
from floorkit_turnbench.thresholds import candidate_thetas, sweep_probabilities

T = TypeVar("T")
SEED = 7
TURNS = ("Normal Turn", "Strong Floor Hold", "Bounded Response")
BACKCHANNELS = ("Acknowledgement Backchannel", "Continuer Backchannel")
INTERRUPTIONS = ("Floor-taking Competitive Interruption",)


def timed(work: Callable[[], T], repeat: int = 3) -> tuple[float, T]:
    """Seconds of the fastest of ``repeat`` calls, and what the last one returned."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def make_events(rng: np.random.Generator, duration_s: float) -> dict[int, list[tuple[float, float, str]]]:
    events: dict[int, list[tuple[float, float, str]]] = {1: [], 2: []}
    speaker, now = 1, 1.0
    while now < duration_s - 30.0:
        for _ in range(int(rng.integers(1, 4))):
            length = rng.uniform(0.8, 8.0)
            labels = INTERRUPTIONS if rng.random() < 0.1 else TURNS
            events[speaker].append((now, now + length, str(rng.choice(labels))))
            if rng.random() < 0.7:
                start = now + rng.uniform(0.2, 0.8) * length
                events[3 - speaker].append((start, start + 0.4, str(rng.choice(BACKCHANNELS))))
            now += length + rng.uniform(0.3, 1.2)
        speaker = 3 - speaker
    return {who: sorted(of) for who, of in events.items()}


def make_tracks(
    rng: np.random.Generator, events: Mapping[int, Sequence[tuple[float, float, str]]]
) -> dict[tuple[int, str], list[tuple[float, float, str]]]:
    tracks: dict[tuple[int, str], list[tuple[float, float, str]]] = {}
    for speaker, real in events.items():
        for annotator in ANNOTATORS:
            seen = []
            for start, end, label in real:
                if rng.random() < 0.08:
                    continue
                name = str(rng.choice(list(FINE_LABELS))) if rng.random() < 0.05 else label
                first = round(start + rng.normal(0.0, 0.06), 3)
                seen.append((first, round(max(first + 0.05, end + rng.normal(0.0, 0.07)), 3), name))
            tracks[speaker, annotator] = sorted(seen)
    return tracks


def make_probabilities(
    rng: np.random.Generator,
    events: Mapping[int, Sequence[tuple[float, float, str]]],
    frames: int,
    rate: float,
) -> dict[int, np.ndarray[Any, np.dtype[np.float64]]]:
    time_s = np.arange(1, frames + 1) / rate
    values = {}
    for speaker, real in events.items():
        value = rng.beta(1.2, 12.0, frames)
        for _, end, label in real:
            if label in TURNS:
                near = slice(*np.searchsorted(time_s, (end - 1.0, end + 2.0)))
                bump = np.exp(-(((time_s[near] - end - 0.4) / 0.3) ** 2))
                value[near] = np.maximum(value[near], rng.uniform(0.2, 1.0) * bump)
        values[speaker] = np.round(np.clip(value, 0.0, 1.0), 4).astype(np.float64)
    return values


# --- yardstick: one threshold after the other, every frame again --------------------------------


def plain_sweep(
    golds: Sequence[reference.ReferenceGold],
    probabilities: Sequence[Mapping[int, list[float]]],
    rate: float,
    thetas: Sequence[float],
) -> list[tuple[int, int, int]]:
    """(tp, fp, false_int) at each threshold, by rescanning every conversation at each."""
    rows = []
    for theta in thetas:
        tp = fp = false_int = 0
        for gold, values in zip(golds, probabilities, strict=True):
            times = {speaker: reference.committed(values[speaker], theta, rate) for speaker in (1, 2)}
            hits, fires = plain_score(*gold.sets("eot"), times)
            tp, fp = tp + hits, fp + fires
            false_int += plain_score([], gold.int_negative_spans, gold.int_excluded, times)[1]
        rows.append((tp, fp, false_int))
    return rows


def plain_score(
    positives: Sequence[tuple[int, float, float]],
    negatives: Sequence[tuple[int, float, float]],
    excluded: Sequence[tuple[int, float, float]],
    times: Mapping[int, Sequence[float]],
) -> tuple[int, int]:
    """True and false positives by plain loops over the times."""
    tp = fp = 0
    for speaker in (1, 2):
        gaps = [(start, end) for who, start, end in excluded if who == speaker]
        kept = [t for t in times[speaker] if not any(start <= t <= end for start, end in gaps)]
        own = sorted(t for who, t, _ in positives if who == speaker)
        windows = [(t - 0.25, min(t + 3.0, later)) for t, later in pairwise([*own, float("inf")])]
        claimed: set[float] = set()
        for low, high in windows:
            for t in kept:
                if t > high:
                    break
                if t >= low and t not in claimed:
                    claimed.add(t)
                    tp += 1
                    break
        outside = [t for t in kept if not any(low <= t <= high for low, high in windows)]
        for who, start, end in negatives:
            if who == speaker:
                fp += any(start - 0.25 <= t <= end for t in outside)
    return tp, fp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=38)
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--rates", type=float, nargs="+", default=[12.5, 50.0])
    parser.add_argument("--plain-thetas", type=int, default=12)
    options = parser.parse_args()
    duration_s = options.minutes * 60.0

    rng = np.random.default_rng(SEED)
    events = [make_events(rng, duration_s) for _ in range(options.conversations)]
    tracks = [make_tracks(rng, one) for one in events]
    conversations = [
        make_conversation(
            str(number),
            duration_s,
            {key: tuple(zip(*track, strict=True)) for key, track in one.items()},  # type: ignore[misc]
        )
        for number, one in enumerate(tracks)
    ]
    golds = gold_speed(conversations, tracks)
    plain_golds = [reference.build_gold(coded(one)) for one in tracks]
    print(
        f"{options.conversations} conversations of {options.minutes:g} min, "
        f"{sum(len(gold.eot.positives) for gold in golds)} EOT positives"
    )
    for rate in options.rates:
        sweep_speed(rng, events, golds, plain_golds, rate, int(duration_s * rate), options.plain_thetas)


def coded(tracks: Mapping[tuple[int, str], Sequence[tuple[float, float, str]]]) -> Any:
    raw: dict[int, dict[str, list[tuple[float, float, str]]]] = {1: {}, 2: {}}
    for (speaker, annotator), track in tracks.items():
        raw[speaker][annotator] = [(start, end, CLASSES[FINE_LABELS[label]]) for start, end, label in track]
    return raw


def gold_speed(conversations: Sequence[Conversation], tracks: Sequence[Any]) -> list[Gold]:
    ours, golds = timed(lambda: [build_gold(one) for one in conversations])
    few = tracks[:6]
    plain, _ = timed(lambda: [reference.build_gold(coded(one)) for one in few], repeat=1)
    ours_ms, plain_ms = ours / len(conversations) * 1e3, plain / len(few) * 1e3
    ratio = plain_ms / ours_ms
    print(f"gold         {ours_ms:8.2f} ms a conversation, plain loops {plain_ms:8.2f} ms: {ratio:.1f} x")
    return golds


def sweep_speed(
    rng: np.random.Generator,
    events: Sequence[Any],
    golds: Sequence[Gold],
    plain_golds: Sequence[reference.ReferenceGold],
    rate: float,
    frames: int,
    plain_thetas: int,
) -> None:
    values = [make_probabilities(rng, one, frames, rate) for one in events]
    by_id = {gold.conversation_id: gold for gold in golds}
    probabilities = Probabilities.of(
        "eot", rate, {gold.conversation_id: of for gold, of in zip(golds, values, strict=True)}
    )
    thetas = candidate_thetas(of[speaker] for of in values for speaker in (1, 2))
    ours, table = timed(lambda: sweep_probabilities("eot", by_id, probabilities.values, rate), repeat=2)
    chosen = np.unique(np.linspace(0, len(thetas) - 1, plain_thetas).astype(int))
    lists = [{speaker: of[speaker].tolist() for speaker in (1, 2)} for of in values]
    plain, rows = timed(lambda: plain_sweep(plain_golds, lists, rate, thetas[chosen].tolist()), repeat=1)
    plain *= len(thetas) / len(chosen)
    found = list(
        zip(
            table.tp[chosen].tolist(),
            table.fp[chosen].tolist(),
            table.false_int[chosen].tolist(),
            strict=True,
        )
    )
    if found != rows:
        raise SystemExit("the sweep and its yardstick disagree")
    ratio = plain / ours
    print(f"sweep {rate:5g} Hz {ours:6.2f} s, {len(thetas)} thresholds; plain {plain:6.1f} s: {ratio:.0f} x")
    theta = float(thetas[len(thetas) // 2])
    events_at = [{s: committed_times(of[s], theta, rate) for s in (1, 2)} for of in values]
    once, _ = timed(lambda: [score_task(g.eot, e) for g, e in zip(golds, events_at, strict=True)])
    print(f"scoring      {once * 1e3:8.2f} ms for one set of events, beyond gold")
    raw = json.dumps(probabilities.to_json()).encode()
    durations = {gold.conversation_id: gold.duration_s for gold in golds}
    fast, _ = timed(lambda: parse_probabilities(raw, durations, "probs"))
    slow, _ = timed(lambda: json.loads(raw), repeat=1)
    print(f"reading      {fast:8.3f} s for {len(raw) / 1e6:.0f} MB, validated; json.loads alone {slow:.3f} s")


if __name__ == "__main__":
    main()
