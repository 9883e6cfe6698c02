"""Names, colours and ids of the sample dataset, the same in all its forms."""

#: The eight shapes, in alphabetical order so that a folder listing gives the same class indices.
CLASSES = ("crescent", "cross", "disc", "heart", "ring", "square", "star", "triangle")

#: The six hues of the classification form, in the order of the hue circle from red.
COLOURS = ("red", "yellow", "green", "cyan", "blue", "magenta")

#: Classes of the classification form, in alphabetical order: a colour and a shape. Colour is what a
#: transformer learns first; it shows where the object is, and the shape follows.
CLS_CLASSES = tuple(sorted(f"{colour}-{shape}" for colour in COLOURS for shape in CLASSES))

#: COCO category id of each class: with gaps, as COCO's own ids have them.
CATEGORY_IDS = (1, 2, 3, 5, 7, 8, 11, 13)

#: Kinds of background: the "stuff" classes of the segmentation form.
STUFF_CLASSES = ("noise", "stripes", "checks", "gradient")

#: RGB colour of each shape class, for drawing.
PALETTE = (
    (240, 200, 40),
    (60, 180, 75),
    (230, 60, 60),
    (240, 80, 190),
    (70, 160, 250),
    (250, 140, 30),
    (150, 90, 230),
    (40, 205, 205),
)

#: Classes of the segmentation form: label value ``i + 1`` is ``SEG_CLASSES[i]``, 0 is unlabelled.
SEG_CLASSES = CLASSES + STUFF_CLASSES

#: RGB colour of each segmentation class.
SEG_PALETTE = PALETTE + ((90, 90, 90), (150, 150, 120), (120, 140, 160), (190, 190, 190))
