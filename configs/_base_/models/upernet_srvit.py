# UperNet on SR-ViT in dense mode with the four levels of a simple feature pyramid. Published plain
# ViT rows differ by the head's width. Ours: pyramid 256, UPerHead 512, auxiliary FCN 256 channels.
recursion_depth = 4
norm_cfg = dict(type="SyncBN", requires_grad=True)  # plain BN by itself on one process or a CPU
model = dict(
    type="BoundedEncoderDecoder",
    data_preprocessor=dict(
        type="SegDataPreProcessor",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=(512, 512),
        # Whole patches and even pyramid levels; the padding's scores are cut off before resizing.
        test_cfg=dict(size_divisor=32),
    ),
    backbone=dict(
        type="mmpretrain.SRViT",
        arch="small",
        img_size=224,
        patch_size=16,
        out_type="featmap",
        recursion_depth=recursion_depth,
        router=dict(hidden_ratio=1.0, init="first"),
        window_size=0,  # global attention throughout, as in the published rows: 32 x 32 tokens
        final_norm=False,
        drop_path_rate=0.1,
        norm_cfg=dict(type="LN", eps=1e-6),
    ),
    neck=dict(type="SimpleFeaturePyramid", in_channels=384, out_channels=256, num_outs=4),
    decode_head=dict(
        type="UPerHead",
        in_channels=[256, 256, 256, 256],
        in_index=[0, 1, 2, 3],
        pool_scales=(1, 2, 3, 6),
        channels=512,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(
        type="FCNHead",
        in_channels=256,
        in_index=2,
        channels=256,
        num_convs=1,
        concat_input=False,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=0.4),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode="whole"),
)
