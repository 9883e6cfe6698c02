# SR-ViT from mmpretrain's DeiT of this size (its model zoo's address), a plain ViT that
# router.init='first' turns into R=4 at nearly the function it was. A local file, or None to start
# from nothing, goes to model.backbone.init_cfg.checkpoint.
_base_ = "upernet_srvit.py"
model = dict(
    backbone=dict(
        arch="small",
        init_cfg=dict(
            type="Pretrained",
            checkpoint="https://download.openmmlab.com/mmclassification/v0/deit/"
            "deit-small_pt-4xb256_in1k_20220218-9425b9bb.pth",
        ),
    ),
    neck=dict(in_channels=384),
)
