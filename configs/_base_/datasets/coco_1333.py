# The classic single scale: short side 800, long side at most 1333.
_base_ = "coco.py"
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="Resize", scale=(1333, 800), keep_ratio=True),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PackDetInputs"),
]
train_dataloader = dict(
    batch_sampler=dict(type="AspectRatioBatchSampler"), dataset=dict(pipeline=train_pipeline)
)
