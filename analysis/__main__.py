"""`python -m analysis` is `plimsoll`."""

from analysis.cli import main

if __name__ == "__main__":
    main()
