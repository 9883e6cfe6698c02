# UperNet, SR-ViT-nano R=4, on the sample dataset: the quickstart's segmentation job, made for two
# CPU cores. It fine-tunes from the plain ViT that srvit_nano_r1_sample.py trains.
_base_ = [
    "_base_/models/upernet_srvit.py",
    "_base_/datasets/sample_ade.py",
    "_base_/schedules/seg_160k.py",
    "_base_/seg_runtime.py",
]
channels = 32
num_classes = 12
# Layer norm: four images are few for batch statistics.
norm_cfg = dict(_delete_=True, type="mmpretrain.LN2d", eps=1e-6)
model = dict(
    data_preprocessor=dict(size=(160, 160)),
    backbone=dict(
        arch=dict(
            _delete_=True, embed_dims=128, num_layers=4, num_heads=4, feedforward_channels=512
        ),
        img_size=96,
        drop_path_rate=0.0,
        init_cfg=dict(type="Pretrained", checkpoint="mmsoftmor://srvit_nano_r1_sample.safetensors"),
    ),
    neck=dict(in_channels=128, out_channels=channels),
    decode_head=dict(
        in_channels=[channels] * 4, channels=channels, num_classes=num_classes, norm_cfg=norm_cfg
    ),
    auxiliary_head=dict(
        in_channels=channels, channels=channels, num_classes=num_classes, norm_cfg=norm_cfg
    ),
)
max_iters = 1200
optim_wrapper = dict(
    optimizer=dict(lr=2e-3),
    paramwise_cfg=dict(layer_decay_rate=0.9),
)
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-2, by_epoch=False, begin=0, end=50),
    dict(type="PolyLR", power=1.0, eta_min=0.0, by_epoch=False, begin=50, end=max_iters),
]
train_cfg = dict(max_iters=max_iters, val_interval=600)
default_hooks = dict(logger=dict(interval=50), checkpoint=dict(interval=300))
auto_scale_lr = dict(base_batch_size=4)
