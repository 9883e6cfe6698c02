# What every task shares: registration, hooks, logging, reproducibility.
custom_imports = dict(
    imports=["mmsoftmor.models", "mmsoftmor.engine", "mmsoftmor.datasets"],
    allow_failed_imports=False,
)
default_hooks = dict(
    timer=dict(type="IterTimerHook"),
    logger=dict(type="LoggerHook", interval=50),
    param_scheduler=dict(type="ParamSchedulerHook"),
    checkpoint=dict(type="AtomicCheckpointHook", interval=1, max_keep_ckpts=3),
    sampler_seed=dict(type="DistSamplerSeedHook"),
)
custom_hooks = [
    dict(type="ReproducibleRNGHook"),
    dict(type="FiniteLossHook"),
    dict(type="BackboneCheckpointHook"),  # fits and reports what load_from loads
    dict(type="FirstRankBuffersHook"),
    dict(type="EmptyCacheHook", before_epoch=True),  # validation's sizes are not the training's
]
env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0),
    dist_cfg=dict(backend="nccl"),
)
randomness = dict(seed=0)
log_processor = dict(type="LogProcessor", window_size=50, by_epoch=True)
log_level = "INFO"
load_from = None
resume = False
