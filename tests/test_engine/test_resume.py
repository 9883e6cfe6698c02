"""Three kinds of file under three options: which serve, and what is said of the others."""

import pytest
import torch
from mmengine.config import Config

from mmsoftmor.engine.launch import train
from mmsoftmor.engine.resume import choose_start, latest_checkpoint
from mmsoftmor.errors import InputError


def test_full_state_resumes_after_its_last_epoch(tiny, checkpoints):
    runner = train(tiny(train_cfg__max_epochs=2), resume=checkpoints["full"])
    assert (runner.epoch, runner.iter) == (2, 8)
    state = runner.optim_wrapper.optimizer.state_dict()["state"]
    assert {int(entry["step"]) for entry in state.values()} == {8}


@pytest.mark.parametrize(
    ("kind", "lacking"), [("model", "optimizer"), ("weights", "meta, state_dict")]
)
def test_resuming_from_less_explains_the_three_options(tiny, checkpoints, kind, lacking):
    with pytest.raises(InputError) as caught:
        train(tiny(), resume=checkpoints[kind])
    message = str(caught.value)
    for word in (checkpoints[kind], f"has no {lacking}", "--resume", "load_from", "init_cfg"):
        assert word in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", ["full", "model", "weights"])
def test_load_from_takes_the_weights_of_each(tiny, checkpoints, kind):
    config = tiny(load_from=checkpoints[kind], train_cfg__max_epochs=1)
    config.optim_wrapper.optimizer.lr = 0.0
    runner = train(config)
    loaded = torch.load(checkpoints["weights"])
    assert all(torch.equal(v, loaded[k]) for k, v in runner.model.state_dict().items())
    assert runner.iter == 4


@pytest.mark.parametrize("kind", ["full", "model", "weights"])
def test_init_cfg_takes_the_backbone_of_each(tiny, checkpoints, kind):
    config = tiny(train_cfg__max_epochs=1)
    config.optim_wrapper.optimizer.lr = 0.0
    config.model.backbone.init_cfg = dict(
        type="Pretrained", checkpoint=checkpoints[kind], prefix="backbone."
    )
    runner = train(config)
    loaded = torch.load(checkpoints["weights"])
    for name, value in runner.model.backbone.state_dict().items():
        assert torch.equal(value, loaded[f"backbone.{name}"])


@pytest.mark.parametrize("how", ["resume", "load_from"])
def test_missing_file_is_named(tiny, how):
    config = tiny(load_from="gone.pth") if how == "load_from" else tiny()
    with pytest.raises(InputError, match=r"checkpoint 'gone\.pth' does not exist"):
        train(config, resume="gone.pth" if how == "resume" else None)


@pytest.mark.parametrize("how", ["resume", "load_from"])
def test_truncated_file_is_named(tiny, checkpoints, tmp_path, how):
    half = tmp_path / "half.pth"
    with open(checkpoints["full"], "rb") as file:
        half.write_bytes(file.read()[:5000])
    config = tiny(load_from=str(half)) if how == "load_from" else tiny()
    with pytest.raises(InputError, match=r"half\.pth is truncated or no checkpoint"):
        train(config, resume=str(half) if how == "resume" else None)


class TestChoice:
    """Resuming goes before loading, and the choice is said."""

    @pytest.fixture
    def config(self, tmp_path):
        (tmp_path / "old.pth").touch()
        return Config(dict(work_dir=str(tmp_path), load_from=str(tmp_path / "old.pth")))

    def test_nothing_asked_keeps_load_from(self, config, tmp_path):
        assert choose_start(config, None) is None
        assert (config.load_from, config.resume) == (str(tmp_path / "old.pth"), False)

    def test_auto_without_a_checkpoint_falls_back_to_load_from(self, config, tmp_path):
        note = choose_start(config, "auto")
        assert (config.load_from, config.resume) == (str(tmp_path / "old.pth"), False)
        assert "no checkpoint" in note and "loading" in note

    def test_auto_with_a_checkpoint_ignores_load_from(self, config, tmp_path):
        (tmp_path / "epoch_3.pth").touch()
        note = choose_start(config, "auto")
        assert (config.load_from, config.resume) == (str(tmp_path / "epoch_3.pth"), True)
        assert "load_from" in note and "ignored" in note

    def test_named_checkpoint_goes_before_load_from(self, config, tmp_path):
        (tmp_path / "mine.pth").touch()
        choose_start(config, str(tmp_path / "mine.pth"))
        assert (config.load_from, config.resume) == (str(tmp_path / "mine.pth"), True)

    def test_resume_of_the_config_means_what_mmengine_means_by_it(self, config, tmp_path):
        config.resume = True
        choose_start(config, None)
        assert (config.load_from, config.resume) == (str(tmp_path / "old.pth"), True)


class TestLatest:
    """The note on the last checkpoint is trusted as far as it goes."""

    def test_note_is_followed(self, tmp_path):
        for name in ("epoch_1.pth", "epoch_2.pth"):
            (tmp_path / name).touch()
        (tmp_path / "last_checkpoint").write_text(str(tmp_path / "epoch_1.pth"))
        assert latest_checkpoint(str(tmp_path)) == str(tmp_path / "epoch_1.pth")

    @pytest.mark.parametrize("note", ["", "/moved/epoch_10.pth"])
    def test_empty_or_stale_note_gives_the_highest_number(self, tmp_path, note):
        for name in ("epoch_9.pth", "epoch_10.pth", "best_acc_epoch_11.pth", "epoch_12.pth.tmp"):
            (tmp_path / name).touch()
        (tmp_path / "last_checkpoint").write_text(note)
        assert latest_checkpoint(str(tmp_path)) == str(tmp_path / "epoch_10.pth")

    def test_no_checkpoint_is_none(self, tmp_path):
        assert latest_checkpoint(str(tmp_path)) is None
        assert latest_checkpoint(str(tmp_path / "not_there")) is None
