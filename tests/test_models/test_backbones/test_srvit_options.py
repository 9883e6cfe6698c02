"""Options: what is refused, in one line that names the option, and what the defaults are."""

import pytest
import torch
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS
from torch import nn

from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)
REFUSED = [
    (dict(arch="huge"), "arch='huge'"),
    (dict(arch={**ARCH, "depth": 3}), "depth"),
    (dict(arch={k: v for k, v in ARCH.items() if k != "num_heads"}), "num_heads"),
    (dict(arch={**ARCH, "num_heads": 3}), "num_heads=3"),
    (dict(out_type="map"), "out_type='map'"),
    (dict(mixing="max"), "mixing='max'"),
    (dict(recursion_depth=0), "recursion_depth=0"),
    (dict(recursion_depth=-2), "recursion_depth=-2"),
    (dict(recursion_depth=2.0), "recursion_depth=2.0"),
    (dict(recursion_unit=3), "recursion_unit=3"),
    (dict(recursion_unit=0), "recursion_unit=0"),
    (dict(active_depth=0), "active_depth=0"),
    (dict(active_depth=5), "active_depth=5"),
    (dict(router=dict(init="zero")), "router.init='zero'"),
    (dict(router=dict(hidden_ratio=0)), "router.hidden_ratio=0"),
    (dict(router=dict(temperature=2)), "temperature"),
    (dict(window_size=4), "window_size=4"),
    (dict(out_type="featmap", with_cls_token=True), "window_size=16"),
    (dict(with_cls_token=False), "with_cls_token"),
    (dict(out_type="featmap", global_attn_indexes=(4,)), "global_attn_indexes"),
    (dict(out_type="featmap", global_attn_indexes=(-1,)), "global_attn_indexes"),
    (dict(out_indices=4), "out_indices=4"),
    (dict(out_indices=-5), "out_indices=-5"),
    (dict(out_indices=()), "out_indices"),
    (dict(out_indices=(2, 1)), "out_indices"),
    (dict(out_indices=(1, 1)), "out_indices"),
    (dict(out_indices=0, recursion_unit=2), "out_indices=0"),
    (dict(frozen_stages=5), "frozen_stages=5"),
    (dict(frozen_stages=-2), "frozen_stages=-2"),
]


@pytest.mark.parametrize(("options", "named"), REFUSED, ids=str)
def test_bad_option_is_refused_in_one_line_that_names_it(options, named):
    with pytest.raises(InputError) as error:
        SRViT(**{"arch": ARCH, "img_size": 64, **options})
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_registry_passes_the_line_on():
    with DefaultScope.overwrite_default_scope("mmpretrain"), pytest.raises(InputError) as error:
        MODELS.build(dict(type="SRViT", arch="huge"))
    assert "arch='huge'" in str(error.value)
    assert "\n" not in str(error.value)


def test_depth_out_of_reach_is_refused_later_too(make_srvit):
    model = make_srvit(recursion_depth=2)
    with pytest.raises(InputError, match="active_depth=3"):
        model.active_depth = 3
    assert model.active_depth == 2


def test_negative_and_single_indices_count_from_the_end(make_srvit):
    assert make_srvit(out_indices=-1).out_indices == (3,)
    assert make_srvit(out_indices=(-3, -1)).out_indices == (1, 3)
    assert make_srvit(out_indices=[-1], recursion_unit=2).out_indices == (3,)


@pytest.mark.parametrize(
    "norm_cfg", [None, {}, dict(type="LN"), dict(type="LN", eps=1e-6)], ids=str
)
def test_norms_have_eps_1e_6_unless_another_is_named(make_srvit, norm_cfg):
    model = make_srvit(norm_cfg=norm_cfg, out_type="avg_featmap")
    norms = [m for m in model.modules() if isinstance(m, nn.LayerNorm)]
    assert len(norms) == 2 * 4 + 2
    assert {norm.eps for norm in norms} == {1e-6}
    other = make_srvit(norm_cfg=dict(type="LN", eps=1e-5))
    assert {m.eps for m in other.modules() if isinstance(m, nn.LayerNorm)} == {1e-5}


def test_options_reach_their_parts(make_srvit):
    model = make_srvit(
        recursion_depth=2,
        router=dict(hidden_ratio=0.5, init="first"),
        qkv_bias=False,
        layer_scale_init_value=0.1,
        drop_rate=0.2,
        final_norm=False,
    )
    assert model.routers[0].fc1.out_features == 16
    assert model.routers[0].init == "first"
    assert model.layers[0].attn.qkv.bias is None
    assert "layers.0.attn.gamma1.weight" in model.state_dict()
    assert model.drop_after_pos.p == 0.2
    assert not hasattr(model, "ln1")
    assert model(torch.zeros(1, 3, 64, 64))[0].shape == (1, 32)


def test_plain_model_ignores_the_router_options_that_a_child_config_inherits(make_srvit):
    model = make_srvit(recursion_depth=1, router=dict(init="first"))
    assert not hasattr(model, "routers")
