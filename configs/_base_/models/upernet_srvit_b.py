# SR-ViT from mmpretrain's DeiT of this size (its model zoo's address), a plain ViT that
# router.init='first' turns into R=4 at nearly the function it was. A local file, or None to start
# from nothing, goes to model.backbone.init_cfg.checkpoint.
_base_ = "upernet_srvit.py"
model = dict(
    backbone=dict(
        arch="base",
        init_cfg=dict(
            type="Pretrained",
            checkpoint="https://download.openmmlab.com/mmclassification/v0/deit/"
            "deit-base_pt-16xb64_in1k_20220216-db63c16c.pth",
        ),
    ),
    neck=dict(in_channels=768),
)
