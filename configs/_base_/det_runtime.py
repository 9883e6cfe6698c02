_base_ = "default_runtime.py"
default_scope = "mmdet"
default_hooks = dict(visualization=dict(type="DetVisualizationHook"))
custom_hooks = [
    dict(type="ReproducibleRNGHook"),
    dict(type="FiniteLossHook"),
    dict(type="BackboneCheckpointHook"),
    dict(type="Float32BoxHook"),  # only mixed precision needs it
]
# For TensorBoard, give vis_backends dict(type="TensorboardVisBackend") as well.
visualizer = dict(
    type="DetLocalVisualizer", vis_backends=[dict(type="LocalVisBackend")], name="visualizer"
)
