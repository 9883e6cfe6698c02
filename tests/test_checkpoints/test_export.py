"""The exported backbone: bit-exact, small with half precision, refused where there is none."""

import pytest
import torch

from mmsoftmor.checkpoints import export_backbone, read_checkpoint
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


@pytest.fixture
def trained(tmp_path):
    """A classifier's checkpoint file and its backbone's tensors."""
    state = SRViT(ARCH, img_size=32).state_dict()
    whole = {f"backbone.{name}": value for name, value in state.items()}
    path = tmp_path / "epoch_1.pth"
    torch.save({"state_dict": whole | {"head.fc.weight": torch.ones(3)}, "meta": {}}, path)
    return path, state


def test_export_keeps_the_backbone_alone_bit_for_bit(trained, tmp_path):
    path, state = trained
    out = str(tmp_path / "out" / "backbone.safetensors")
    export_backbone(path, out)
    written = read_checkpoint(out).state
    assert written.keys() == state.keys()
    assert all(torch.equal(written[name], state[name]) for name in state)


def test_half_precision_rounds_to_float16_and_halves_the_file(trained, tmp_path):
    path, state = trained
    full = export_backbone(path, str(tmp_path / "full.safetensors"))
    half = export_backbone(path, str(tmp_path / "half.safetensors"), half=True)
    written = read_checkpoint(str(tmp_path / "half.safetensors")).state
    assert all(torch.equal(written[name], state[name].half()) for name in state)
    assert half < 0.6 * full


def test_file_without_a_vision_transformer_is_refused_by_name(tmp_path):
    torch.save({"conv.weight": torch.ones(1)}, tmp_path / "resnet.pth")
    with pytest.raises(InputError, match=r"resnet\.pth has no patch_embed"):
        export_backbone(tmp_path / "resnet.pth", str(tmp_path / "out.safetensors"))
    with pytest.raises(InputError, match=r"out\.pth: end the name with"):
        export_backbone(tmp_path / "resnet.pth", str(tmp_path / "out.pth"))
