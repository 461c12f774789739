"""The words and units of the page, without a browser: `node --test`."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def test_figures_mean_to_people_what_they_should():
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    done = subprocess.run(["node", "--test", str(HERE / "model.test.mjs")], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"pass (\d+)", done.stdout).group(1)) >= 12, done.stdout
