# Multi-scale as DETR (arXiv 2005.12872) and Sparse R-CNN train: short side 480 to 800 in steps of
# 32, or the same after a crop of a smaller version.
_base_ = "coco.py"
scales = [(1333, side) for side in range(480, 801, 32)]
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="RandomFlip", prob=0.5),
    dict(
        type="RandomChoice",
        transforms=[
            [dict(type="RandomChoiceResize", scales=scales, keep_ratio=True)],
            [
                dict(
                    type="RandomChoiceResize",
                    scales=[(4200, 400), (4200, 500), (4200, 600)],
                    keep_ratio=True,
                ),
                dict(
                    type="RandomCrop",
                    crop_type="absolute_range",
                    crop_size=(384, 600),
                    allow_negative_crop=True,
                ),
                dict(type="RandomChoiceResize", scales=scales, keep_ratio=True),
            ],
        ],
    ),
    dict(type="PackDetInputs"),
]
train_dataloader = dict(
    batch_sampler=dict(type="AspectRatioBatchSampler"), dataset=dict(pipeline=train_pipeline)
)
