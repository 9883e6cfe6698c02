"""Files of any scheme to ours and back, to the last bit."""

import pytest
import torch
from mmpretrain.models import ImageClassifier
from safetensors.torch import load_file

from mmsoftmor.checkpoints import load_pretrained, read_checkpoint
from mmsoftmor.checkpoints.convert import convert
from mmsoftmor.checkpoints.facts import META_KEY, facts_of_model
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

timm = pytest.importorskip("timm")
transformers = pytest.importorskip("transformers")

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


@pytest.fixture
def timm_model(randomize):
    return randomize(
        timm.models.VisionTransformer(
            img_size=64,
            embed_dim=32,
            num_heads=2,
            depth=2,
            mlp_ratio=2,
            num_classes=5,
            init_values=1e-5,
        )
    )


def assert_same(state, expected):
    assert set(state) == set(expected)
    for name, value in expected.items():
        assert torch.equal(state[name], value), name
        assert state[name].dtype == value.dtype


def written(path):
    return read_checkpoint(path).state


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
def test_timm_to_ours_and_back_with_the_head(timm_model, tmp_path, ending):
    torch.save(timm_model.state_dict(), tmp_path / "timm.pth")
    ours, back = str(tmp_path / f"ours{ending}"), str(tmp_path / f"back{ending}")
    assert convert(tmp_path / "timm.pth", ours) == []
    assert convert(ours, back, "timm") == []
    assert_same(written(back), timm_model.state_dict())
    timm_model.load_state_dict(written(back), strict=True)
    assert {n.split(".")[0] for n in written(ours)} == {"backbone", "head"}


def test_ours_to_timm_and_back(randomize, tmp_path):
    backbone = dict(type="SRViT", arch=ARCH, img_size=64, recursion_depth=1)
    head = dict(type="VisionTransformerClsHead", num_classes=5, in_channels=32)
    state = randomize(ImageClassifier(backbone=backbone, head=head)).state_dict()
    torch.save({"state_dict": state, "meta": {"epoch": 3}}, tmp_path / "ours.pth")
    convert(tmp_path / "ours.pth", str(tmp_path / "timm.pth"), "timm")
    convert(tmp_path / "timm.pth", str(tmp_path / "back.pth"))
    assert_same(written(tmp_path / "back.pth"), state)
    assert read_checkpoint(tmp_path / "back.pth").meta["epoch"] == 3
    reference = timm.models.VisionTransformer(
        img_size=64, embed_dim=32, num_heads=2, depth=2, mlp_ratio=2, num_classes=5
    )
    reference.load_state_dict(written(tmp_path / "timm.pth"), strict=True)


@pytest.mark.parametrize("registers", [0, 4])
def test_hugging_face_to_timm(randomize, tmp_path, registers):
    kind = "Dinov2WithRegisters" if registers else "Dinov2"
    options = dict(num_register_tokens=registers) if registers else {}
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
        **options,
    )
    source = randomize(getattr(transformers, f"{kind}Model")(config))
    source.save_pretrained(tmp_path)
    left_out = convert(tmp_path / "model.safetensors", str(tmp_path / "timm.pth"), "timm")
    assert left_out == ["embeddings.mask_token"]
    state, theirs = written(tmp_path / "timm.pth"), source.state_dict()
    attention = "encoder.layer.1.attention.attention."
    for i, part in enumerate(("query", "key", "value")):
        rows = state["blocks.1.attn.qkv.weight"][32 * i : 32 * (i + 1)]
        assert torch.equal(rows, theirs[f"{attention}{part}.weight"])
    assert torch.equal(state["blocks.0.ls2.gamma"], theirs["encoder.layer.0.layer_scale2.lambda1"])
    assert ("reg_token" in state) == bool(registers)
    reference = timm.models.VisionTransformer(
        img_size=56,
        patch_size=14,
        embed_dim=32,
        num_heads=2,
        depth=2,
        num_classes=0,
        init_values=1.0,
        reg_tokens=registers,
        no_embed_class=False,
    )
    if registers:  # timm gives registers entries in the table, DINOv2 none
        state.pop("pos_embed")
        assert reference.load_state_dict(state, strict=False).missing_keys == ["pos_embed"]
    else:
        reference.load_state_dict(state, strict=True)


