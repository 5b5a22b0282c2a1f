"""The driver: what is asked of libcuda by ctypes, and `cuda.bindings.driver`, for a stand-in device."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.standin.settings import CUDA, NAME, Settings

_TYPES = {
    "pointer": (ctypes.c_uint64, np.uint64),
    "int32": (ctypes.c_int32, np.int32),
    "int64": (ctypes.c_int64, np.int64),
    "float32": (ctypes.c_float, np.float32),
}


class Library:
    """libcuda.so.1, of which the program asks what starts no device."""

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = CUDA
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, handle: Any, number: int) -> int:
        handle._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, length: int, handle: Any) -> int:
        name.value = NAME.encode()[: length - 1]
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, handle: Any) -> int:
        here = Settings.here()
        major, minor = here.capability
        value._obj.value = {75: major, 76: minor, 16: here.multiprocessors}[attribute]
        return 0


# --- cuda.bindings.driver, as engine.cuda.replays.overlap uses it ---


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class CUlaunchAttributeID(enum.IntEnum):
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6


class CUlaunchAttribute:
    def __init__(self) -> None:
        self.id: Any = None
        self.value = SimpleNamespace(programmaticStreamSerializationAllowed=0)


@dataclass
class CUlaunchConfig:
    gridDimX: int = 0
    gridDimY: int = 0
    gridDimZ: int = 0
    blockDimX: int = 0
    blockDimY: int = 0
    blockDimZ: int = 0
    sharedMemBytes: int = 0
    hStream: int = 0
    attrs: list[CUlaunchAttribute] = field(default_factory=list)
    numAttrs: int = 0


CUfunction = CUstream = int


def cuLaunchKernelEx(config: CUlaunchConfig, function: int, address: int, extra: int) -> tuple[CUresult]:
    from tests.standin.errors import CudaError
    from tests.standin.launching import by_handle

    kernel = by_handle[function]
    takes = kernel.function.takes or ()
    pointers = (ctypes.c_void_p * len(takes)).from_address(address)
    given: list[Any] = []
    for kind, pointer in zip(takes, pointers, strict=True):
        if kind == "struct":
            struct = kernel.function.struct.from_address(pointer)
            given.append(np.frombuffer(bytes(struct), f"V{ctypes.sizeof(struct)}", count=1))
        else:
            there, scalar = _TYPES[kind]
            given.append(scalar(there.from_address(pointer).value))
    try:
        work = kernel.work(
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            tuple(given),
            config.sharedMemBytes,
            early=any(attribute.value.programmaticStreamSerializationAllowed for attribute in config.attrs),
        )
        kernel.device.stream(config.hStream).put(work)
    except CudaError as error:
        return (CUresult(error.status),)
    return (CUresult.CUDA_SUCCESS,)
