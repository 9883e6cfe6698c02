# The default recipe at recursion depth 1: the plain ViT.
_base_ = "maskrcnn_srvit_s_coco.py"
recursion_depth = 1
model = dict(backbone=dict(recursion_depth=recursion_depth))
