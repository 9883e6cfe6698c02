# Mask R-CNN, SR-ViT-nano R=4, on the sample dataset: the quickstart's job, made for two CPU cores.
# It fine-tunes from the plain ViT that srvit_nano_r1_sample.py trains, as the COCO configs do from
# DeiT.
_base_ = [
    "_base_/models/maskrcnn_srvit.py",
    "_base_/datasets/sample_coco.py",
    "_base_/schedules/det_1x.py",
    "_base_/det_runtime.py",
]
channels = 64
num_classes = 8
model = dict(
    data_preprocessor=dict(
        batch_augments=[dict(type="BatchFixedSizePad", size=(256, 256), pad_mask=True)]
    ),
    backbone=dict(
        arch=dict(
            _delete_=True, embed_dims=128, num_layers=4, num_heads=4, feedforward_channels=512
        ),
        img_size=96,
        window_size=8,
        global_attn_indexes=(1, 3),
        drop_path_rate=0.0,
        with_cp=False,
        init_cfg=dict(type="Pretrained", checkpoint="mmsoftmor://srvit_nano_r1_sample.safetensors"),
    ),
    neck=dict(in_channels=128, out_channels=channels),
    rpn_head=dict(in_channels=channels, feat_channels=channels, num_convs=1),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=channels),
        bbox_head=dict(
            in_channels=channels,
            conv_out_channels=channels,
            fc_out_channels=256,
            num_classes=num_classes,
        ),
        mask_roi_extractor=dict(out_channels=channels),
        mask_head=dict(in_channels=channels, conv_out_channels=channels, num_classes=num_classes),
    ),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=500, max_per_img=200),
        rcnn=dict(sampler=dict(num=32)),
    ),
    test_cfg=dict(rpn=dict(nms_pre=300, max_per_img=100), rcnn=dict(max_per_img=30)),
)
max_epochs = 8
optim_wrapper = dict(
    optimizer=dict(lr=1e-3),
    paramwise_cfg=dict(layer_decay_rate=0.8),
)
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-2, by_epoch=False, begin=0, end=50),
    dict(type="CosineAnnealingLR", by_epoch=True, T_max=max_epochs, convert_to_iter_based=True),
]
train_cfg = dict(max_epochs=max_epochs, val_interval=4)
default_hooks = dict(logger=dict(interval=25))
auto_scale_lr = dict(base_batch_size=8)
