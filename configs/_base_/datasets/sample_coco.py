# The sample dataset's detection form, made by tools/make_sample_dataset.py det, in COCO's layout.
_base_ = "coco.py"
data_root = "data/sample/det/"
classes = ("crescent", "cross", "disc", "heart", "ring", "square", "star", "triangle")
palette = [
    (240, 200, 40),
    (60, 180, 75),
    (230, 60, 60),
    (240, 80, 190),
    (70, 160, 250),
    (250, 140, 30),
    (150, 90, 230),
    (40, 205, 205),
]
metainfo = dict(classes=classes, palette=palette)
image_size = (256, 256)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="RandomFlip", prob=[0.3, 0.3], direction=["horizontal", "vertical"]),
    dict(type="RandomResize", scale=image_size, ratio_range=(0.75, 1.25), keep_ratio=True),
    dict(type="RandomCrop", crop_size=image_size, allow_negative_crop=True),
    dict(type="PackDetInputs"),
]
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="Resize", scale=image_size, keep_ratio=True),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(
        type="PackDetInputs",
        meta_keys=("img_id", "img_path", "ori_shape", "img_shape", "scale_factor"),
    ),
]
train_dataloader = dict(
    batch_size=8,
    num_workers=1,
    dataset=dict(data_root=data_root, metainfo=metainfo, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1,
    dataset=dict(data_root=data_root, metainfo=metainfo, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + "annotations/instances_val2017.json")
test_evaluator = val_evaluator
