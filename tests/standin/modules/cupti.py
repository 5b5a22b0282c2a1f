"""`cupti.cupti`, as far as it is used: with records made by hand, or of what the stand-in device does."""

from __future__ import annotations

import ctypes
import enum
import threading
import time
import types
from types import SimpleNamespace as Record
from typing import Any

from engine.cuda.cupti import BUFFER_NBYTES

AHEAD_NS = 5_000_000_000


class Kind(enum.IntEnum):
    MEMCPY = 1
    MEMSET = 2
    KERNEL = 3
    DRIVER = 4
    RUNTIME = 5
    CONCURRENT_KERNEL = 10
    OVERHEAD = 17
    STREAM = 37
    SYNCHRONIZATION = 38
    MEMORY2 = 49


class Failure(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class FakeCupti(types.ModuleType):
    """The part of cupti-python that is used; `hand_over` is what the next flush delivers."""

    def __init__(self) -> None:
        super().__init__("cupti.cupti")
        self.ActivityKind = Kind
        self.CallbackDomain = enum.IntEnum("CallbackDomain", {"DRIVER_API": 1, "RUNTIME_API": 2})
        self.ActivityMemcpyKind = enum.IntEnum(
            "ActivityMemcpyKind", {"UNKNOWN": 0, "HTOD": 1, "DTOH": 2, "DTOD": 8}
        )
        self.ActivityMemoryKind = enum.IntEnum(
            "ActivityMemoryKind", {"UNKNOWN": 0, "PAGEABLE": 1, "PINNED": 2, "DEVICE": 3, "DEVICE_STATIC": 6}
        )
        self.ActivitySynchronizationType = enum.IntEnum(
            "ActivitySynchronizationType", {"UNKNOWN": 0, "STREAM_SYNCHRONIZE": 3, "CONTEXT_SYNCHRONIZE": 4}
        )
        self.ActivityOverheadKind = enum.IntEnum("ActivityOverheadKind", {"CUPTI_BUFFER_FLUSH": 65536})
        self.ActivityThreadIdType = enum.IntEnum("ActivityThreadIdType", {"DEFAULT": 0, "SYSTEM": 1})
        self.Result = enum.IntEnum(
            "Result",
            {
                "SUCCESS": 0,
                "ERROR_INSUFFICIENT_PRIVILEGES": 35,
                "ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": 39,
            },
        )
        self.enabled: list[int] = []
        self.hand_over: list[list[Record]] = []
        self.refuse = 0
        self.dropped = 0

    def activity_register_callbacks(self, requested, completed):
        assert requested() == (BUFFER_NBYTES, 0)
        self.completed = completed

    def activity_enable(self, kind):
        if self.refuse and kind == Kind.MEMSET:
            raise Failure(self.refuse)
        self.enabled.append(kind)

    def activity_disable(self, kind):
        self.enabled.remove(kind)

    def activity_flush_all(self, flag):
        assert flag == 1
        while self.hand_over:
            self.completed(self.hand_over.pop(0))

    def activity_get_num_dropped_records(self, context, stream, address):
        ctypes.c_size_t.from_address(address).value = self.dropped

    def set_thread_id_type(self, kind):
        self.threads = kind

    def get_timestamp(self):
        return time.perf_counter_ns() + AHEAD_NS

    def get_callback_name(self, domain, number):
        return {(2, 7): "cudaLaunchKernel_v7000", (1, 9): "cuMemAlloc_v2"}.get((domain, number), "")


class Recording(FakeCupti):
    """Of what the stand-in device is told and does, while anything is enabled."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, int] = {}
        self._records: list[Record] = []

    def activity_enable(self, kind: int) -> None:
        from tests.standin.here import device

        super().activity_enable(kind)
        device().watcher = self

    def activity_disable(self, kind: int) -> None:
        from tests.standin.here import device

        super().activity_disable(kind)
        if not self.enabled:
            device().watcher = None

    def activity_flush_all(self, flag: int) -> None:
        if self._records:
            self.hand_over.append(self._records)
            self._records = []
        super().activity_flush_all(flag)

    def get_callback_name(self, domain: int, number: int) -> str:
        return next(name for name, known in self._names.items() if known == number)

    def called(self, name: str, start_ns: int, end_ns: int, correlation: int) -> None:
        kind = Kind.RUNTIME if name.startswith("cuda") else Kind.DRIVER
        self._records.append(
            Record(
                kind=int(kind),
                cbid=self._names.setdefault(name, len(self._names) + 1),
                thread_id=threading.get_native_id(),
                correlation_id=correlation,
                return_value=0,
                start=start_ns + AHEAD_NS,
                end=end_ns + AHEAD_NS,
            )
        )

    def did(
        self, stream: Any, work: Any, start_ns: int, end_ns: int, correlation: int, node: int | None
    ) -> None:
        told = dict(work.told)
        kind = told.pop("kind")
        if kind == "CONCURRENT_KERNEL":
            for what in ("grid", "block"):
                told |= {f"{what}_{axis}": size for axis, size in zip("xyz", told.pop(what), strict=True)}
            told |= {"registers_per_thread": 32, "static_shared_memory": 0}
            told.setdefault("dynamic_shared_memory", 0)
        elif kind == "MEMCPY":
            way = told["copy_kind"]
            memory = {"H": self.ActivityMemoryKind.PINNED, "D": self.ActivityMemoryKind.DEVICE}
            told["copy_kind"] = int(self.ActivityMemcpyKind[way])
            told |= {"src_kind": int(memory[way[0]]), "dst_kind": int(memory[way[3]])}
        else:
            told["memory_kind"] = int(self.ActivityMemoryKind.DEVICE)
        self._records.append(
            Record(
                kind=int(Kind[kind]),
                start=start_ns + AHEAD_NS,
                end=max(end_ns, start_ns + 1) + AHEAD_NS,
                stream_id=stream.number,
                device_id=0,
                context_id=1,
                correlation_id=correlation,
                graph_id=0 if node is None else 1,
                graph_node_id=0 if node is None else node + 1,
                **told,
            )
        )
