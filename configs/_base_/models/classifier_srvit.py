# SR-ViT as an ImageNet classifier, with a class token and global attention.
recursion_depth = 4
model = dict(
    type="ImageClassifier",
    backbone=dict(
        type="mmpretrain.SRViT",
        arch="small",
        img_size=224,
        patch_size=16,
        recursion_depth=recursion_depth,
        router=dict(hidden_ratio=1.0, init="uniform"),
        drop_path_rate=0.1,
        norm_cfg=dict(type="LN", eps=1e-6),
    ),
    head=dict(
        type="VisionTransformerClsHead",
        num_classes=1000,
        in_channels=384,
        loss=dict(type="LabelSmoothLoss", label_smooth_val=0.1, mode="original"),
    ),
)
