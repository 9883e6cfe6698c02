# ADE20K at 640 x 640.
_base_ = "ade20k.py"
crop_size = (640, 640)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadCheckedLabels"),
    dict(type="RandomResize", scale=(2560, 640), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=crop_size, cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="Resize", scale=(2560, 640), keep_ratio=True),
    dict(type="LoadCheckedLabels"),
    dict(type="PackSegInputs"),
]
tta_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(
        type="TestTimeAug",
        transforms=[
            [
                dict(type="Resize", scale=(int(2560 * r), int(640 * r)), keep_ratio=True)
                for r in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
            ],
            [dict(type="RandomFlip", prob=p, direction="horizontal") for p in (0.0, 1.0)],
            [dict(type="LoadCheckedLabels")],
            [dict(type="PackSegInputs")],
        ],
    ),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
