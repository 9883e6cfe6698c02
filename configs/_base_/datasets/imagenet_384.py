# ImageNet-1k at 384 pixels, same augmentation; the centre crop keeps its share of the image.
_base_ = "imagenet_224.py"
train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale=384)  # RandomResizedCrop
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=438)  # ResizeEdge: 384 * 256 / 224
test_pipeline[2].update(crop_size=384)  # CenterCrop
train_dataloader = dict(batch_size=64, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=64, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
