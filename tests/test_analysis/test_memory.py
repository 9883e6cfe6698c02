"""The memory meter against sums that are known, and what it says of recursion."""

import torch

from mmsoftmor.analysis.memory import peak_memory
from mmsoftmor.models import SimpleFeaturePyramid

MIB = 2**20


def mebibytes(count):
    return torch.zeros(count * MIB // 4)


def test_peak_is_what_is_alive_together():
    def run():
        a = mebibytes(3)
        b = mebibytes(5)
        del a
        c = mebibytes(1)
        return b, c

    assert peak_memory(run) == 8 * MIB


def test_what_was_there_before_does_not_count():
    before = mebibytes(16)
    assert peak_memory(lambda: before[:10] + mebibytes(2)[:10]) < 2 * MIB + 4096


def test_scratch_inside_an_operator_counts():
    matrix = torch.randn(512, 512).half()  # one MiB in fp32
    assert peak_memory(lambda: matrix.float() @ matrix.float().t()) >= 3 * MIB


def test_nothing_allocated_is_nothing():
    assert peak_memory(lambda: None) == 0


def peaks(make_srvit, neck=None, **options):
    """Peak bytes of inference by recursion depth."""
    found = {}
    for depth in (1, 2, 4):
        model = make_srvit(
            recursion_depth=depth, out_type="featmap", window_size=16, global_attn_indexes=(1, 3)
        )
        x = torch.randn(1, 3, 512, 512)
        with torch.no_grad():
            found[depth] = peak_memory(lambda: neck(model(x)) if neck else model(x))  # noqa: B023
    return found


def test_inference_memory_of_the_backbone_does_not_grow_with_further_steps(make_srvit):
    found = peaks(make_srvit)
    assert found[4] <= 1.02 * found[2], found


def test_inference_memory_of_backbone_and_pyramid_is_that_of_the_plain_vit(make_srvit):
    found = peaks(make_srvit, SimpleFeaturePyramid(32, out_channels=32))
    assert found[4] <= 1.02 * found[1], found


def test_training_memory_grows_with_depth_far_less_under_checkpointing(make_srvit):
    def forward(depth, with_cp):
        model = make_srvit(
            recursion_depth=depth, out_type="featmap", window_size=16, with_cp=with_cp
        ).train()
        x = torch.randn(1, 3, 256, 256)
        return peak_memory(lambda: model(x))

    growth = {cp: forward(4, cp) - forward(1, cp) for cp in (True, False)}
    assert 0 < growth[True] < 0.4 * growth[False], growth
