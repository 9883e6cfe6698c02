# The sample dataset's segmentation form, made by tools/make_sample_dataset.py seg, in ADE20K's
# layout.
_base_ = "ade20k.py"
data_root = "data/sample/seg/"
classes = (
    *("crescent", "cross", "disc", "heart", "ring", "square", "star", "triangle"),
    *("noise", "stripes", "checks", "gradient"),
)
palette = (
    *((240, 200, 40), (60, 180, 75), (230, 60, 60), (240, 80, 190)),
    *((70, 160, 250), (250, 140, 30), (150, 90, 230), (40, 205, 205)),
    *((90, 90, 90), (150, 150, 120), (120, 140, 160), (190, 190, 190)),
)
metainfo = dict(classes=classes, palette=palette)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadCheckedLabels"),
    dict(type="RandomResize", scale=(256, 256), ratio_range=(0.75, 1.25), keep_ratio=True),
    dict(type="RandomCrop", crop_size=(160, 160)),
    dict(type="RandomFlip", prob=[0.3, 0.3], direction=["horizontal", "vertical"]),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="Resize", scale=(256, 256), keep_ratio=True),
    dict(type="LoadCheckedLabels"),
    dict(type="PackSegInputs"),
]
tta_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(
        type="TestTimeAug",
        transforms=[
            [dict(type="Resize", scale=(s, s), keep_ratio=True) for s in (192, 256, 320)],
            [dict(type="RandomFlip", prob=p, direction="horizontal") for p in (0.0, 1.0)],
            [dict(type="LoadCheckedLabels")],
            [dict(type="PackSegInputs")],
        ],
    ),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(data_root=data_root, metainfo=metainfo, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1, dataset=dict(data_root=data_root, metainfo=metainfo, pipeline=test_pipeline)
)
test_dataloader = val_dataloader
