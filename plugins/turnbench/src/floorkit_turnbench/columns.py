"""Columns that several tables of the report share."""

from __future__ import annotations

from typing import Any

from floorkit.core.sections import ColumnSpec
from floorkit.numerics import rate
from floorkit_turnbench.thresholds import LATENCY_PERCENTS

COUNTS = ("tp", "fn", "fp", "tn")
LATENCIES = tuple(f"latency_p{percent}_ms" for percent in LATENCY_PERCENTS)


def count_columns() -> list[ColumnSpec]:
    return [ColumnSpec(name, name.upper(), "integer") for name in COUNTS]


def rate_columns() -> list[ColumnSpec]:
    return [
        ColumnSpec("recall", "recall", "rate"),
        ColumnSpec("fp_rate", "FP rate", "rate"),
        *(
            ColumnSpec(name, f"latency p{percent} (ms)", "float")
            for name, percent in zip(LATENCIES, LATENCY_PERCENTS, strict=True)
        ),
    ]


SHARES = [
    ColumnSpec("tp", "TP", "integer"),
    ColumnSpec("positives", "positives", "integer"),
    ColumnSpec("recall", "recall", "rate", "tp", "positives"),
    ColumnSpec("fp", "FP", "integer"),
    ColumnSpec("negatives", "negatives", "integer"),
    ColumnSpec("fp_rate", "FP rate", "rate", "fp", "negatives"),
]
"""Both rates with what they are made of."""


def shares(tp: Any, fn: Any, fp: Any, tn: Any) -> list[Any]:
    """Values of SHARES; all None where there is no operating point."""
    if tp is None:
        return [None] * len(SHARES)
    return [tp, tp + fn, rate(tp, tp + fn), fp, fp + tn, rate(fp, fp + tn)]
