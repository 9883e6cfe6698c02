"""Classification form of the sample dataset, one folder per class."""

from .classes import CLASSES, CLS_CLASSES, COLOURS
from .paint import paint
from .scene import compose, image_rng
from .store import generate, write_image

_SIDE = 128
_SIZES = (35, 120)


def make_classification(root, num_train=24000, num_val=2000, seed=0, progress=True):
    """Write the classification form: ``{train,val}/<class>/*.jpg``, 128 pixels a side.

    One object per image, 35-120 pixels across. The classes are :data:`CLS_CLASSES`, a colour and a
    shape; they take turns, so that their counts differ by at most one.

    Args:
        root (str | Path): A folder of its own; finished work is kept, unfinished completed.
        num_train (int): Training images. Default 24000.
        num_val (int): Validation images. Default 2000.
        seed (int): An image depends on this and its index alone. Default 0.
        progress (bool): Show a progress bar. Default True.

    Returns:
        dict: The stamp, as in ``<root>/sample.json``; ``stamp['instances']`` counts by split.

    Raises:
        InputError: A number is out of range, or the folder holds something else.
    """

    def write_split(root, split, indices):
        return sum(_write_image(root, split, index, seed) for index in indices)

    return generate(root, "classification", num_train, num_val, seed, write_split, progress)


def _write_image(root, split, index, seed):
    colour, shape = CLS_CLASSES[index % len(CLS_CLASSES)].split("-")
    path = root / split / f"{colour}-{shape}" / f"{index:08d}.jpg"
    if not path.exists():
        rng = image_rng(seed, "classification", split, index)
        label = CLASSES.index(shape)
        scene = compose(rng, (_SIDE, _SIDE), [(label, rng.uniform(*_SIZES))])
        if not scene.objects:
            raise RuntimeError(f"no place was found for the object of {path}")
        hue = (COLOURS.index(colour) + rng.uniform(-0.25, 0.25)) / len(COLOURS)
        write_image(path, paint(rng, scene, object_hue=lambda label: hue % 1))
    return 1
