# The plain ViT that the quickstart fine-tunes from: pretrained on the sample dataset's
# classification form, as DeiT is on ImageNet.
_base_ = [
    "_base_/models/classifier_srvit.py",
    "_base_/datasets/sample_cls.py",
    "_base_/cls_runtime.py",
]
recursion_depth = 1
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True, embed_dims=128, num_layers=4, num_heads=4, feedforward_channels=512
        ),
        img_size=96,
        out_type="avg_featmap",
        with_cls_token=False,
        recursion_depth=recursion_depth,
        drop_path_rate=0.0,
    ),
    head=dict(num_classes=48, in_channels=128, loss=dict(mode="classy_vision")),
)
optim_wrapper = dict(
    optimizer=dict(type="AdamW", lr=1e-3, weight_decay=0.05),
    constructor="RecursiveLayerDecayConstructor",
    paramwise_cfg=dict(layer_decay_rate=1.0),
    clip_grad=dict(max_norm=1.0),
)
max_epochs = 20
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-2, by_epoch=False, begin=0, end=500),
    dict(type="CosineAnnealingLR", by_epoch=True, T_max=max_epochs, convert_to_iter_based=True),
]
train_cfg = dict(by_epoch=True, max_epochs=max_epochs, val_interval=2)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(enable=False, base_batch_size=64)
