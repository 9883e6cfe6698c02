"""Reading checkpoint files: every form that users have, and nothing that runs code."""

import hashlib
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from safetensors.torch import save_file
from torch import nn

from mmsoftmor.checkpoints import read_checkpoint
from mmsoftmor.checkpoints.reader import _safe_globals
from mmsoftmor.errors import InputError

STATE = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.tensor([1.5, -2.0])}


def assert_same(state, expected):
    assert set(state) == set(expected)
    for name, value in expected.items():
        assert torch.equal(state[name], value), name
        assert state[name].dtype == value.dtype


@pytest.mark.parametrize("key", [None, "state_dict", "model"])
def test_torch_file_is_read_plain_or_wrapped(tmp_path, key):
    torch.save(STATE if key is None else {key: STATE, "epoch": 3}, tmp_path / "file.pth")
    file = read_checkpoint(tmp_path / "file.pth")
    assert_same(file.state, STATE)
    assert file.meta == {}
    assert file.path == str(tmp_path / "file.pth")


def test_meta_of_a_torch_file_is_kept(tmp_path):
    meta = {"epoch": 3, "dataset_meta": {"classes": ("cat", "dog")}}
    torch.save({"state_dict": STATE, "meta": meta}, tmp_path / "file.pth")
    assert read_checkpoint(str(tmp_path / "file.pth")).meta == meta


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_safetensors_are_read_with_their_type_and_notes(tmp_path, dtype):
    state = {name: value.to(dtype) for name, value in STATE.items()}
    save_file(state, tmp_path / "file.safetensors", metadata={"seed": "0"})
    file = read_checkpoint(tmp_path / "file.safetensors")
    assert_same(file.state, state)
    assert file.meta == {"seed": "0"}


class Toy(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, inputs, mode="tensor"):
        return {"loss": self.layer(inputs).square().mean()}


def test_training_checkpoint_of_mmengine_is_read(tmp_path):
    """With optimiser, schedule, message hub and numpy scalars, as a real run leaves it."""
    model = Toy()
    runner = Runner(
        model=model,
        work_dir=str(tmp_path),
        train_dataloader=torch.utils.data.DataLoader(
            [{"inputs": torch.randn(3)} for _ in range(4)]
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=OptimWrapper(torch.optim.AdamW(model.parameters(), lr=0.1)),
        param_scheduler=[dict(type="ConstantLR", by_epoch=True)],
        default_hooks=dict(checkpoint=dict(type="CheckpointHook", interval=1)),
        default_scope="mmengine",
        experiment_name=f"reader-{os.getpid()}",
    )
    runner.message_hub.update_info("best", np.float64(0.5))
    runner.train()
    content = torch.load(tmp_path / "epoch_1.pth", weights_only=False)
    assert {"optimizer", "param_schedulers", "message_hub"} <= set(content)
    assert isinstance(content["message_hub"]["runtime_info"]["best"], np.float64)
    file = read_checkpoint(tmp_path / "epoch_1.pth")
    assert_same(file.state, model.state_dict())
    assert file.meta["epoch"] == 1


@pytest.mark.parametrize("folder", ["core", "_core"])
@pytest.mark.parametrize("name", ["_reconstruct", "scalar"])
def test_numpy_objects_are_known_under_the_names_of_either_numpy(folder, name):
    names = {f"{item.__module__}.{item.__name__}" for item in _safe_globals()}
    assert f"numpy.{folder}.multiarray.{name}" in names


VALUES = [np.float64(1.5), np.int64(3), np.bool_(True), np.arange(3.0), np.array(["cat", "dog"])]
VALUES += [np.zeros((150, 3), kind) for kind in (np.uint8, np.int16, np.float16, np.float32)]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value.dtype}{value.shape}")
def test_numpy_values_beside_the_tensors_are_no_obstacle(tmp_path, value):
    torch.save({"state_dict": STATE, "extra": {"value": value}}, tmp_path / "file.pth")
    assert_same(read_checkpoint(tmp_path / "file.pth").state, STATE)


def test_config_beside_the_tensors_is_no_obstacle(tmp_path):
    meta = {"dataset_meta": {"label_map": ConfigDict({"0": 1})}}
    torch.save({"state_dict": STATE, "meta": meta}, tmp_path / "file.pth")
    file = read_checkpoint(tmp_path / "file.pth")
    assert_same(file.state, STATE)
    assert file.meta == meta


def test_array_of_objects_is_refused(tmp_path):
    content = {"state_dict": STATE, "extra": np.array([{"a": 1}], dtype=object)}
    torch.save(content, tmp_path / "file.pth")
    with pytest.raises(InputError, match=r"would run code \(numpy\.dtypes\.ObjectDType\)"):
        read_checkpoint(tmp_path / "file.pth")


