# Mask R-CNN, SR-ViT-Ti R=4, multi-scale, 36 epochs, 8 x 2 images.
_base_ = [
    "_base_/models/maskrcnn_srvit_t.py",
    "_base_/datasets/coco_ms.py",
    "_base_/schedules/det_3x.py",
    "_base_/det_runtime.py",
]
model = dict(data_preprocessor=dict(batch_augments=None))
