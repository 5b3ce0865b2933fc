"""Every rule catches a plugin that breaks it, and a sound plugin breaks none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from floorkit.core.errors import ManifestError
from floorkit.testing import conformance
from floorkit.testing.checklist import RULES, check_switches
from floorkit.testing.kit import report

SCORE = '    columns = {\n        "label": [int(value) for value in gold],'
SCORES = '"score": [float(value) for value in prediction],'
MEASURE = "    figures = []\n    for point in points:"
COUNT = "count=alarms,"

BROKEN: dict[str, tuple[list[tuple[str, str]], str]] = {
    "hook-signatures": (
        [
            (
                "def floorkit_controls(context: Any, dataset: Dataset)",
                "def floorkit_controls(context: Any, data: Any)",
            )
        ],
        "unknown hook argument",
    ),
    "protocol-declared": (
        [('doc="Unit on which scoring raises."', 'doc=""')],
        "parameter fail_on has no doc",
    ),
    "params-round-trip": (
        [
            ("from attrs import frozen", "import attrs\nfrom attrs import frozen"),
            (
                "    sleep: float",
                "    window: float = attrs.field(default=8.0, converter=lambda x: x / 2)\n    sleep: float",
            ),
        ],
        "parameter window is 4.0, and 2.0 after a round trip",
    ),
    "light-import": ([("import hashlib", "import hashlib\nimport numpy")], "imports numpy"),
    "score-pure": ([(SCORE, f"    gold.reverse()\n{SCORE}")], "changes its argument gold"),
    "score-deterministic": (
        [(SCORES, '"score": [time.perf_counter() for value in prediction],')],
        "differs when scored again",
    ),
    "score-unit-order": (
        [
            ("def read(", "LAST = ['']\n\n\ndef read("),
            (
                SCORES,
                '"score": [float(len(prediction)) if LAST[0] < unit.name else 0.0 for value in prediction],',
            ),
            ('return {"events"', 'LAST[0] = unit.name\n    return {"events"'),
        ],
        "differs when scored in reverse order",
    ),
    "score-other-process": (
        [(SCORES, '"score": [float(hash(unit.name)) for value in prediction],')],
        "another process computes other tables",
    ),
    "tables-survive-store": (
        [('return {"events"', 'return {"more/events": Table({"label": columns["label"]}), "events"')],
        "table 'more/events' comes back changed",
    ),
    "tables-alike": ([('{"kind": ("all",)}', '{"kind": (unit.name,)}')], "table 'events'"),
    "measure-repeatable": ([(MEASURE, f"    label[:1] = 1 - label[:1]\n{MEASURE}")], "measured twice"),
    "measure-unit-order": (
        [(COUNT, 'count=alarms + (pool.units[0].name == "u0"),')],
        "units in reverse order: count",
    ),
    "measure-weights": (
        [('pool.count("events", label == 0)', "int((label == 0).sum())")],
        "against repeated units: denominator",
    ),
    "no-units": ([("alarms / negatives if negatives and", "alarms / negatives if")], "ZeroDivisionError"),
    "single-unit": (
        [(MEASURE, f'    assert len(pool.units) != 1, "too few units"\n{MEASURE}')],
        "too few units",
    ),
    "figures-have-counts": ([("denominator=negatives,", "")], "has no denominator"),
    "counts-add-up": ([(COUNT, "count=alarms + 1,")], "but"),
    "json-without-nan": (
        [('SummarySection({"runs": runs})', 'SummarySection({"runs": runs, "mean": float("nan")})')],
        "summary.json, mean is nan",
    ),
    "tables-complete": ([("figure.count, figure.denominator\n", "figure.count\n")], "4 values for 5 columns"),
    "results-reproducible": (
        [('SummarySection({"runs": runs})', 'SummarySection({"runs": runs, "at": time.time()})')],
        "summary.json differs between two processes",
    ),
    "inputs-declared": (
        [
            (
                'return read(context, unit.gold.files["gold"], 1)',
                'step = -1 if (context.root / "undeclared.txt").is_file() else 1\n'
                '    return read(context, unit.gold.files["gold"], 1)[::step]',
            )
        ],
        "with the declared files alone",
    ),
    "corrupted-inputs": (
        [("except (OSError, ValueError) as error:", "except OSError as error:")],
        "crashes instead of telling the fault",
    ),
    "no-writes": (
        [(SCORE, f'    (context.root / "log.txt").write_text(unit.name)\n{SCORE}')],
        "for writing",
    ),
    "no-prints": ([(MEASURE, f'    print("measuring")\n{MEASURE}')], "'measuring\\n'"),
    "no-global-state": (
        [
            ("def read(", "SEEN: list[str] = []\n\n\ndef read("),
            (SCORE, f"    SEEN.append(unit.name)\n{SCORE}"),
        ],
        "no_global_state_plugin.SEEN",
    ),
    "no-network": (
        [
            ("import hashlib", "import contextlib\nimport hashlib\nimport socket"),
            (
                SCORE,
                "    with contextlib.suppress(OSError):\n"
                f'        socket.create_connection(("127.0.0.1", 9), timeout=0.1)\n{SCORE}',
            ),
        ],
        "socket.",
    ),
    "no-processes": (
        [
            ("import hashlib", "import hashlib\nimport subprocess\nimport sys"),
            (MEASURE, f'    subprocess.run([sys.executable, "-c", ""], check=True)\n{MEASURE}'),
        ],
        "subprocess.Popen",
    ),
}


READS = 'return read(context, unit.gold.files["gold"], 1)'
MORE_BROKEN: list[tuple[str, list[tuple[str, str]], str]] = [
    (
        "hook-signatures",
        [("@hookimpl\ndef floorkit_report", "def floorkit_report")],
        "hook without @hookimpl",
    ),
    ("hook-signatures", [("def floorkit_report", "def floorkit_reports")], "did you mean 'floorkit_report'?"),
    ("protocol-declared", [('caveats=("It measures nothing real.",),', "")], "Protocol.caveats is empty"),
    (
        "protocol-declared",
        [('measures="whether labels are detected"', 'measures=" "')],
        "Protocol.measures is",
    ),
    ("params-round-trip", [("import frozen\n", "import define as frozen\n")], "Params can be changed"),
    ("counts-add-up", [("count=alarms,", "count=negatives + 1,")], "is not between 0 and its denominator"),
    ("counts-add-up", [("denominator=negatives,", "denominator=negatives + 1,")], "over units"),
    ("measure-repeatable", [("headline=True", "headline=False")], "no figure is a headline figure"),
    (
        "tables-complete",
        [('denominator="denominator"', 'denominator="out_of"')],
        "'out_of', which is no column",
    ),
    (
        "json-without-nan",
        [("yield run.name, figure.name, figure.value,", 'yield run.name, "", float("inf"),')],
        "inf",
    ),
    (
        "no-prints",
        [(MEASURE, f"    import warnings\n    warnings.warn('slow')\n{MEASURE}")],
        "UserWarning: slow",
    ),
    (
        "no-prints",
        [(MEASURE, f'    import os\n    os.write(1, b"low")\n{MEASURE}')],
        "below Python's own: 'low",
    ),
    ("no-global-state", [(MEASURE, f'    import os\n    os.environ["A"] = "{{}}"\n{MEASURE}')], "os.environ"),
    (
        "corrupted-inputs",
        [(READS, f"try:\n        {READS}\n    except InputError:\n        return [0] * 7")],
        "u0.json), replaced by garbage: goes unnoticed",
    ),
    (
        "corrupted-inputs",
        [('Problem("cannot be read", shown(path, context.root), str(error))', 'Problem("cannot be read")')],
        "the problem does not name the file: cannot be read",
    ),
]


@pytest.mark.parametrize("index", range(len(MORE_BROKEN)))
def test_other_breaches_of_a_rule_are_caught(index: int, install: Callable[..., Path]) -> None:
    rule, changes, expected = MORE_BROKEN[index]
    name = f"more_{index}"
    assert expected in report(install(name, *changes), name, rule)


def test_every_rule_has_a_broken_plugin_and_a_text() -> None:
    assert BROKEN.keys() == RULES.keys()
    assert all(rule.sentence.endswith(".") and rule.why.endswith(".") for rule in RULES.values())


@pytest.mark.parametrize("rule", BROKEN)
def test_a_plugin_that_breaks_a_rule_is_caught(rule: str, install: Callable[..., Path]) -> None:
    changes, expected = BROKEN[rule]
    name = "broken_" + rule.replace("-", "_")
    told = report(install(name, *changes), name, rule)
    assert told.startswith(f"{rule}: {RULES[rule].sentence}\n- ")
    assert expected in told


def test_a_sound_plugin_breaks_no_rule(install: Callable[..., Path]) -> None:
    manifest = install("sound")
    assert "".join(report(manifest, "sound", rule) for rule in RULES) == ""


def test_a_misspelt_rule_cannot_be_switched_off() -> None:
    with pytest.raises(ManifestError, match="no-printing") as caught:
        check_switches({"no-printing": "it has a progress bar"})
    assert "did you mean 'no-prints'?" in str(caught.value)


def test_a_rule_is_not_switched_off_without_a_reason() -> None:
    with pytest.raises(ManifestError, match="without a reason"):
        check_switches({"no-prints": " "})


def test_a_rule_that_is_switched_off_is_skipped_and_says_why(install: Callable[..., Path]) -> None:
    function = conformance(install("sound"), off={"no-network": "reads from the hub"})
    marks = {mark.args[0]: mark.args[1] for mark in function.pytestmark}  # type: ignore[attr-defined]
    assert marks["entry"] == ("sound",)
    skipped = [one for one in marks["rule"] if not isinstance(one, str)]
    assert [one.values for one in skipped] == [("no-network",)]
    assert skipped[0].marks[0].kwargs["reason"] == "no-network is off: reads from the hub"
