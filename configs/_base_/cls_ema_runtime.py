# The runtime of ImageNet pretraining: the average of the weights is kept, as DeiT does. Validation
# reports both: accuracy/top1 is the average's, accuracy/top1_origin the weights' own, which is what
# DeiT's figures are. A checkpoint's state_dict is the average, its ema_state_dict the weights.
_base_ = "cls_runtime.py"
custom_hooks = [
    dict(type="ReproducibleRNGHook"),
    dict(type="FiniteLossHook"),
    dict(type="BackboneCheckpointHook"),
    dict(type="EmptyCacheHook", before_epoch=True),
    dict(type="EMAHook", momentum=4e-5, evaluate_on_ema=True, evaluate_on_origin=True),
]
