# ADE20K at 512 x 512, in the layout of ADEChallengeData2016. A child config that sets one of the
# values at the top, down to seg_map_suffix, reaches the datasets and the heads.
data_root = "data/ade/ADEChallengeData2016/"
classes = None  # a tuple of names for other data; None: ADE20K's 150
palette = None  # a tuple of (red, green, blue); None: fixed random colours for other data
reduce_zero_label = True  # label 0 is "unlabelled", class i is label i + 1
value_map = None  # ((value in the label files, value to take it for), ...)
img_suffix = ".jpg"
seg_map_suffix = ".png"
crop_size = (512, 512)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadCheckedLabels"),
    dict(type="RandomResize", scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=crop_size, cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
# Labels are loaded behind the resizing: evaluation is at the original size.
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="Resize", scale=(2048, 512), keep_ratio=True),
    dict(type="LoadCheckedLabels"),
    dict(type="PackSegInputs"),
]
tta_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(
        type="TestTimeAug",
        transforms=[
            [
                dict(type="Resize", scale=(int(2048 * r), int(512 * r)), keep_ratio=True)
                for r in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
            ],
            [dict(type="RandomFlip", prob=p, direction="horizontal") for p in (0.0, 1.0)],
            [dict(type="LoadCheckedLabels")],
            [dict(type="PackSegInputs")],
        ],
    ),
]
train_dataloader = dict(
    batch_size=2,
    num_workers=4,
    persistent_workers=False,
    worker_init_fn=dict(type="seed_worker_from_torch"),
    sampler=dict(type="InfiniteSampler", shuffle=True),
    dataset=dict(
        type="ADELayoutDataset",
        data_root=data_root,
        data_prefix=dict(img_path="images/training", seg_map_path="annotations/training"),
        reduce_zero_label=reduce_zero_label,
        value_map=value_map,
        img_suffix=img_suffix,
        seg_map_suffix=seg_map_suffix,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type="ADELayoutDataset",
        data_root=data_root,
        data_prefix=dict(img_path="images/validation", seg_map_path="annotations/validation"),
        reduce_zero_label=reduce_zero_label,
        value_map=value_map,
        img_suffix=img_suffix,
        seg_map_suffix=seg_map_suffix,
        test_mode=True,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type="IoUMetric", iou_metrics=["mIoU"])
test_evaluator = val_evaluator
