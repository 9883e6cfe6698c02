# The default recipe with one backbone map for each pyramid level, from layers 3, 6, 9 and 12, as
# published plain ViT rows have it.
_base_ = "upernet_srvit_s_ade20k.py"
model = dict(backbone=dict(out_indices=(2, 5, 8, 11)))
