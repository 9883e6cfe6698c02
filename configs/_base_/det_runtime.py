_base_ = "default_runtime.py"
default_scope = "mmdet"
default_hooks = dict(visualization=dict(type="DetVisualizationHook"))
# For TensorBoard, give vis_backends dict(type="TensorboardVisBackend") as well.
visualizer = dict(type="DetLocalVisualizer", vis_backends=[dict(type="LocalVisBackend")])
