"""Initialisation: the file's values stay, everything else follows its own rule, once."""

import logging

import pytest
import torch
from mmengine.logging import MMLogger

from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)
CONSTANT = 0.125


@pytest.fixture
def constant_file(tmp_path):
    """A plain dense backbone's file in which every value is the same."""
    model = SRViT(ARCH, img_size=64, recursion_depth=1, out_type="featmap", final_norm=False)
    state = {name: torch.full_like(value, CONSTANT) for name, value in model.state_dict().items()}
    torch.save(state, tmp_path / "constant.pth")
    return tmp_path / "constant.pth"


def snapshot(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("as_list", [False, True])
def test_loaded_tensors_stay_in_a_whole_detector_and_the_rest_has_its_own(
    make_mask_rcnn, constant_file, as_list
):
    init_cfg = dict(type="Pretrained", checkpoint=str(constant_file))
    model = make_mask_rcnn(
        recursion_depth=4,
        router=dict(init="first"),
        init_cfg=[init_cfg] if as_list else init_cfg,
    )
    torch.manual_seed(0)
    model.init_weights()
    for name, value in model.named_parameters():
        if name.startswith("backbone.") and ".routers." not in name:
            assert (value == CONSTANT).all(), name
        else:
            assert not (value == CONSTANT).all(), name
        if value.ndim > 1 and ".routers." not in name:
            assert value.abs().max() > 0, name
    for router in model.backbone.routers:
        assert router.fc1.weight.std() > 0
        assert (router.fc2.weight == 0).all()
        weights = router(torch.randn(3, 32))
        torch.testing.assert_close(weights[:, 0], torch.full((3,), 0.99), rtol=0, atol=1e-6)


def test_second_call_changes_nothing(make_mask_rcnn, constant_file):
    model = make_mask_rcnn(
        recursion_depth=4, init_cfg=dict(type="Pretrained", checkpoint=str(constant_file))
    )
    model.init_weights()
    before = snapshot(model)
    model.init_weights()
    model.backbone.init_weights()
    assert same(before, snapshot(model))


def test_second_call_keeps_what_training_changed(make_srvit):
    model = make_srvit()
    model.init_weights()
    with torch.no_grad():
        model.layers[0].attn.qkv.weight.fill_(7)
    before = snapshot(model)
    model.init_weights()
    assert same(before, snapshot(model))


def test_own_initialisation_is_as_documented():
    torch.manual_seed(0)
    model = SRViT(dict(ARCH, embed_dims=128, feedforward_channels=512), recursion_depth=4)
    model.init_weights()
    for name, value in model.named_parameters():
        if name.endswith("bias") and "patch_embed" not in name:
            assert (value == 0).all(), name
        elif ".ln" in name or name.startswith("ln"):
            assert (value == 1).all(), name
        elif "fc2" in name and name.startswith("routers"):
            assert (value == 0).all(), name
        elif "patch_embed" not in name:
            assert 0.015 < value.std() < 0.025, name
            assert value.abs().max() <= 2, name


@pytest.fixture
def warnings_logged():
    lines = []

    class Collector(logging.Handler):
        def emit(self, record):
            if record.levelno >= logging.WARNING:
                lines.append(record.getMessage())

    handler, logger = Collector(), MMLogger.get_current_instance()
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


@pytest.mark.parametrize("entry", [dict(checkpoint=None), {}], ids=str)
def test_starting_from_nothing_is_said_loudly(entry, warnings_logged):
    SRViT(ARCH, img_size=64, init_cfg=dict(type="Pretrained", **entry)).init_weights()
    assert len([line for line in warnings_logged if "STARTS FROM NOTHING" in line]) == 1


def test_missing_file_names_the_option_that_mends_it(tmp_path):
    init_cfg = dict(type="Pretrained", checkpoint=str(tmp_path / "deit.pth"))
    with pytest.raises(InputError, match=r"model\.backbone\.init_cfg\.checkpoint=FILE") as error:
        SRViT(ARCH, img_size=64, init_cfg=init_cfg).init_weights()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("init_cfg", "named"),
    [
        (dict(type="Xavier", layer="Linear"), "Pretrained"),
        (dict(type="Pretrained", checkpoint=None, strict=True), "strict"),
    ],
    ids=str,
)
def test_other_init_cfg_is_refused(init_cfg, named):
    with pytest.raises(InputError, match=named):
        SRViT(ARCH, img_size=64, init_cfg=init_cfg).init_weights()
