"""The one exception for mistakes that a user can mend."""


class InputError(ValueError):
    """A user's mistake: a wrong file, key or value.

    The message is one line that names the file, key or value and how to mend it. The command-line
    tools print that line alone and exit with status 2; every other exception keeps its traceback,
    since it is ours to fix.
    """
