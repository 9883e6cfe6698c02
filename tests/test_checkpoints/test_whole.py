"""Whole models: any file as ``load_from``, of another task or of a plain vision transformer."""

import pytest
import torch
from mmpretrain.models import ImageClassifier
from safetensors.torch import save_file

from mmsoftmor.checkpoints import read_checkpoint
from mmsoftmor.checkpoints.whole import find_backbone, fit_model, require_complete
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

timm = pytest.importorskip("timm")

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


def classifier(classes=5, **backbone):
    options = dict(type="SRViT", arch=ARCH, img_size=64, recursion_depth=1, **backbone)
    head = dict(type="VisionTransformerClsHead", num_classes=classes, in_channels=32)
    return ImageClassifier(backbone=options, head=head).eval()


def load(model, path, **options):
    state, report = fit_model(read_checkpoint(path), model, **options)
    model.load_state_dict(state, strict=False)
    return report


def same(model, state, names):
    return all(torch.equal(model.state_dict()[name], state[name]) for name in names)


@torch.no_grad()
def test_timm_classifier_becomes_ours_with_its_head(randomize, tmp_path):
    source = timm.models.VisionTransformer(
        img_size=64, embed_dim=32, num_heads=2, depth=4, mlp_ratio=2, num_classes=5
    )
    torch.save({"model": randomize(source.eval()).state_dict()}, tmp_path / "deit.pth")
    model = classifier()
    report = load(model, tmp_path / "deit.pth")
    assert report.complete
    require_complete(report)
    x = torch.rand(2, 3, 64, 64)
    scores = model.head(model.extract_feat(x))
    torch.testing.assert_close(scores, source(x), rtol=1e-5, atol=1e-5)


def test_head_of_other_classes_keeps_its_initialisation_and_is_named(randomize, tmp_path):
    source = randomize(classifier(classes=7))
    torch.save({"state_dict": source.state_dict()}, tmp_path / "seven.pth")
    model = classifier()
    before = {n: v.clone() for n, v in model.state_dict().items()}
    report = load(model, tmp_path / "seven.pth")
    heads = ["head.layers.head.weight", "head.layers.head.bias"]
    assert sorted(report.other_shape) == sorted(heads)
    assert report.other_shape[heads[0]] == "(7, 32) in the file, (5, 32) in the model"
    assert same(model, before, heads)
    with pytest.raises(InputError, match=r"seven\.pth lacks 2 tensors.*head\.layers\.head"):
        require_complete(report)


def test_detector_into_itself_is_complete_and_exact(make_mask_rcnn, randomize, tmp_path):
    source = randomize(make_mask_rcnn(recursion_depth=2))
    torch.save({"state_dict": source.state_dict(), "meta": {}}, tmp_path / "detector.pth")
    model = make_mask_rcnn(recursion_depth=2)
    report = load(model, tmp_path / "detector.pth")
    assert report.complete
    assert report.unused == report.backbone.unused == []
    assert same(model, source.state_dict(), source.state_dict())


def test_distributed_detector_of_other_depth_into_a_classifier(make_mask_rcnn, randomize, tmp_path):
    source = randomize(make_mask_rcnn(recursion_depth=2))
    state = {f"module.{name}": value for name, value in source.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "detector.pth")
    model = classifier(out_type="avg_featmap", with_cls_token=False, final_norm=False)
    report = load(model, tmp_path / "detector.pth")
    assert report.backbone.prefix == "module.backbone."
    assert report.backbone.trunk_share == 1
    assert any("recursion_depth=2 in the file, 1" in note for note in report.backbone.notes)
    assert {name.split(".")[0] for name in report.unused} == {"neck", "rpn_head", "roi_head"}
    assert sorted(report.missing) == ["head.layers.head.bias", "head.layers.head.weight"]
    assert not report.complete


def test_classifier_into_a_detector_leaves_neck_and_heads(make_mask_rcnn, randomize, tmp_path):
    source = randomize(classifier())
    save_file(source.state_dict(), tmp_path / "classifier.safetensors")
    model = make_mask_rcnn(recursion_depth=4)
    before = {n: v.clone() for n, v in model.state_dict().items()}
    report = load(model, tmp_path / "classifier.safetensors")
    name, backbone = find_backbone(model)
    assert name == "backbone."
    assert isinstance(backbone, SRViT)
    assert len(report.backbone.new) == 16
    assert same(model, before, report.missing)
    assert {n.split(".")[0] for n in report.missing} == {"neck", "rpn_head", "roi_head"}
    assert torch.equal(
        backbone.layers[3].attn.qkv.weight, source.backbone.layers[3].attn.qkv.weight
    )
    assert "left at their initialisation" in str(report)


def test_a_file_that_lacks_a_layer_is_refused_unless_allowed(randomize, tmp_path):
    state = randomize(classifier()).state_dict()
    state = {n: v for n, v in state.items() if ".layers.3." not in n}
    torch.save(state, tmp_path / "short.pth")
    with pytest.raises(InputError, match=r"num_layers=3 in the file, 4 in the model"):
        load(classifier(), tmp_path / "short.pth")
    assert load(classifier(), tmp_path / "short.pth", allow_partial=True).backbone.missing


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (torch.full((5, 32), float("nan")), "infinite or not a number"),
        (torch.zeros(5, 32, dtype=torch.int8), "no plain tensor of floating-point numbers"),
    ],
    ids=["nan", "int8"],
)
def test_head_that_is_no_weights_is_refused(randomize, tmp_path, value, named):
    state = {**randomize(classifier()).state_dict(), "head.layers.head.weight": value}
    torch.save(state, tmp_path / "classifier.pth")
    with pytest.raises(InputError, match=rf"head\.layers\.head\.weight .*{named}"):
        load(classifier(), tmp_path / "classifier.pth")


def test_whole_numbers_of_a_model_stay_whole_numbers(make_upernet, tmp_path):
    source, model = make_upernet(recursion_depth=2), make_upernet(recursion_depth=2)
    counters = [name for name in source.state_dict() if name.endswith("num_batches_tracked")]
    for name in counters:
        source.get_buffer(name).fill_(7)
    torch.save({"state_dict": source.state_dict()}, tmp_path / "segmentor.pth")
    assert load(model, tmp_path / "segmentor.pth").complete
    assert counters
    assert all(model.get_buffer(name) == 7 for name in counters)
