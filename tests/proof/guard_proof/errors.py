"""Errors that end a proof without a result."""


class NotUnderstood(Exception):
    """An instruction, a system call, a file or a pattern that the model does not cover: nothing is proved then."""


class Undecided(Exception):
    """The solver gave no answer: nothing is proved then."""
