// One kernel beginning while the one before it ends (programmatic dependent launch, compute capability 9.0).
//
// A rung with `overlaps = true` in its header may be started before the kernel in front of it has ended. It calls
// wait_for_previous() before it touches anything but weights, which no kernel writes; what the kernel in front wrote
// is there afterwards, and it reads nothing any more. Then it takes anew each pointer to what another kernel wrote,
// x = written(x). let_next_begin() says that the next kernel's blocks may take the room that this one leaves; they then
// wait in their turn. Elsewhere none of them does anything. kernels/overlaps.py holds every kernel to it that is
// compiled.
#pragma once

__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A pointer to what another kernel wrote, from the wait on. The compiler takes what is const and __restrict__ for memory
// that never changes, and would read it before the wait.
template <class T>
__device__ __forceinline__ T* written(T* pointer) {
    asm volatile("" : "+l"(pointer)::"memory");
    return pointer;
}

// A number that is worked out here, in front of the wait, though the compiler would do so where it is used.
__device__ __forceinline__ int worked_out(int number) {
    asm volatile("" : "+r"(number));
    return number;
}
