# ImageNet-1k with DeiT's augmentation. Either layout works as it is: folders of classes, or
# OpenMMLab's meta/train.txt and meta/val.txt, which are read where they exist.
data_root = "data/imagenet/"
bgr_mean = [103.53, 116.28, 123.675]
bgr_std = [57.375, 57.12, 58.395]
data_preprocessor = dict(
    type="ClsDataPreprocessor",
    num_classes=1000,
    mean=bgr_mean[::-1],
    std=bgr_std[::-1],
    to_rgb=True,
    # One of the two at random for each batch.
    batch_augments=dict(augments=[dict(type="Mixup", alpha=0.8), dict(type="CutMix", alpha=1.0)]),
)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="RandomResizedCrop", scale=224, backend="pillow", interpolation="bicubic"),
    dict(type="RandomFlip", prob=0.5, direction="horizontal"),
    # DeiT names a colour jitter too, which its code leaves out beside RandAugment.
    dict(
        type="RandAugment",
        policies="timm_increasing",
        num_policies=2,
        total_level=10,
        magnitude_level=9,
        magnitude_std=0.5,
        hparams=dict(pad_val=[round(x) for x in bgr_mean], interpolation="bicubic"),
    ),
    dict(
        type="RandomErasing",
        erase_prob=0.25,
        mode="rand",
        min_area_ratio=0.02,
        max_area_ratio=1 / 3,
        fill_color=bgr_mean,
        fill_std=bgr_std,
    ),
    dict(type="PackInputs"),
]
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="ResizeEdge", scale=256, edge="short", backend="pillow", interpolation="bicubic"),
    dict(type="CenterCrop", crop_size=224),
    dict(type="PackInputs"),
]
train_dataloader = dict(
    batch_size=128,
    num_workers=8,
    persistent_workers=False,
    worker_init_fn=dict(type="seed_worker_from_torch"),
    # DeiT's repeated augmentation: an epoch shows a third of the images, each three times.
    sampler=dict(type="RepeatAugSampler", shuffle=True),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="ImageNet",
        data_root=data_root,
        split="train",
        data_prefix="train",  # what split implies, said where a missing folder is looked for
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=128,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=False),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="ImageNet",
        data_root=data_root,
        split="val",
        data_prefix="val",
        pipeline=test_pipeline,
    ),
)
val_evaluator = dict(type="Accuracy", topk=(1, 5))
test_dataloader = val_dataloader
test_evaluator = val_evaluator
