// The element type of a kernel that takes several: `element`, by the number DTYPE that its launch compiles in. A float16 is
// its 16 bits, which kernels may move and not compute with.
#pragma once

#if DTYPE == DTYPE_FLOAT32
typedef float element;
#elif DTYPE == DTYPE_FLOAT64
typedef double element;
#elif DTYPE == DTYPE_FLOAT16
typedef unsigned short element;
#elif DTYPE == DTYPE_INT32
typedef int element;
#elif DTYPE == DTYPE_INT64
typedef long long element;
#elif DTYPE == DTYPE_INT8
typedef signed char element;
#else
typedef unsigned char element;  // uint8, and bool as 0 and 1
#endif
