"""The learning rate follows the effective batch, once, and the log says so."""

import copy

import pytest
from mmengine.config import Config

from mmsoftmor.engine.launch import train
from mmsoftmor.engine.lr_scaling import plan_batch
from mmsoftmor.errors import InputError


def config(batch=2, accumulation=1, reference=16, enable=False):
    return Config(
        dict(
            train_dataloader=dict(batch_size=batch),
            optim_wrapper=dict(optimizer=dict(lr=0.01), accumulative_counts=accumulation),
            auto_scale_lr=dict(enable=enable, base_batch_size=reference),
        )
    )


@pytest.mark.parametrize(
    ("processes", "batch", "accumulation", "expected"),
    [(1, 2, 1, 0.00125), (1, 2, 4, 0.005), (2, 2, 1, 0.0025), (8, 2, 1, 0.01), (8, 4, 2, 0.04)],
)
def test_rate_grows_with_processes_batch_and_accumulation(processes, batch, accumulation, expected):
    plan = plan_batch(config(batch, accumulation), processes, auto_scale=True)
    assert plan.effective == processes * batch * accumulation
    assert plan.base_lr * plan.ratio == pytest.approx(expected)
    assert f"= {plan.effective} per update (reference: 16)" in str(plan)
    assert f"learning rate {expected:.6g} (scaling on" in str(plan)


def test_rate_stays_without_the_switch():
    plan = plan_batch(config(), 1, auto_scale=False)
    assert plan.ratio == 1.0
    assert "learning rate 0.01 (scaling off" in str(plan)


def test_switch_of_the_config_counts():
    assert plan_batch(config(enable=True), 1, auto_scale=False).scaled


def test_missing_reference_is_an_input_error():
    unstated = config()
    unstated.pop("auto_scale_lr")
    with pytest.raises(InputError, match="auto_scale_lr = dict"):
        plan_batch(unstated, 1, auto_scale=True)
    assert plan_batch(unstated, 1, auto_scale=False).reference is None


class TestInTraining:
    """The tiny job: batch 4, reference 16, two accumulated: half the rate of 0.001."""

    @pytest.fixture
    def job(self, tiny, tmp_path):
        config = tiny(train_cfg__max_epochs=2, log_level="INFO")
        # Loggers go by experiment and second: one of another test would print elsewhere.
        config.experiment_name = tmp_path.name
        config.optim_wrapper.accumulative_counts = 2
        # Two groups of different rates stand for layer decay.
        config.optim_wrapper.paramwise_cfg = dict(custom_keys={"head": dict(lr_mult=0.1)})
        config.param_scheduler = dict(type="ConstantLR", factor=1.0, by_epoch=True)
        return config

    def rates(self, runner):
        return sorted({round(group["lr"], 9) for group in runner.optim_wrapper.param_groups})

    def test_scaled_once_also_after_a_resume(self, job, capsys):
        first = train(copy.deepcopy(job), auto_scale_lr=True)
        assert self.rates(first) == [0.00005, 0.0005]
        assert first.optim_wrapper.base_param_settings["lr"] == pytest.approx(0.0005)
        line = "4 images x 2 accumulated = 8 per update (reference: 16), learning rate 0.0005"
        assert line in capsys.readouterr().out
        job.train_cfg.max_epochs = 3
        again = train(job, auto_scale_lr=True, resume="auto")
        assert again.epoch == 3
        assert self.rates(again) == [0.00005, 0.0005]

    def test_config_written_to_the_work_dir_keeps_the_reference(self, job, tmp_path):
        train(job, auto_scale_lr=True)
        dumped = Config.fromfile(tmp_path / "work" / "tiny.py")
        assert dumped.auto_scale_lr.base_batch_size == 16
        assert dumped.optim_wrapper.optimizer.lr == 0.001

    def test_difference_without_scaling_is_warned_of(self, job, capsys):
        job.train_cfg.max_epochs = 1
        runner = train(job)
        assert self.rates(runner) == [0.0001, 0.001]
        assert (
            "8 images per update, but the learning rate was set for 16" in capsys.readouterr().out
        )
