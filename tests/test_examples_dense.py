"""The bundled dense data is what its script makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples" / "dense"


def test_the_script_makes_the_bundled_data_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLES / "make.py"), str(tmp_path)], check=True)
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    bundled = {
        path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*") if path.suffix in {".npy", ".json", ".csv"}
    }
    assert made == bundled
    for name in made:
        if name.suffix == ".npy":
            one, two = np.load(tmp_path / name), np.load(EXAMPLES / name)
            # exp may differ in its last bit between machines, and a rounded value by one step.
            assert np.allclose(one.astype(float), two.astype(float), atol=2e-3, equal_nan=True), name
        else:
            assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes(), name
