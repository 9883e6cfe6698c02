_base_ = "default_runtime.py"
default_scope = "mmseg"
custom_imports = dict(
    imports=[
        "mmsoftmor.models",
        "mmsoftmor.models.segmentors",
        "mmsoftmor.engine",
        "mmsoftmor.datasets",
        "mmsoftmor.datasets.segmentation",
    ]
)
default_hooks = dict(
    logger=dict(log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=16000, save_best="mIoU"),
    visualization=dict(type="SegVisualizationHook"),
)
log_processor = dict(by_epoch=False)
# For TensorBoard, give vis_backends dict(type="TensorboardVisBackend") as well.
visualizer = dict(type="SegLocalVisualizer", vis_backends=[dict(type="LocalVisBackend")])
tta_model = dict(type="RunningSegTTA")  # --tta; its views are the data's tta_pipeline
