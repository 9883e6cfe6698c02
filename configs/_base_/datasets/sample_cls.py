# The sample dataset's classification form, made by tools/make_sample_dataset.py cls.
dataset_type = "CustomDataset"
data_root = "data/sample/cls/"
data_preprocessor = dict(
    type="ClsDataPreprocessor",
    num_classes=48,
    mean=[123.675, 116.28, 103.53],
    std=[58.395, 57.12, 57.375],
    to_rgb=True,
)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="RandomResizedCrop", scale=96, crop_ratio_range=(0.5, 1.0)),
    dict(type="RandomFlip", prob=0.5, direction="horizontal"),
    dict(type="RandomFlip", prob=0.5, direction="vertical"),
    dict(type="PackInputs"),
]
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="Resize", scale=(96, 96)),
    dict(type="PackInputs"),
]
train_dataloader = dict(
    batch_size=64,
    num_workers=1,
    worker_init_fn=dict(type="seed_worker_from_torch"),
    sampler=dict(type="DefaultSampler", shuffle=True),
    dataset=dict(
        type=dataset_type, data_root=data_root, data_prefix="train", pipeline=train_pipeline
    ),
)
val_dataloader = dict(
    batch_size=64,
    num_workers=1,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(type=dataset_type, data_root=data_root, data_prefix="val", pipeline=test_pipeline),
)
val_evaluator = dict(type="Accuracy", topk=(1,))
test_dataloader = val_dataloader
test_evaluator = val_evaluator
