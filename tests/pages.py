"""Programs of our own pages, run as a reader would who pastes them."""

__all__ = ["run_program"]


def run_program(program, page, names):
    """Runs a program of a page; what it defines is in `names` afterwards.

    A test of the page has to run its very words: a copy of them would be another
    program. The words are this repository's; nothing a model wrote comes near.
    """
    exec(compile(program, page, "exec"), names)
