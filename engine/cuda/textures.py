"""Memory of the device as a texture object, which a kernel reads through the texture units."""

from __future__ import annotations

from typing import Any


def linear(cupy: Any, address: int, nbytes: int) -> Any:
    """A texture of the float32 elements that lie there; `ptr` is its handle. It ends with the object."""
    cuda, runtime = cupy.cuda, cupy.cuda.runtime
    memory = cuda.MemoryPointer(cuda.UnownedMemory(address, nbytes, None), 0)
    elements = cupy.ndarray((nbytes // 4,), cupy.float32, memptr=memory)
    channel = cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    resource = cuda.texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=elements, chDesc=channel, sizeInBytes=nbytes
    )
    return cuda.texture.TextureObject(resource, cuda.texture.TextureDescriptor())
