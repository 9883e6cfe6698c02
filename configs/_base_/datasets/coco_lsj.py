# Large-scale jitter (Simple Copy-Paste, arXiv 2012.07177; ViTDet's recipe): scale 0.1 to 2.0 of
# 1024 x 1024, cropped and padded to that size after normalisation, so that padding is the mean.
_base_ = "coco.py"
image_size = (1024, 1024)
train_pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="RandomFlip", prob=0.5),
    dict(type="RandomResize", scale=image_size, ratio_range=(0.1, 2.0), keep_ratio=True),
    dict(
        type="RandomCrop",
        crop_type="absolute",
        crop_size=image_size,
        recompute_bbox=True,
        allow_negative_crop=True,
    ),
    dict(type="FilterAnnotations", min_gt_bbox_wh=(1e-2, 1e-2)),
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
train_dataloader = dict(batch_size=8, num_workers=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
