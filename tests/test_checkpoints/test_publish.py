"""Published checkpoints: weights and notes alone, under a name that vouches for them."""

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from safetensors.torch import load_file
from torch import nn

from mmsoftmor.checkpoints import read_checkpoint
from mmsoftmor.checkpoints.facts import META_KEY, facts_of_model
from mmsoftmor.checkpoints.inspect import inspect_checkpoint
from mmsoftmor.checkpoints.publish import publish
from mmsoftmor.checkpoints.write import write_state
from mmsoftmor.engine import cli
from mmsoftmor.errors import InputError

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "checkpoints"


class Line(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, inputs, mode="tensor"):
        return {"loss": self.layer(inputs).square().mean()}


@pytest.fixture(params=[True, False], ids=["ema", "no-ema"])
def run(request, tmp_path):
    """A real run with or without a moving average: its checkpoint, model and average."""
    runner = Runner(
        model=Line(),
        work_dir=str(tmp_path / "run"),
        train_dataloader=torch.utils.data.DataLoader(
            [{"inputs": torch.randn(3)} for _ in range(4)]
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=dict(optimizer=dict(type="AdamW", lr=0.1)),
        custom_hooks=[dict(type="EMAHook", momentum=0.1)] if request.param else [],
        default_scope="mmengine",
        experiment_name=f"{tmp_path.name}",
    )
    runner.train()
    average = [hook.ema_model.module for hook in runner.hooks if hasattr(hook, "ema_model")]
    return tmp_path / "run" / "epoch_1.pth", runner.model, average[0] if average else None


def same(path, model):
    state = read_checkpoint(path).state
    return set(state) == set(model.state_dict()) and all(
        torch.equal(state[name], value) for name, value in model.state_dict().items()
    )


def test_weights_are_chosen_stripped_and_named_by_their_hash(run, tmp_path):
    path, model, average = run
    published = publish(path, str(tmp_path / "out" / "line.pth"))
    content = torch.load(published, weights_only=True)
    assert set(content) == {"state_dict", "meta"}
    assert content["meta"] == read_checkpoint(path).meta
    digest = hashlib.sha256(Path(published).read_bytes()).hexdigest()
    assert Path(published).name == f"line-{digest[:8]}.pth"
    assert same(published, average or model)
    assert [p.name for p in (tmp_path / "out").iterdir()] == [Path(published).name]


def test_raw_weights_of_a_run_with_average(run, tmp_path):
    path, model, average = run
    if average is None:
        with pytest.raises(InputError, match=r"epoch_1\.pth has no ema_state_dict"):
            publish(path, str(tmp_path / "raw.pth"), "raw")
        return
    assert not same(path, model)
    assert same(publish(path, str(tmp_path / "raw.pth"), "raw"), model)


def test_publishing_twice_gives_the_same_file(run, tmp_path):
    path = run[0]
    first = publish(path)
    content = Path(first).read_bytes()
    assert publish(path) == first
    assert Path(first).read_bytes() == content
    assert Path(first).parent == path.parent


@pytest.mark.parametrize("source", [".pth", ".safetensors"])
@pytest.mark.parametrize("target", [".pth", ".safetensors"])
def test_form_of_the_file_is_what_the_name_says(make_srvit, tmp_path, source, target):
    model = make_srvit(recursion_depth=2)
    meta = {META_KEY: facts_of_model(model).to_meta()}
    write_state(str(tmp_path / f"in{source}"), model.state_dict(), meta)
    published = publish(tmp_path / f"in{source}", str(tmp_path / f"out{target}"))
    assert published.endswith(target)
    assert same(published, model)
    assert read_checkpoint(published).meta[META_KEY]["recursion_depth"] == 2
    if target == ".safetensors":
        assert set(load_file(published)) == set(model.state_dict())


def test_target_that_cannot_be_written_is_one_line(recursive):
    with pytest.raises(InputError, match=r"/proc/out-\w{8}\.pth cannot be written") as error:
        publish(recursive, "/proc/out.pth")
    assert "\n" not in str(error.value)


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def recursive(make_srvit, tmp_path):
    model = make_srvit(recursion_depth=2)
    state = {f"backbone.{name}": value for name, value in model.state_dict().items()}
    meta = {META_KEY: facts_of_model(model).to_meta(), "epoch": 7}
    head = {f"head.layers.head.{leaf}": torch.ones(5) for leaf in ("weight", "bias")}
    content = {"state_dict": {**state, **head, "neck.x": torch.ones(1)}, "meta": meta}
    torch.save({**content, "optimizer": {"state": {}}}, tmp_path / "epoch_7.pth")
    return tmp_path / "epoch_7.pth"


def test_inspecting_tells_what_is_there_and_what_it_fits(recursive, capsys):
    tool("inspect_file").main([str(recursive), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["key"] == "state_dict"
    assert told["prefix"] == "backbone."
    assert told["tokens"] == {"cls_token": 1}
    assert told["positions"] == 17
    assert told["classes"] == 5
    assert told["rest"] == ["neck.x"]
    assert told["meta"] == ["srvit", "epoch"]
    assert told["facts"]["num_heads"] == 2
    arch = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)
    expected = dict(arch=arch, recursion_depth=2, recursion_unit=1, mixing="soft")
    assert told["backbone"] == expected
    tool("inspect_file").main([str(recursive)])
    assert "dict(type='SRViT', arch={'embed_dims': 32" in capsys.readouterr().out


def test_inspecting_names_the_shipped_size_of_a_public_file(randomize, tmp_path):
    timm = pytest.importorskip("timm")
    source = timm.create_model("vit_small_patch14_reg4_dinov2", img_size=70)
    torch.save({"teacher": source.state_dict()}, tmp_path / "dinov2.pth")
    summary = inspect_checkpoint(tmp_path / "dinov2.pth")
    assert summary.key == "teacher"
    assert summary.tokens == {"cls_token": 1, "register_tokens": 4}
    assert summary.backbone == dict(
        arch="small", recursion_depth=1, patch_size=14, layer_scale_init_value=1e-5
    )


@pytest.mark.parametrize(
    ("name", "size", "part"),
    [
        ("beit_base_patch16_224", 32, "layers.0.attn.q_bias"),
        ("vit_base_patch16_clip_224", 32, "norm_pre.weight"),
    ],
)
def test_inspecting_says_what_srvit_does_not_compute(tmp_path, name, size, part):
    timm = pytest.importorskip("timm")
    source = timm.create_model(name, img_size=size, depth=1)
    torch.save(source.state_dict(), tmp_path / "file.pth")
    summary = inspect_checkpoint(tmp_path / "file.pth")
    assert part in summary.alien
    assert summary.backbone == {}
    group = ".".join(part.split(".")[:2])
    assert f"fits: no SRViT, it has parts that SR-ViT does not compute: {group}" in str(summary)


def test_comparing_with_a_config_reports_or_refuses(tmp_path, make_srvit, capsys):
    nano = dict(embed_dims=128, num_layers=4, num_heads=4, feedforward_channels=512)
    model = make_srvit(arch=nano, img_size=96, recursion_depth=1)
    torch.save(model.state_dict(), tmp_path / "nano.pth")
    main = tool("inspect_file").main
    main([str(tmp_path / "nano.pth"), "--config", "maskrcnn_srvit_nano_sample"])
    printed = capsys.readouterr().out
    assert "100.0% of the trunk's parameters" in printed
    assert "left at their initialisation: neck" in printed
    with pytest.raises(InputError, match=r"embed_dims=128 in the file, 384 in the model"):
        main([str(tmp_path / "nano.pth"), "--config", "maskrcnn_srvit_s_coco"])


def test_config_without_sr_vit_has_nothing_to_compare(recursive, tmp_path):
    backbone = "dict(type='mmpretrain.ResNet', depth=18)"
    model = f"model = dict(type='ImageClassifier', backbone={backbone})"
    (tmp_path / "resnet.py").write_text(f"default_scope = 'mmpretrain'\n{model}\n")
    with pytest.raises(InputError, match=r"resnet\.py: its model has no SRViT"):
        tool("inspect_file").main([str(recursive), "--config", str(tmp_path / "resnet.py")])


def test_tools_publish_and_convert(recursive, tmp_path, capsys):
    tool("publish").main([str(recursive), str(tmp_path / "public.pth")])
    published = capsys.readouterr().out.strip()
    assert Path(published).is_file()
    tool("convert").main([published, str(tmp_path / "b.safetensors"), "--backbone", "--half"])
    assert "left out: " in capsys.readouterr().out
    assert {v.dtype for v in read_checkpoint(tmp_path / "b.safetensors").state.values()} == {
        torch.float16
    }


def test_a_mistake_on_the_command_line_is_one_line_and_status_2(tmp_path, capsys):
    with pytest.raises(SystemExit) as status:
        cli.run(lambda: tool("publish").main([str(tmp_path / "absent.pth")]))
    assert status.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
