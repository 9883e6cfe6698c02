"""Learning rate versus batch size: what is in force, said in one line, and scaled on request."""

from __future__ import annotations

from dataclasses import dataclass

from mmengine.config import Config
from mmengine.optim import OptimWrapperDict
from mmengine.runner import Runner

from mmsoftmor.errors import InputError


@dataclass(frozen=True)
class BatchPlan:
    """How many images one update of the weights sees, and what the learning rate was set for.

    ``reference`` is ``auto_scale_lr.base_batch_size`` of the config, None if it states none.
    """

    processes: int
    per_process: int
    accumulation: int
    reference: int | None
    base_lr: float
    scaled: bool

    @property
    def effective(self) -> int:
        return self.processes * self.per_process * self.accumulation

    @property
    def ratio(self) -> float:
        """The linear rule (arXiv 1706.02677): the rate grows with the batch."""
        return self.effective / self.reference if self.scaled else 1.0

    def __str__(self) -> str:
        reference = self.reference or "not stated"
        return (
            f"batch: {self.processes} processes x {self.per_process} images x {self.accumulation} "
            f"accumulated = {self.effective} per update (reference: {reference}), learning rate "
            f"{self.base_lr * self.ratio:.6g} (scaling {'on' if self.scaled else 'off'}, config: "
            f"{self.base_lr:.6g})"
        )


def plan_batch(config: Config, processes: int, auto_scale: bool) -> BatchPlan:
    """Read a config's batch and learning rate.

    Args:
        config: A complete training config with one optimizer.
        processes: World size.
        auto_scale: Whether ``--auto-scale-lr`` was given; ``auto_scale_lr.enable`` does the same.

    Raises:
        InputError: Scaling was asked for but the config states no reference batch.
    """
    loader, wrapper = config.train_dataloader, config.optim_wrapper
    stated = config.get("auto_scale_lr") or {}
    scaled = auto_scale or bool(stated.get("enable"))
    if scaled and not stated.get("base_batch_size"):
        raise InputError(
            f"--auto-scale-lr: {config.filename} does not say for which batch its learning rate "
            "is: add auto_scale_lr = dict(enable=False, base_batch_size=N)"
        )
    return BatchPlan(
        processes=processes,
        per_process=loader.get("batch_size") or loader.batch_sampler.batch_size,
        accumulation=wrapper.get("accumulative_counts", 1),
        reference=stated.get("base_batch_size"),
        base_lr=wrapper.optimizer.lr,
        scaled=scaled,
    )


def apply_plan(plan: BatchPlan, runner: Runner) -> None:
    """Log the plan in one line and hand it to the runner, which scales when it starts to train.

    The runner does not count accumulation: we tell it a reference that is smaller by that factor.
    The config that it has written to the work directory keeps the stated reference.

    Raises:
        InputError: Scaling with a runner that has its own way of building optimizers.
    """
    runner.logger.info(str(plan))
    if not plan.scaled:
        if plan.reference not in (None, plan.effective):
            runner.logger.warning(
                f"{plan.effective} images per update, but the learning rate was set for "
                f"{plan.reference}: consider --auto-scale-lr, or accumulate "
                "(optim_wrapper.accumulative_counts)"
            )
        return
    if not isinstance(runner, Runner):
        raise InputError(
            f"--auto-scale-lr does not work with runner_type = {type(runner).__name__!r}: set "
            f"optim_wrapper.optimizer.lr = {plan.base_lr * plan.ratio:.6g} instead"
        )
    runner.auto_scale_lr = dict(enable=True, base_batch_size=plan.reference / plan.accumulation)
    # The runner scales the optimizer's own groups only: the base rate in the log must follow.
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    if not isinstance(runner.optim_wrapper, OptimWrapperDict):
        base = runner.optim_wrapper.base_param_settings
        if base is not None:
            base["lr"] *= plan.ratio