class Malicious:
    """Creates a file when unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize("plain_pickle", [False, True])
def test_file_that_would_run_code_is_refused_in_one_line_without_running_it(tmp_path, plain_pickle):
    path, target = tmp_path / "file.pth", tmp_path / "was_run"
    content = {"state_dict": STATE, "meta": Malicious(str(target))}
    if plain_pickle:
        path.write_bytes(pickle.dumps({"meta": Malicious(str(target))}, protocol=2))
    else:
        torch.save(content, path)
    with pytest.raises(InputError, match="would run code") as error:
        read_checkpoint(path)
    assert not target.exists()
    assert str(path) in str(error.value)
    assert "mkdir" in str(error.value)
    assert "\n" not in str(error.value)


class Getter:
    """Reaches for an attribute when unpickled, as the first half of an attack would."""

    def __init__(self, owner, name):
        self.what = owner, name

    def __reduce__(self):
        return getattr, self.what


@pytest.mark.parametrize("what", [(HistoryBuffer, "__init__"), (OrderedDict, "fromkeys")], ids=str)
def test_no_attribute_but_the_statistics_of_a_log_buffer_can_be_reached(tmp_path, what):
    torch.save({"state_dict": STATE, "meta": Getter(*what)}, tmp_path / "file.pth")
    with pytest.raises(InputError, match="would run code"):
        read_checkpoint(tmp_path / "file.pth")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("kind", ["pth", "safetensors"])
def test_truncated_file_is_one_line_that_names_it(tmp_path, kind, share):
    path = tmp_path / f"file.{kind}"
    save_file(STATE, path) if kind == "safetensors" else torch.save(STATE, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=r"truncated or no|no safetensors") as error:
        read_checkpoint(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"<!DOCTYPE html>", b"version https://git-lfs", bytes(range(256)), b"\x80\x02}q"]
)
@pytest.mark.parametrize("kind", ["pth", "safetensors"])
def test_file_of_another_kind_is_one_line_that_names_it(tmp_path, kind, content):
    path = tmp_path / f"file.{kind}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"truncated or no|no safetensors") as error:
        read_checkpoint(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["file.pth", "file.safetensors"])
def test_missing_file_is_one_line_that_names_it_and_the_option(tmp_path, name):
    with pytest.raises(InputError, match=r"init_cfg\.checkpoint") as error:
        read_checkpoint(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [{"epoch": 3}, {"state_dict": {}}, [1, 2], torch.zeros(2)])
def test_file_without_tensors_by_name_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "file.pth")
    with pytest.raises(InputError, match="no tensors"):
        read_checkpoint(tmp_path / "file.pth")


def test_download_that_fails_names_the_address_and_the_option(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    address = "http://127.0.0.1:9/deit.pth"  # nothing listens on this port
    with pytest.raises(InputError, match=r"cannot be downloaded.*init_cfg\.checkpoint") as error:
        read_checkpoint(address)
    assert address in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.pth"))


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder whose files are at ``file://`` addresses, behind a downloader that counts."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    calls, fetch = [], torch.hub.download_url_to_file

    def counted(address, *args):
        calls.append(address)
        return fetch(address.replace("https://example.org", tmp_path.as_uri()), *args)

    monkeypatch.setattr(torch.hub, "download_url_to_file", counted)
    return tmp_path, calls


def test_address_is_downloaded_once(served):
    folder, calls = served
    torch.save(STATE, folder / "deit.pth")
    for _ in range(2):
        assert_same(read_checkpoint("https://example.org/deit.pth").state, STATE)
    assert calls == ["https://example.org/deit.pth"]


def test_files_of_one_name_at_two_addresses_are_kept_apart(served):
    folder, _ = served
    for value, name in enumerate(("vit", "dino")):
        (folder / name).mkdir()
        save_file({"a": torch.full((2,), float(value))}, folder / name / "model.safetensors")
    for value, name in enumerate(("vit", "dino")):
        file = read_checkpoint(f"https://example.org/{name}/model.safetensors")
        assert (file.state["a"] == value).all()


def test_hash_in_the_name_is_verified(served):
    folder, _ = served
    torch.save(STATE, folder / "deit.pth")
    digest = hashlib.sha256((folder / "deit.pth").read_bytes()).hexdigest()[:8]
    (folder / "deit.pth").rename(folder / f"deit-{digest}.pth")
    assert_same(read_checkpoint(f"https://example.org/deit-{digest}.pth").state, STATE)
    assert (folder / "hub" / "checkpoints" / f"deit-{digest}.pth").is_file()
    torch.save(STATE, folder / "deit-0123abcd.pth")
    with pytest.raises(InputError, match=r"deit-0123abcd\.pth cannot be downloaded \(invalid hash"):
        read_checkpoint("https://example.org/deit-0123abcd.pth")
    assert not (folder / "hub" / "checkpoints" / "deit-0123abcd.pth").exists()


@pytest.mark.parametrize("empty", [{}, {"name": "vit"}], ids=str)
def test_wrapper_without_tensors_is_passed_over(tmp_path, empty):
    torch.save({"state_dict": empty, "model": STATE}, tmp_path / "file.pth")
    file = read_checkpoint(tmp_path / "file.pth")
    assert_same(file.state, STATE)
    assert file.key == "model"


def test_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    torch.save(STATE, tmp_path / "file.pth")
    assert_same(read_checkpoint("~/file.pth").state, STATE)


def test_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "private.pth"
    path.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)  # the superuser may read all
    with pytest.raises(InputError, match=r"private\.pth may not be read by you"):
        read_checkpoint(path)


def test_folder_of_a_hub_names_the_file_in_it(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=r"is a folder: name the file in it, model\.safetensors"):
        read_checkpoint(tmp_path)
