# The default recipe with Simple Copy-Paste (arXiv 2012.07177): objects of a second jittered image
# are pasted into the first.
_base_ = "maskrcnn_srvit_s_coco.py"
*jitter, pack = _base_.train_pipeline
# Pasting needs images of one size; the mean colour becomes 0 when normalised.
pad = dict(type="Pad", size=_base_.image_size, pad_val=dict(img=(103.53, 116.28, 123.675)))
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type="MultiImageMixDataset",
        dataset=dict(_base_.train_dataloader.dataset, pipeline=[*jitter, pad]),
        pipeline=[
            dict(type="CopyPaste", max_num_pasted=100),
            # What is pasted over may leave nothing of a small object.
            dict(type="FilterAnnotations", min_gt_bbox_wh=(1, 1), keep_empty=False),
            pack,
        ],
    )
)
