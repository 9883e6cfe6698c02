_base_ = "default_runtime.py"
default_scope = "mmpretrain"
default_hooks = dict(visualization=dict(type="VisualizationHook"))
# For TensorBoard, give vis_backends dict(type="TensorboardVisBackend") as well.
visualizer = dict(type="UniversalVisualizer", vis_backends=[dict(type="LocalVisBackend")])
