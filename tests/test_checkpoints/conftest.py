"""What the tests of checkpoints share."""

import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def scope_of_classifiers():
    """Build in mmpretrain's scope, and leave none behind: a runner sets one for the process."""
    with DefaultScope.overwrite_default_scope("mmpretrain"):
        yield
