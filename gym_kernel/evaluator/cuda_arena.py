"""Shared GPU memory by the driver's virtual memory management.

``cuMemCreate`` allocations export a POSIX descriptor that crosses user ids and namespaces (legacy CUDA IPC does
not) and can be mapped read-only, so that a worker's write to an input faults in the worker alone.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from gym_kernel.errors import DeviceUnavailable

__all__ = ["CudaArena"]


class CudaArena:
    """An arena in GPU memory. Use :meth:`create` (judge) or :meth:`open` (worker)."""

    def __init__(
        self, device: torch.device, handle: Any, size_bytes: int, fd: int, *, writable: bool
    ) -> None:
        driver = _driver()
        self._device = device
        self.fd = fd
        self.size_bytes = size_bytes
        granularity = _check(
            driver.cuMemGetAllocationGranularity(_properties(device), _minimum_granularity())
        )
        self._mapped_bytes = _round_up(size_bytes, int(granularity))
        self._pointer = _check(driver.cuMemAddressReserve(self._mapped_bytes, 0, 0, 0))
        _check(driver.cuMemMap(self._pointer, self._mapped_bytes, 0, handle, 0))
        access = driver.CUmemAccessDesc()
        access.location = _properties(device).location
        flags = driver.CUmemAccess_flags
        access.flags = (
            flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if writable else flags.CU_MEM_ACCESS_FLAGS_PROT_READ
        )
        _check(driver.cuMemSetAccess(self._pointer, self._mapped_bytes, [access], 1))
        # The mapping keeps the memory alive; the handle itself is no longer needed.
        _check(driver.cuMemRelease(handle))
        self.bytes = torch.as_tensor(_DeviceBytes(int(self._pointer), size_bytes), device=device)

    @classmethod
    def create(cls, device: torch.device, size_bytes: int) -> CudaArena:
        """Allocate GPU memory and export its descriptor.

        Raises:
            DeviceUnavailable: The driver has no room for it, or cannot share memory.
        """
        driver = _driver()
        properties = _properties(device)
        granularity = int(_check(driver.cuMemGetAllocationGranularity(properties, _minimum_granularity())))
        handle = _check(driver.cuMemCreate(_round_up(size_bytes, granularity), properties, 0))
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        fd = int(_check(driver.cuMemExportToShareableHandle(handle, kind, 0)))
        return cls(device, handle, size_bytes, fd, writable=True)

    @classmethod
    def open(cls, device: torch.device, size_bytes: int, fd: int, *, writable: bool) -> CudaArena:
        """Map memory that another process created."""
        driver = _driver()
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        handle = _check(driver.cuMemImportFromShareableHandle(fd, kind))
        return cls(device, handle, size_bytes, fd, writable=writable)

    def close(self) -> None:
        """Wait for the device, unmap the memory and close the descriptor."""
        if self.fd < 0:
            return
        os.close(self.fd)
        self.fd = -1
        self.bytes = torch.empty(0, dtype=torch.uint8)
        torch.cuda.synchronize(self._device)
        driver = _driver()
        _check(driver.cuMemUnmap(self._pointer, self._mapped_bytes))
        _check(driver.cuMemAddressFree(self._pointer, self._mapped_bytes))


class _DeviceBytes:
    def __init__(self, pointer: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceUnavailable(
            "Evaluating on a GPU needs NVIDIA's cuda-bindings: pip install cuda-bindings."
        ) from error
    return driver


def _properties(device: torch.device) -> Any:
    driver = _driver()
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    location = driver.CUmemLocation()
    location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = device.index or 0
    properties.location = location
    properties.requestedHandleTypes = (
        driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    )
    return properties


def _minimum_granularity() -> Any:
    return _driver().CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM


def _round_up(size_bytes: int, granularity: int) -> int:
    return -(-size_bytes // granularity) * granularity


def _check(result: tuple[Any, ...]) -> Any:
    error, *values = result
    if int(error) != 0:
        raise DeviceUnavailable(f"The CUDA driver refused a memory call: {error}.")
    return values[0] if values else None
