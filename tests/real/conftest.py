"""The real sample data and the shipped configs on it; without the data these tests are skipped."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope

from mmsoftmor.engine.config import load_config

VARIABLE = "MMSOFTMOR_SAMPLE_DATA"
DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data"


def sample_folder(name):
    """A folder of the real sample data; skips the test where the data is absent."""
    named = os.environ.get(VARIABLE)
    folder = Path(named or DEFAULT) / name
    if folder.is_dir():
        return folder
    if named:
        pytest.fail(f"{VARIABLE}={named}: has no folder {name}")
    pytest.skip(f"no real sample data in {folder}: set {VARIABLE} to the folder of {name}/")


@pytest.fixture(scope="session")
def coco_root():
    """Folder of a small part of COCO 2017 in COCO's own layout."""
    return sample_folder("coco")


@pytest.fixture(scope="session")
def ade_root():
    """Folder of two validation images of ADE20K in ADEChallengeData2016's layout."""
    return sample_folder("ade")


@pytest.fixture(scope="session")
def coco_config(coco_root):
    """Return a function that loads a shipped config on the real data, by dotted options."""

    def load(name="maskrcnn_srvit_s_coco", options=None):
        return load_config(name, {"data_root": str(coco_root), **(options or {})})

    return load


@pytest.fixture(scope="session")
def build():
    """Return a function that builds from one of mmdet's registries."""

    def from_registry(registry, config):
        with DefaultScope.overwrite_default_scope("mmdet"):
            return registry.build(config)

    return from_registry


@pytest.fixture(autouse=True)
def seeded():
    """The same augmentations in every run of a test."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
