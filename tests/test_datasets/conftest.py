"""Sample datasets shared by the tests of this folder, each made once."""

import pytest

from mmsoftmor.datasets.sample import make_classification, make_detection, make_segmentation


@pytest.fixture(scope="session")
def detection_root(tmp_path_factory):
    """The detection form with its default number of validation images."""
    root = tmp_path_factory.mktemp("sample") / "det"
    make_detection(root, num_train=20, progress=False)
    return root


@pytest.fixture(scope="session")
def segmentation_root(tmp_path_factory):
    root = tmp_path_factory.mktemp("sample") / "seg"
    make_segmentation(root, num_train=12, num_val=30, progress=False)
    return root


@pytest.fixture(scope="session")
def classification_root(tmp_path_factory):
    root = tmp_path_factory.mktemp("sample") / "cls"
    make_classification(root, num_train=100, num_val=50, progress=False)
    return root
