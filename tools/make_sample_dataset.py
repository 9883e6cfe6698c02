"""Write one form of the sample dataset: ``det`` (COCO), ``seg`` (ADE20K) or ``cls`` (folders)."""

import argparse
import sys

from mmsoftmor.datasets import sample
from mmsoftmor.errors import InputError

FORMS = {
    "det": sample.make_detection,
    "seg": sample.make_segmentation,
    "cls": sample.make_classification,
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("--root", help="folder to write to (default: data/sample/FORM)")
    parser.add_argument("--num-train", type=int, help="training images (default: the form's own)")
    parser.add_argument("--num-val", type=int, help="validation images (default: the form's own)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    root = args.root or f"data/sample/{args.form}"
    counts = {"num_train": args.num_train, "num_val": args.num_val}
    given = {name: count for name, count in counts.items() if count is not None}
    try:
        stamp = FORMS[args.form](root, seed=args.seed, **given)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted: the same command goes on from here.", file=sys.stderr)
        return 130
    for split, instances in stamp["instances"].items():
        print(f"{root}: {split} {stamp[f'num_{split}']} images, {instances} instances")
    return 0


if __name__ == "__main__":
    sys.exit(main())
