# The default recipe at recursion depth 2.
_base_ = "maskrcnn_srvit_s_coco.py"
recursion_depth = 2
model = dict(backbone=dict(recursion_depth=recursion_depth))
