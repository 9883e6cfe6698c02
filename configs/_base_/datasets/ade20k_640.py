# ADE20K at 640 x 640.
_base_ = "ade20k.py"
crop_size = (640, 640)
train_pipeline, test_pipeline = _base_.train_pipeline, _base_.test_pipeline
tta_pipeline = _base_.tta_pipeline
train_pipeline[2].update(scale=(2560, 640))  # RandomResize
train_pipeline[3].update(crop_size=crop_size)  # RandomCrop
test_pipeline[1].update(scale=(2560, 640))  # Resize
tta_pipeline[1]["transforms"][0] = [
    dict(type="Resize", scale=(int(2560 * r), int(640 * r)), keep_ratio=True)
    for r in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
