# syntax=docker/dockerfile:1
#
# The environment as an OpenEnv server on a CUDA host. nvcc stays in the image: submissions may bring inline CUDA.
#
#   docker build -t gym-kernel .
#   docker run --rm --init --gpus all -p 127.0.0.1:8000:8000 gym-kernel
#   docker run --rm --init --gpus all -p 127.0.0.1:8000:8000 gym-kernel --tasks pilot/train --timeout 120
#   docker run --rm --init -p 127.0.0.1:8000:8000 gym-kernel --device cpu
#
# Isolation. Under Docker's default profile submissions run in the tier `landlock` (Linux 6.12 or newer) or `process`.
# The tier `full` needs namespaces, which that profile forbids. They come either with root inside the container,
#
#   docker run --user root --cap-add SYS_ADMIN \
#     --security-opt seccomp=unconfined --security-opt apparmor=unconfined ... gym-kernel --isolation full
#
# or, as the image's own user, where the host grants user namespaces to ordinary users (sysctl
# kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu 24.04),
#
#   docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     --security-opt systempaths=unconfined ... gym-kernel --isolation full
#
# `--isolation full` refuses to start where it cannot be had; `docker run --entrypoint gym-kernel ... doctor` says why.
# Records and measured ceilings outlive the container with `-v gym-kernel-cache:/home/kernel/.cache/gym-kernel` and
# `-v "$PWD/records:/records" ... --record-dir /records`, in a folder that user 10001 may write.

FROM nvidia/cuda:13.0.1-devel-ubuntu24.04

# What README's measured tables were made with. PyPI's build of it is for CUDA 13.0, and nvcc must be of its major version.
ARG TORCH_VERSION=2.11.0

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# g++ and Python.h for Triton's launchers and inline C++ and CUDA; libseccomp for the system-call filter.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        g++ libseccomp2 python3.12 python3.12-dev python3.12-venv \
    && rm -rf /var/lib/apt/lists/*

ENV PATH=/opt/gym-kernel/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1

# Before the source, so that a change of the source does not fetch it again.
RUN python3.12 -m venv /opt/gym-kernel \
    && python -m pip install "torch==${TORCH_VERSION}"

WORKDIR /opt/src
COPY LICENSE README.md pyproject.toml setup.cfg ./
COPY gym_kernel ./gym_kernel
# hadolint ignore=DL3013
RUN python -m pip install ".[openenv,nvml]"

COPY examples ./examples

RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin kernel \
    && install --directory --owner=kernel --group=kernel \
        /home/kernel/.cache /home/kernel/.cache/gym-kernel /records
USER 10001:10001
WORKDIR /home/kernel

EXPOSE 8000

# The port is bound before the evaluator has started, which takes seconds; answers come after.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]

ENTRYPOINT ["gym-kernel", "serve", "--host", "0.0.0.0"]
