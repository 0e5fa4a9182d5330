"""`python -m palaver` is the command line."""

from palaver.cli import run

if __name__ == "__main__":
    run()
