# The default recipe with Simple Copy-Paste (arXiv 2012.07177): objects of a second jittered image
# are pasted into the first.
_base_ = "maskrcnn_srvit_s_coco.py"
image_size = (1024, 1024)
jitter_pipeline = [
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
    # Pasting needs images of one size; the mean colour becomes 0 when normalised.
    dict(type="Pad", size=image_size, pad_val=dict(img=(103.53, 116.28, 123.675))),
]
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type="MultiImageMixDataset",
        dataset=dict(
            type="CocoDataset",
            data_root="data/coco/",
            ann_file="annotations/instances_train2017.json",
            data_prefix=dict(img="train2017/"),
            filter_cfg=dict(filter_empty_gt=True, min_size=32),
            pipeline=jitter_pipeline,
        ),
        pipeline=[dict(type="CopyPaste", max_num_pasted=100), dict(type="PackDetInputs")],
    )
)
