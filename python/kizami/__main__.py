"""`python -m kizami`: the command line of `kizami.cli`."""

from kizami.cli import main

if __name__ == "__main__":
    main()
