"""``python -m gym_kernel.cli`` is ``gym-kernel``."""

import sys

from gym_kernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
