"""Gradients, activation checkpointing and freezing."""

import pytest
import torch
from mmdet.testing import demo_mm_inputs

GLOBAL = dict(out_type="cls_token")
# 64 px at stride 16 are 4 x 4 tokens: windows of 3 pad, those of layers 1 and 3 are global.
WINDOWS = dict(out_type="featmap", window_size=3, global_attn_indexes=(1, 3))


def images(size=64, batch=2):
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(7))


def without_gradient(model):
    """Names of trainable parameters that the last backward pass did not reach."""
    return [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]


def gradients(model, autocast=False, seed=0):
    torch.manual_seed(seed)
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = sum(out.float().square().mean() for out in model(images()))
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("autocast", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("mode", [GLOBAL, WINDOWS], ids=["global", "windows"])
@pytest.mark.parametrize(
    "options",
    [{}, dict(mixing="mean"), dict(mixing="last"), dict(recursion_unit=2), dict(recursion_unit=4)],
    ids=str,
)
def test_checkpointing_changes_no_gradient(make_srvit, mode, options, autocast):
    options = dict(recursion_depth=3, drop_path_rate=0.4, drop_rate=0.1, **options, **mode)
    without = gradients(make_srvit(**options).train(), autocast)
    model = make_srvit(with_cp=True, **options).train()
    with_cp = gradients(model, autocast)
    assert set(with_cp) == set(without) == {n for n, _ in model.named_parameters()}
    for name, gradient in without.items():
        torch.testing.assert_close(with_cp[name], gradient, rtol=1e-6, atol=1e-9, msg=name)


def test_each_recursion_step_is_recomputed_once(make_srvit):
    model, calls = make_srvit(recursion_depth=4, with_cp=True, **WINDOWS).train(), []
    model.layers[2].register_forward_pre_hook(lambda *_: calls.append(1))
    out = model(images())[0]
    assert len(calls) == 4
    out.sum().backward()
    assert len(calls) == 8


def test_checkpointing_rests_in_evaluation(make_srvit):
    model, calls = make_srvit(recursion_depth=4, with_cp=True, **WINDOWS), []
    model.layers[2].register_forward_pre_hook(lambda *_: calls.append(1))
    model(images())[0].sum().backward()
    assert len(calls) == 4


def saved_bytes(model):
    """Bytes that autograd keeps for the backward pass, each storage once, weights left out."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outs = model(images(256, batch=1))
    assert outs
    return sum(kept.values())


@pytest.mark.parametrize("mode", [GLOBAL, WINDOWS], ids=["global", "windows"])
def test_checkpointing_keeps_the_growth_with_depth_small(make_srvit, mode):
    def growth(with_cp):
        models = [make_srvit(recursion_depth=r, with_cp=with_cp, **mode).train() for r in (1, 4)]
        return saved_bytes(models[1]) - saved_bytes(models[0])

    assert 0 < growth(with_cp=True) < 0.35 * growth(with_cp=False)


@pytest.mark.parametrize("out_indices", [-1, 0, 2, (0, 1, 2, 3), (1, 2)], ids=str)
@pytest.mark.parametrize("mode", ["cls_token", "raw", "avg_featmap", "featmap"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_every_trainable_parameter_gets_a_gradient(make_srvit, depth, mode, out_indices):
    model = make_srvit(recursion_depth=depth, out_type=mode, out_indices=out_indices).train()
    gradients(model)
    assert without_gradient(model) == []


@pytest.mark.parametrize("unit", [2, 4])
def test_units_that_no_output_needs_are_frozen_with_their_router(make_srvit, unit):
    model = make_srvit(recursion_depth=3, recursion_unit=unit, out_indices=unit - 1).train()
    gradients(model)
    assert without_gradient(model) == []
    frozen = {n.rpartition(".")[0] for n, p in model.named_parameters() if not p.requires_grad}
    assert ("routers.1.fc1" in frozen) == (unit == 2)
    assert ("ln1" in frozen) == (unit == 2)


@pytest.mark.parametrize("out_indices", [-1, (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_no_parameter_of_mask_rcnn_is_left_out_of_its_losses(make_mask_rcnn, depth, out_indices):
    """What distributed training needs to run without a search for unused parameters."""
    model = make_mask_rcnn(recursion_depth=depth, out_indices=out_indices).train()
    model.init_weights()
    data = demo_mm_inputs(2, [(3, 96, 128), (3, 128, 80)], [3, 2], num_classes=3, with_mask=True)
    losses = model(**model.data_preprocessor(data, training=True), mode="loss")
    total, _ = model.parse_losses(losses)
    total.backward()
    assert total.isfinite()
    assert without_gradient(model) == []


STEM = {"pos_embed", "cls_token", "patch_embed"}


def part_of(name):
    """``layers.2``, ``routers.0``, ``ln1``, ``patch_embed`` ..."""
    head, _, rest = name.partition(".")
    return f"{head}.{rest.split('.')[0]}" if head in ("layers", "routers") else head


FROZEN = {
    -1: set(),
    0: STEM,
    2: STEM | {"layers.0", "layers.1", "routers.0", "routers.1"},
    4: STEM | {f"layers.{i}" for i in range(4)} | {f"routers.{i}" for i in range(4)} | {"ln1"},
}


@pytest.mark.parametrize("stages", FROZEN)
def test_frozen_stages_freeze_exactly_their_part(make_srvit, stages):
    model = make_srvit(recursion_depth=2, frozen_stages=stages)
    parts = {part_of(n) for n, p in model.named_parameters() if not p.requires_grad}
    free = {part_of(n) for n, p in model.named_parameters() if p.requires_grad}
    assert parts == FROZEN[stages]
    assert not parts & free


@pytest.mark.parametrize("stages", FROZEN)
def test_frozen_part_stays_in_evaluation_through_train_and_eval(make_srvit, stages):
    model = make_srvit(recursion_depth=2, frozen_stages=stages, drop_rate=0.1)
    frozen = FROZEN[stages] - {"pos_embed", "cls_token"}
    frozen |= {"drop_after_pos"} if frozen else set()
    assert model.train() is model
    for name, module in model.named_modules():
        if name and not name.endswith(("layers", "routers")) and list(module.children()) == []:
            assert module.training == (part_of(name) not in frozen), name
    assert model.eval() is model
    assert not any(module.training for module in model.modules())


def test_frozen_layers_do_not_move_and_the_others_do(make_srvit):
    model = make_srvit(recursion_depth=2, frozen_stages=2, drop_rate=0.2).train()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=0.1)
    gradients(model)
    optimizer.step()
    moved = {part_of(n) for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert moved == {"layers.2", "layers.3", "routers.2", "routers.3", "ln1"}


def test_frozen_part_of_a_unit_keeps_the_units_router_trainable(make_srvit):
    model = make_srvit(recursion_depth=2, recursion_unit=2, frozen_stages=3)
    trainable = {part_of(n) for n, p in model.named_parameters() if p.requires_grad}
    assert trainable == {"layers.3", "routers.1", "ln1"}


def test_training_at_active_depth_one_leaves_no_parameter_without_gradient(make_srvit):
    model = make_srvit(out_type="featmap", recursion_depth=4, active_depth=1).train()
    images = torch.randn(1, 3, 64, 64)
    sum(out.sum() for out in model(images)).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    with torch.no_grad():
        trained, evaluated = model(images)[0], model.eval()(images)[0]
    torch.testing.assert_close(trained, evaluated, rtol=0, atol=1e-6)
