"""Every bad input ends in an error that names the file and the annotation, all of them together."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from floorkit_seld_metrics import data, documents
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.documents import read_document

from floorkit.core.errors import InputError, ManifestError

TRIANGLE = [[10, 20, 0.5], [30, 20, 1.0], [20, 40, 0.7]]
GOOD: dict[str, Any] = {"metadata_frame_index": 0, "category_id": 3, "segmentation": [TRIANGLE], "score": 0.5}


def read(path: Path, *, scored: bool = True) -> Annotations:
    return read_document(path, path.name, scored=scored).annotations


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "rec_inference.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def document(*annotations: Any) -> str:
    return json.dumps({"annotations": [GOOD, *annotations]})


def with_points(text: str) -> str:
    """A document whose second annotation has this segmentation, as text."""
    bad = json.dumps({**GOOD, "segmentation": 0}).replace('"segmentation": 0', f'"segmentation": {text}')
    return f'{{"annotations": [{json.dumps(GOOD)}, {bad}]}}'


def message(path: Path, *, scored: bool = True) -> str:
    with pytest.raises(InputError) as caught:
        read(path, scored=scored)
    return str(caught.value)


SEGMENTATIONS = {
    "x above 360": ("[[[360.5, 20, 1], [3, 4, 1], [5, 6, 1]]]", "x = 360.5 at point 0"),
    "x below 0": ("[[[3, 4, 1], [-0.5, 20, 1], [5, 6, 1]]]", "x = -0.5 at point 1"),
    "y above 180": ("[[[3, 180.25, 1], [3, 4, 1], [5, 6, 1]]]", "y = 180.25 at point 0"),
    "y below 0": ("[[[3, 4, 1], [3, 4, 1], [5, -1, 1]]]", "y = -1 at point 2"),
    "x infinite": ("[[[Infinity, 20, 1], [3, 4, 1]]]", "not finite"),
    "x NaN": ("[[[NaN, 20, 1], [3, 4, 1]]]", "not finite"),
    "intensity NaN": ("[[[3, 20, NaN], [3, 4, 1]]]", "not finite"),
    "intensity infinite": ("[[[3, 20, -Infinity], [3, 4, 1]]]", "not finite"),
    "1e400": ("[[[3, 20, 1e400], [3, 4, 1]]]", "not finite"),
    "an integer beyond float": (f"[[[3, 20, {'9' * 400}], [3, 4, 1]]]", "not finite"),
    "beyond single precision": ("[[[3, 20, 1e39], [3, 4, 1]]]", r"1e\+39 at point 0"),
    "intensity null": ("[[[3, 20, null], [3, 4, 1]]]", "None"),
    "intensity true": ("[[[3, 20, true], [3, 4, 1]]]", "True"),
    "intensity a string": ('[[[3, 20, "0.5"], [3, 4, 1]]]', "'0.5'"),
    "two values": ("[[[3, 20], [3, 4, 1]]]", "point 0 is no triplet"),
    "four values": ("[[[3, 20, 1, 1], [3, 4, 1]]]", "point 0 is no triplet"),
    "ragged but divisible": ("[[[3, 20], [3, 4, 1, 1]]]", "point 0 is no triplet"),
    "flat": ("[[3, 20, 4, 5]]", "point 0 is no triplet"),
    "one level too shallow": ("[[3, 20, 1], [4, 5, 1]]", "point 0 is no triplet"),
    "one level too deep": ("[[[[3, 20, 1], [4, 5, 1], [3, 4, 1]]]]", "is no triplet|something else"),
    "a run-length code": ('{"counts": "abc", "size": [180, 360]}', "no list"),
    "null": ("null", "no list"),
    "a polygon that is null": ("[null]", "polygon 0 is no list"),
    "two numbers without a comma": ("[[[3 20, 1, 1]]]", "no valid JSON"),
    "deeply nested": ("[" * 5000 + "]" * 5000, "nested too deeply|no triplet"),
}


@pytest.mark.parametrize("name", SEGMENTATIONS)
def test_a_faulty_segmentation_is_told_with_file_and_annotation(tmp_path: Path, name: str) -> None:
    text, expected = SEGMENTATIONS[name]
    told = message(written(tmp_path, with_points(text)))
    assert "rec_inference.json, annotation 1" in told
    assert re.search(expected, told), told


KEYS = {
    "no frame": ({"metadata_frame_index": ...}, "missing key 'metadata_frame_index'"),
    "no category": ({"category_id": ...}, "missing key 'category_id'"),
    "no segmentation": ({"segmentation": ...}, "missing key 'segmentation'"),
    "no score": ({"score": ...}, "missing key 'score'"),
    "half a frame": ({"metadata_frame_index": 2.9}, "2.9"),
    "a frame as text": ({"metadata_frame_index": "3"}, "'3'"),
    "a frame below 0": ({"metadata_frame_index": -1}, "at least 0"),
    "no frame at all": ({"metadata_frame_index": None}, "None"),
    "a huge frame": ({"metadata_frame_index": 10**30}, "64 bits"),
    "half a category": ({"category_id": 3.9}, "3.9"),
    "a category as text": ({"category_id": "bell"}, "'bell'"),
    "a true category": ({"category_id": True}, "True"),
    "a score as text": ({"score": "0.5"}, "'0.5'"),
    "a null score": ({"score": None}, "None"),
    "a NaN score": ({"score": float("nan")}, "not finite"),
    "a null distance": ({"distance": None}, "None"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_faulty_key_is_told_with_file_and_annotation(tmp_path: Path, name: str) -> None:
    changes, expected = KEYS[name]
    bad = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    told = message(written(tmp_path, document(bad)))
    assert "rec_inference.json, annotation 1" in told
    assert expected in told


DOCUMENTS = {
    "an empty file": ("", "an empty file"),
    "no JSON": ("hello", "not a valid JSON document"),
    "a list": ("[]", "no JSON object"),
    "no annotations": ('{"images": []}', "missing key 'annotations'"),
    "annotations that are no list": ('{"annotations": 3}', "'annotations' is no list"),
    "annotations that are no objects": ('{"annotations": [3]}', "annotation 0: no JSON object"),
    "annotations twice": ('{"annotations": [], "annotations": []}', "stands twice"),
    "something behind": ('{"annotations": []} {}', "not a valid JSON document"),
    "no UTF-8": (b'{"annotations": [], "\xff": 0}', "no UTF-8"),
    "an open end": (document()[:-30], "ends inside annotation 0"),
    "an open list": (document()[:-2], "not a valid JSON document"),
    "an open string": ('{"annotations": [], "a', "ends inside a string"),
    "deep lists": ('{"annotations": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "deep objects": ('{"a": ' * 100_000, "the text ends inside annotation 0"),
    "a key twice": (
        document()[:-2] + ', {"score": 1, "score": 2}]}',
        "annotation 1: key 'score' stands twice",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_faulty_document_is_told_with_the_file(tmp_path: Path, name: str) -> None:
    text, expected = DOCUMENTS[name]
    told = message(written(tmp_path, text))
    assert "rec_inference.json" in told
    assert expected in told


def test_all_faulty_annotations_are_told_together(tmp_path: Path) -> None:
    bad = [{**GOOD, "score": None}, GOOD, {**GOOD, "category_id": "x"}]
    told = message(written(tmp_path, document(*bad)))
    assert "annotation 1:" in told
    assert "annotation 3:" in told
    many = message(written(tmp_path, document(*[{**GOOD, "score": None}] * 500)))
    assert "101 in all" in many
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, document(*[{**GOOD, "score": None}] * 500)))
    assert "400 further annotations are faulty" in str(caught.value.problems[-1])


def test_a_truncated_file_of_100_megabytes_says_in_which_annotation_it_ends(tmp_path: Path) -> None:
    points = ",".join(f"[{x % 360}.0,{x % 180}.0,0.{x:06d}]" for x in range(3000))
    one = f'{{"metadata_frame_index":1,"category_id":2,"score":0.5,"segmentation":[[{points}]]}}'
    count = 100_000_000 // len(one)
    path = tmp_path / "rec_inference.json"
    with path.open("w", encoding="utf-8") as stream:
        stream.write('{"annotations":[')
        for _ in range(count):
            stream.write(one + ",")
        stream.write(one[: len(one) // 2])
    assert f"ends inside annotation {count}" in message(path)


def test_text_that_never_becomes_an_annotation_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LARGEST_ANNOTATION_BYTES", 1 << 20)
    monkeypatch.setattr(documents, "BLOCK_BYTES", 1 << 16)
    told = message(written(tmp_path, '{"annotations": ' + "[" * 4_000_000))
    assert "text without annotations goes on for more than 1 MiB" in told
    told = message(written(tmp_path, '{"annotations": [{"segmentation": ' + "[" * 4_000_000))
    assert "annotation 0 goes on for more than 1 MiB" in told


def test_a_file_that_is_replaced_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, document())
    other = tmp_path / "other"
    other.write_text(document(GOOD), encoding="utf-8")
    finish = documents._listed_objects

    def replace(*arguments: Any) -> list[int]:
        os.replace(other, path)
        return finish(*arguments)

    monkeypatch.setattr(documents, "_listed_objects", replace)
    assert "replaced or changed while it was read" in message(path)


@pytest.mark.parametrize("cut", [5, -3, -20])
def test_a_truncated_gzip_file_is_an_error(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress(document(*[GOOD] * 50).encode("utf-8"))
    assert "not a whole gzip file" in message(written(tmp_path, whole[:cut]))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in message(tmp_path / "nothing.json")


@pytest.mark.parametrize("block", [7, 64, 1000, 1 << 22])
def test_blocks_gzip_blanks_and_odd_strings_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(documents, "BLOCK_BYTES", block)
    odd = {**GOOD, "note": 'a "quoted" {brace} \\ [and] "segmentation":', "distance": 12.5}
    two = {**GOOD, "segmentation": [TRIANGLE, [], TRIANGLE + TRIANGLE], "metadata_frame_index": 7.0}
    empty = {**GOOD, "segmentation": []}
    content = {"info": {"annotations": {"x": "}"}}, "annotations": [odd, two, empty], "more": [{}]}
    for text in (
        json.dumps(content),
        json.dumps(content, indent=2),
        json.dumps(content, separators=(",", ":")),
    ):
        for stored in (text.encode("utf-8"), gzip.compress(text.encode("utf-8"))):
            found = read(written(tmp_path, stored))
            assert found.frame.tolist() == [0, 7, 0]
            assert [[p.tolist() for p in one] for one in found.polygons] == [
                [TRIANGLE],
                [TRIANGLE, TRIANGLE + TRIANGLE],
                [],
            ]
            assert found.distance.tolist()[0] == 12.5


def test_labels_need_no_score(tmp_path: Path) -> None:
    bare = {key: value for key, value in GOOD.items() if key != "score"}
    assert len(read(written(tmp_path, document(bare)), scored=False)) == 2


def test_an_escaped_key_is_read_all_the_same(tmp_path: Path) -> None:
    text = document().replace('"segmentation"', '"segmentat\\u0069on"')
    assert read(written(tmp_path, text)).polygons[0][0].tolist() == TRIANGLE


# --- layout -------------------------------------------------------------------------------------


def problems_of(folder: Path, dataset: dict[str, Any] | None = None) -> str:
    from floorkit_seld_metrics import plugin
    from floorkit_seld_metrics.params import SeldMetricsParams

    from floorkit.core.values import Context

    context = Context("case", "seld_metrics", SeldMetricsParams(), folder)
    made = plugin.floorkit_dataset(
        context, {"format": "dcase2026_task3", "labels": "labels_dev", **(dataset or {})}
    )
    assert made is not None
    run = plugin.floorkit_predictions(context, made, "run", {"predictions": "predictions"})
    return "\n".join(map(str, (*made.problems, *run.problems)))


def test_a_prediction_without_labels_is_an_error(write_recording: Callable[..., Path]) -> None:
    folder = write_recording([], [])
    (folder / "predictions" / "rec2_inference.json").write_text("{}", encoding="utf-8")
    told = problems_of(folder)
    assert "recording rec2 has no label file" in told
    assert "did you mean rec1?" in told


def test_two_files_for_one_recording_are_an_error(write_recording: Callable[..., Path]) -> None:
    folder = write_recording([], [])
    (folder / "predictions" / "rec1.json").write_text("{}", encoding="utf-8")
    other = folder / "labels_dev" / "dev-test-tau"
    other.mkdir()
    (other / "rec1_std.json.gz").write_bytes(b"")
    told = problems_of(folder)
    assert told.count("two files for recording rec1") == 2
    assert "rec1.json" in told
    assert "dev-test-tau/rec1_std.json.gz" in told


def test_a_missing_split_or_recording_is_an_error(write_recording: Callable[..., Path]) -> None:
    folder = write_recording([], [])
    assert "without dev-test-tau" in problems_of(folder, {"splits": ["dev-test-sony", "dev-test-tau"]})
    assert "recording rec9 has no label file" in problems_of(folder, {"recordings": ["rec1", "rec9"]})
    assert "no folder of labels" in problems_of(folder, {"labels": "nowhere"})


def test_paths_do_not_leave_the_folders_that_the_manifest_names(write_recording: Callable[..., Path]) -> None:
    folder = write_recording([], [])
    outside = folder / "outside.json"
    outside.write_text("{}", encoding="utf-8")
    (folder / "predictions" / "rec1_inference.json").unlink()
    (folder / "predictions" / "rec1_inference.json").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the folder"):
        problems_of(folder)
    with pytest.raises(InputError, match="leads out of the folder"):
        problems_of(folder, {"splits": ["../predictions"]})


def test_official_files_must_exist_and_name_a_revision(write_recording: Callable[..., Path]) -> None:
    folder = write_recording([], [])
    with pytest.raises(ManifestError) as caught:
        problems_of(folder, {"official": {"2026-06-30": "none.py", "2026-01-01": "x.py"}})
    assert "unknown revision" in str(caught.value)
    assert "no such file" in str(caught.value)


def test_the_control_is_the_next_recording_cut_to_length(
    write_recording: Callable[..., Path], annotation: Callable[..., Any], blob: Callable[..., Any]
) -> None:
    from floorkit_seld_metrics import plugin
    from floorkit_seld_metrics.params import SeldMetricsParams

    from floorkit.core.values import Context

    write_recording([annotation(f, 0, [blob(10, 80)]) for f in range(3)], [], name="a")
    folder = write_recording([annotation(f, 1, [blob(90, 80)]) for f in range(5)], [], name="b")
    context = Context("case", "seld_metrics", SeldMetricsParams(), folder, seed=3)
    made = plugin.floorkit_dataset(context, {"format": "dcase2026_task3", "labels": "labels_dev"})
    assert made is not None
    (control,) = data.controls(made)
    unit = made.units[0]
    shifted = control.load(context, unit, control.sources[unit.key], made.load(context, unit)).annotations
    assert shifted.frame.tolist() == [0, 1, 2]
    assert shifted.category.tolist() == [1, 1, 1]
    assert ((shifted.score > 1 - 1e-3) & (shifted.score <= 1)).all()
    assert len(set(shifted.score.tolist())) == 3
    again = control.load(context, unit, control.sources[unit.key], made.load(context, unit)).annotations
    assert again.score.tolist() == shifted.score.tolist()
