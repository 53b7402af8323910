"""Play one ReLU submission against a running server, and fail unless it is judged correct.

    gym-kernel serve &                                               # or a container, see Dockerfile
    python examples/client_smoke.py --url http://127.0.0.1:8000

The prompt is saved, so that it can be read or given to a model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from websockets.exceptions import WebSocketException

from gym_kernel.integrations.openenv import KernelAction, KernelClient, KernelObservation

KERNEL = Path(__file__).parent / "kernels" / "relu.py"


def main() -> int:
    """Play it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)")
    parser.add_argument("--kernel", type=Path, default=KERNEL, help="a module with class ModelNew")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("task_prompt.txt"),
        help="file that the prompt is written to, replaced if it is there (default: %(default)s in this folder)",
    )
    options = parser.parse_args()
    try:
        observation = play(options.url, options.kernel.read_text(encoding="utf-8"), options.out)
    except ConnectionError as error:
        return fail(f"No server answers at {options.url}: {error}. Start one with `gym-kernel serve`.")
    except OSError as error:
        return fail(f"Cannot use {error.filename}: {error.strerror}.")
    except (RuntimeError, TimeoutError, WebSocketException) as error:
        return fail(f"The server at {options.url} did not do its part: {error or type(error).__name__}.")
    print(observation.text)
    if not observation.correct:
        return fail(f"{options.kernel} was judged {observation.status!r} and not correct.")
    print(
        f"\n{options.kernel} is correct on {observation.device}: {observation.runtime_us:.1f} us, "
        f"{observation.roofline_fraction:.1%} of the roofline, reward {observation.reward:.3f}. "
        f"The prompt is in {options.out}."
    )
    return 0


def play(url: str, code: str, out: Path) -> KernelObservation:
    """Reset to ReLU, save the prompt, submit the code; returns what the server says to it."""
    with KernelClient(url).sync() as client:
        out.write_text(client.reset(task="relu", seed=0).observation.text, encoding="utf-8")
        return client.step(KernelAction(code=code)).observation


def fail(message: str) -> int:
    """Say why, and give the exit code for it."""
    print(f"client_smoke: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
