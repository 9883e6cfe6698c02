"""tools/checkpoints/inspect_file.py as people call it."""

import json
import subprocess
import sys

import pytest

from mmsoftmor.apis.configs import configs_dir

TOOL = configs_dir().parent / "tools" / "checkpoints" / "inspect_file.py"
SAMPLE = "mmsoftmor://srvit_nano_r1_sample.safetensors"


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ([], "facts", {"embed_dims": 128, "num_layers": 4, "num_heads": 4, "recursion_depth": 1}),
        (["--config", "upernet_srvit_nano_sample"], "backbone", {"trunk_share": 1.0}),
    ],
    ids=["file", "config"],
)
def test_standard_output_is_json_and_nothing_else(options, key, expected):
    command = [sys.executable, str(TOOL), SAMPLE, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)[key]
    assert {name: told[name] for name in expected} == expected
