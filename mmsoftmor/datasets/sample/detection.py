"""Detection form of the sample dataset, in COCO's layout."""

from .classes import CATEGORY_IDS, CLASSES
from .masks import mask_to_box, mask_to_polygons, mask_to_rle
from .paint import paint
from .scene import image_rng, random_scene
from .store import MAX_IMAGES, generate, write_image, write_json

_LICENSE = {"id": 1, "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}


def make_detection(root, num_train=600, num_val=100, seed=0, progress=True):
    """Write the detection form: ``annotations/instances_{train,val}2017.json`` and images.

    Images are 192-288 pixels a side. Masks are the visible pixels of each object; polygons follow
    pixel edges, so pycocotools rasterises them to exactly these. Some images are empty and some
    hold a cluster of small shapes annotated as one crowd (uncompressed RLE).

    Args:
        root (str | Path): A folder of its own; finished work is kept, unfinished completed.
        num_train (int): Training images. Default 600.
        num_val (int): Validation images. Default 100.
        seed (int): An image depends on this and its index alone. Default 0.
        progress (bool): Show a progress bar. Default True.

    Returns:
        dict: The stamp, as in ``<root>/sample.json``; ``stamp['instances']`` counts by split.

    Raises:
        InputError: A number is out of range, or the folder holds something else.
    """

    def write_split(root, split, indices):
        return _write_split(root, split, indices, seed)

    return generate(root, "detection", num_train, num_val, seed, write_split, progress)


def _write_split(root, split, indices, seed):
    images, annotations = [], []
    first_id = 1 if split == "train" else MAX_IMAGES + 1
    for index in indices:
        rng = image_rng(seed, "detection", split, index)
        scene = random_scene(rng)
        image = _image_record(first_id + index, scene.shape)
        path = root / f"{split}2017" / image["file_name"]
        if not path.exists():
            write_image(path, paint(rng, scene))
        images.append(image)
        annotations += scene_annotations(scene, image["id"])
    write_json(root / "annotations" / f"instances_{split}2017.json", _coco(images, annotations))
    return len(annotations)


def _image_record(image_id, shape):
    name = f"{image_id:012d}.jpg"
    return {"id": image_id, "license": 1, "file_name": name, "height": shape[0], "width": shape[1]}


def scene_annotations(scene, image_id):
    """COCO annotations of a scene.

    Args:
        scene (Scene): The layout.
        image_id (int): Id of its image; the annotations' ids are made from it.

    Returns:
        list[dict]: One per object with a visible pixel, from back to front.
    """
    annotations = []
    for number, item in enumerate(scene.objects):
        if not item.mask.any():
            continue
        annotations.append(
            {
                "id": image_id * 100 + number,
                "image_id": image_id,
                "category_id": CATEGORY_IDS[item.label],
                "iscrowd": int(item.crowd),
                "area": int(item.mask.sum()),
                "bbox": mask_to_box(item.mask),
                "segmentation": (mask_to_rle if item.crowd else mask_to_polygons)(item.mask),
            }
        )
    return annotations


def _coco(images, annotations):
    pairs = zip(CATEGORY_IDS, CLASSES, strict=True)
    return {
        "info": {"description": "mmsoftmor sample dataset: generated shapes", "version": "1"},
        "licenses": [_LICENSE],
        "categories": [{"id": i, "name": name, "supercategory": "shape"} for i, name in pairs],
        "images": images,
        "annotations": annotations,
    }
