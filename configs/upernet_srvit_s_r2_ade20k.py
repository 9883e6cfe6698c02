# The default recipe at recursion depth 2.
_base_ = "upernet_srvit_s_ade20k.py"
recursion_depth = 2
model = dict(backbone=dict(recursion_depth=recursion_depth))
