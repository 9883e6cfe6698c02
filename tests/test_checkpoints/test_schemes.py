"""Independent vision transformers, saved as their families save them, compute the same in SR-ViT.

The sources carry random weights of the real widths; features are compared at the training size and
at 320x480, where each source's own resizing of its table is used if it is ours (bicubic, no
antialias) and replaced by it if it is not (timm).
"""

import math

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.models import ImageClassifier

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.models import SRViT

timm = pytest.importorskip("timm")
transformers = pytest.importorskip("transformers")

SIZES = ((224, 224), (320, 480))
TOLERANCE = dict(rtol=1e-5, atol=1e-5)
SHAPES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}
# The base size at its full depth takes a quarter of a minute.
BASES = [2, pytest.param(12, marks=pytest.mark.slow)]


def arch_of(width, layers=12):
    dims, heads = SHAPES[width]
    return dict(embed_dims=dims, num_layers=layers, num_heads=heads, feedforward_channels=4 * dims)


def srvit(width, layers=12, **options):
    options = {"arch": arch_of(width, layers), "recursion_depth": 1, "out_type": "raw", **options}
    return SRViT(**options).eval()


def timm_vit(width, layers=12, **options):
    dims, heads = SHAPES[width]
    source = timm.models.VisionTransformer(embed_dim=dims, num_heads=heads, depth=layers, **options)
    source.patch_embed.strict_img_size = False
    return source.eval()


def images(size):
    return torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0))


def resized(table, extra, target):
    """The table of a square grid on another grid, written without the project's code."""
    side, grid = math.isqrt(table.shape[1] - extra), table[:, extra:]
    maps = grid.transpose(1, 2).reshape(1, -1, side, side)
    maps = F.interpolate(maps, size=target, mode="bicubic", align_corners=False)
    return torch.cat([table[:, :extra], maps.flatten(2).transpose(1, 2)], dim=1)


@torch.no_grad()
def assert_same_features(model, source, sizes=SIZES):
    for size in sizes:
        x = images(size)
        ours, theirs = model(x)[0], source(x)
        print(
            f"{size}: largest difference {(ours - theirs).abs().max():.1e}"
        )  # shown by pytest -rP
        torch.testing.assert_close(ours, theirs, **TOLERANCE)