def test_backbone_alone_of_a_recursive_detector_with_its_facts(make_mask_rcnn, randomize, tmp_path):
    source = randomize(make_mask_rcnn(recursion_depth=2))
    meta = {META_KEY: facts_of_model(source.backbone).to_meta()}
    torch.save({"state_dict": source.state_dict(), "meta": meta}, tmp_path / "detector.pth")
    left_out = convert(tmp_path / "detector.pth", str(tmp_path / "out" / "backbone.safetensors"))
    assert {name.split(".")[0] for name in left_out} == {"neck", "rpn_head", "roi_head"}
    assert_same(load_file(tmp_path / "out" / "backbone.safetensors"), source.backbone.state_dict())
    file = read_checkpoint(tmp_path / "out" / "backbone.safetensors")
    assert file.meta[META_KEY]["num_heads"] == 2
    assert file.meta[META_KEY]["recursion_depth"] == 2
    model = SRViT(dict(ARCH, num_layers=4), img_size=64, recursion_depth=2)
    with pytest.raises(InputError, match=r"with_cls_token=False"):
        load_pretrained(model, tmp_path / "out" / "backbone.safetensors")


def test_half_precision_rounds_to_float16_and_head_can_be_left(timm_model, tmp_path):
    torch.save(timm_model.state_dict(), tmp_path / "timm.pth")
    out = str(tmp_path / "half.safetensors")
    left_out = convert(tmp_path / "timm.pth", out, backbone_only=True, half=True)
    assert left_out == ["head.layers.head.weight", "head.layers.head.bias"]
    state = written(out)
    assert "cls_token" in state
    expected = timm_model.state_dict()["blocks.1.mlp.fc2.weight"].half()
    assert torch.equal(state["layers.1.ffn.layers.1.weight"], expected)


def test_what_cannot_be_converted_is_refused_in_one_line(make_srvit, timm_model, tmp_path):
    torch.save(make_srvit(recursion_depth=2).state_dict(), tmp_path / "r2.pth")
    mean = {META_KEY: dict(recursion_depth=2, mixing="mean")}
    plain = make_srvit(recursion_depth=1).state_dict()
    torch.save({"state_dict": plain, "meta": mean}, tmp_path / "mean.pth")
    odd = {**timm_model.state_dict(), "blocks.0.attn.q_norm.weight": torch.ones(16)}
    torch.save(odd, tmp_path / "odd.pth")
    torch.save({"conv.weight": torch.ones(1)}, tmp_path / "resnet.pth")
    cases = [
        ("r2.pth", "out.pth", "timm", r"r2\.pth recurses 2 times"),
        ("mean.pth", "out.pth", "timm", r"mean\.pth recurses 2 times"),
        ("odd.pth", "out.pth", "mmpretrain", r"odd\.pth has parts.*q_norm"),
        ("resnet.pth", "out.pth", "mmpretrain", r"resnet\.pth holds no vision transformer"),
        ("r2.pth", "out.npz", "mmpretrain", r"out\.npz: end the name with"),
        ("r2.pth", "out.pth", "keras", "keras: use mmpretrain or timm"),
    ]
    for name, out, names, message in cases:
        with pytest.raises(InputError, match=message) as error:
            convert(tmp_path / name, str(tmp_path / out), names)
        assert "\n" not in str(error.value)
        assert not (tmp_path / out).exists()


def test_file_is_not_converted_onto_itself(timm_model, tmp_path):
    torch.save(timm_model.state_dict(), tmp_path / "timm.pth")
    before = (tmp_path / "timm.pth").read_bytes()
    with pytest.raises(InputError, match=r"timm\.pth is the file to be converted"):
        convert(tmp_path / "timm.pth", f"{tmp_path}/./timm.pth")
    assert (tmp_path / "timm.pth").read_bytes() == before


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
def test_other_file_of_the_targets_name_is_replaced_whole(timm_model, tmp_path, ending):
    torch.save(timm_model.state_dict(), tmp_path / "timm.pth")
    out = tmp_path / f"out{ending}"
    out.write_bytes(b"what was there before")
    convert(tmp_path / "timm.pth", str(out), "timm")
    assert_same(written(out), timm_model.state_dict())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([out.name, "timm.pth"])


@pytest.mark.parametrize(
    ("out", "named"),
    [
        ("folder.pth", r"folder\.pth is a folder"),
        ("file/out.pth", r"file/out\.pth cannot be written \(File exists\)"),
        ("/proc/out.pth", r"/proc/out\.pth cannot be written"),
    ],
)
def test_target_that_cannot_be_written_is_one_line(timm_model, tmp_path, out, named):
    torch.save(timm_model.state_dict(), tmp_path / "timm.pth")
    (tmp_path / "folder.pth").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=named) as error:
        convert(tmp_path / "timm.pth", str(tmp_path / out))
    assert "\n" not in str(error.value)
