"""The software environment: what is installed, what was tested, what is wrong, how to mend it.

``python -m mmsoftmor.env`` prints the table and one line of advice for each problem;
``tools/install.sh`` runs ``python -m mmsoftmor.env.install``. Nothing in this package imports torch
or an OpenMMLab library into its own process (:mod:`mmsoftmor.env.verify` alone does, at the end of
an installation), so it works where the stack is missing or broken.
"""