def timm_features(source, patch=16):
    """timm's own forward with the table replaced, for its resizing has an antialias."""
    stored = source.pos_embed.detach().clone()

    def forward(x):
        grid = tuple(-(-n // patch) for n in x.shape[2:])
        source.pos_embed.data = resized(
            stored, stored.shape[1] - math.isqrt(stored.shape[1]) ** 2, grid
        )
        source.patch_embed.grid_size = grid
        return source.forward_features(x)

    return forward


def deit(tmp_path, randomize, width, layers):
    source = randomize(timm_vit(width, layers, num_classes=7), std=0.02)
    torch.save({"model": source.state_dict()}, tmp_path / "deit.pth")
    model = srvit(width, layers)
    report = load_pretrained(model, tmp_path / "deit.pth")
    assert report.scheme == "timm"
    assert report.trunk_share == 1
    assert report.unused == ["head.layers.head.weight", "head.layers.head.bias"]
    assert_same_features(model, timm_features(source))


@pytest.mark.parametrize("width", ["tiny", "small"])
def test_timm_and_official_deit(randomize, tmp_path, width):
    deit(tmp_path, randomize, width, 12)


@pytest.mark.parametrize("layers", BASES)
def test_timm_and_official_deit_base(randomize, tmp_path, layers):
    deit(tmp_path, randomize, "base", layers)


def test_timm_dinov2_with_layer_scale_and_patches_of_14(randomize, tmp_path):
    source = timm.create_model("vit_small_patch14_dinov2", img_size=224)
    source.patch_embed.strict_img_size = False
    randomize(source.eval(), std=0.02)
    torch.save(source.state_dict(), tmp_path / "dinov2.pth")
    model = srvit("small", patch_size=14, layer_scale_init_value=1e-5)
    report = load_pretrained(model, tmp_path / "dinov2.pth")
    assert report.unused == []
    assert_same_features(model, timm_features(source, 14), [(224, 224), (322, 476)])


def test_mmpretrain_classifier_and_its_own_resizing(randomize, tmp_path):
    backbone = dict(type="VisionTransformer", arch="deit-small", img_size=224, out_type="raw")
    head = dict(type="VisionTransformerClsHead", num_classes=7, in_channels=384)
    source = randomize(ImageClassifier(backbone=backbone, head=head).eval(), std=0.02)
    torch.save({"state_dict": source.state_dict(), "meta": {}}, tmp_path / "deit.pth")
    model = srvit("small")
    assert load_pretrained(model, tmp_path / "deit.pth").prefix == "backbone."
    assert_same_features(model, lambda x: source.backbone(x)[0])


@pytest.mark.parametrize("layers", BASES)
def test_mae_encoder_leaves_its_decoder_behind(randomize, tmp_path, layers):
    """MAE's encoder has timm's names; its file has a decoder and a mask token beside it."""
    source = randomize(timm_vit("base", layers, num_classes=0), std=0.02)
    decoder = {
        "mask_token": torch.ones(1, 1, 8),
        "decoder_pos_embed": torch.ones(1, 197, 8),
        "decoder_embed.weight": torch.ones(8, 768),
        "decoder_blocks.0.norm1.weight": torch.ones(8),
    }
    torch.save({"model": {**source.state_dict(), **decoder}}, tmp_path / "mae.pth")
    model = srvit("base", layers)
    report = load_pretrained(model, tmp_path / "mae.pth")
    assert sorted(report.unused) == sorted(decoder)
    assert_same_features(model, timm_features(source))


@pytest.mark.parametrize("qkv_bias", [True, False])
def test_hugging_face_vit_and_its_own_resizing(randomize, tmp_path, qkv_bias):
    layers = 12 if qkv_bias else 2
    config = transformers.ViTConfig(
        hidden_size=384,
        num_attention_heads=6,
        intermediate_size=1536,
        qkv_bias=qkv_bias,
        num_hidden_layers=layers,
        layer_norm_eps=1e-6,
    )
    source = randomize(transformers.ViTForImageClassification(config).eval(), std=0.02)
    source.save_pretrained(tmp_path)
    model = srvit("small", layers)
    report = load_pretrained(model, tmp_path / "model.safetensors")
    assert report.scheme == "Hugging Face"
    assert report.prefix == "vit."
    reasons = {
        "query, key and value joined",
        *([] if qkv_bias else ["no bias in the file, zeros"]),
    }
    assert set(report.converted.values()) == reasons
    assert report.trunk_share == 1
    assert_same_features(
        model, lambda x: source.vit(x, interpolate_pos_encoding=True).last_hidden_state
    )


def test_hugging_face_dinov2_and_its_own_resizing(randomize, tmp_path):
    config = transformers.Dinov2Config(
        hidden_size=384, num_attention_heads=6, num_hidden_layers=12, image_size=224
    )
    source = randomize(transformers.Dinov2Model(config).eval(), std=0.02)
    torch.save(source.state_dict(), tmp_path / "pytorch_model.bin")
    model = srvit("small", patch_size=14, layer_scale_init_value=1e-5)
    report = load_pretrained(model, tmp_path / "pytorch_model.bin")
    assert report.unused == ["embeddings.mask_token"]
    assert_same_features(model, lambda x: source(x).last_hidden_state, [(224, 224), (322, 476)])


def test_torchs_fused_attention_of_mmsegmentation(randomize, tmp_path):
    from mmseg.models import VisionTransformer

    source = VisionTransformer(
        img_size=64,
        embed_dims=32,
        num_layers=2,
        num_heads=2,
        mlp_ratio=2,
        final_norm=True,
        norm_cfg=dict(type="LN", eps=1e-6),
        out_indices=-1,
        with_cls_token=False,
    )
    randomize(source).eval()
    torch.save({"state_dict": source.state_dict()}, tmp_path / "vit.pth")
    arch = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
    model = srvit("tiny", arch=arch, img_size=64, out_type="featmap", window_size=0)
    report = load_pretrained(model, tmp_path / "vit.pth")
    assert report.converted.pop("patch_embed.projection.bias") == "no bias in the file, zeros"
    assert list(report.converted) in ([], ["pos_embed"])  # a class token's entry less
    assert_same_features(model, lambda x: source(x)[0], [(64, 64)])


TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
HF_TINY = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    image_size=64,
    layer_norm_eps=1e-6,
)


@torch.no_grad()
def test_timm_distilled_deit_computes_what_it_does_without_its_second_token(randomize, tmp_path):
    from timm.models.deit import VisionTransformerDistilled

    options = dict(img_size=64, embed_dim=32, num_heads=2, depth=2, mlp_ratio=2, num_classes=5)
    distilled = randomize(VisionTransformerDistilled(**options))
    torch.save({"model": distilled.state_dict()}, tmp_path / "deit_distilled.pth")
    model = srvit("tiny", arch=TINY, img_size=64)
    report = load_pretrained(model, tmp_path / "deit_distilled.pth")
    heads = [f"{head}.{leaf}" for head in ("head", "head_dist") for leaf in ("weight", "bias")]
    assert {name.replace("head.layers.", "") for name in report.unused} == {"dist_token", *heads}
    plain = timm.models.VisionTransformer(**options).eval()
    state = distilled.state_dict()
    state["pos_embed"] = state["pos_embed"][:, [0, *range(2, 18)]]
    plain.load_state_dict(state, strict=False)
    x = images((64, 64))
    torch.testing.assert_close(model(x)[0], plain.forward_features(x), **TOLERANCE)


@torch.no_grad()
@pytest.mark.parametrize("head", [True, False])
def test_hugging_face_distilled_deit(randomize, tmp_path, head):
    kind = "DeiTForImageClassificationWithTeacher" if head else "DeiTModel"
    source = randomize(getattr(transformers, kind)(transformers.DeiTConfig(**HF_TINY)))
    source.save_pretrained(tmp_path)
    model = srvit("tiny", arch=TINY, img_size=64)
    report = load_pretrained(model, tmp_path / "model.safetensors")
    assert report.prefix == ("deit." if head else "")
    assert report.trunk_share == 1
    assert "dist_token" in report.unused
    table = source.state_dict()[f"{report.prefix}embeddings.position_embeddings"]
    assert torch.equal(model.pos_embed, table[:, [0, *range(2, 18)]])


@torch.no_grad()
def test_hugging_face_mae_without_masking(randomize, tmp_path):
    config = transformers.ViTMAEConfig(
        **HF_TINY,
        mask_ratio=0.0,
        decoder_hidden_size=32,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
    )
    source = randomize(transformers.ViTMAEForPreTraining(config)).eval()
    source.save_pretrained(tmp_path)
    model = srvit("tiny", arch=TINY, img_size=64)
    report = load_pretrained(model, tmp_path / "model.safetensors")
    assert report.trunk_share == 1
    assert {name.split(".")[0] for name in report.unused} == {"decoder"}
    x = images((64, 64))
    # Without noise the patches stay in order: it is what they are sorted by.
    theirs = source.vit(x, noise=torch.arange(16.0)[None]).last_hidden_state
    torch.testing.assert_close(model(x)[0], theirs, **TOLERANCE)
