// Linkage of small functions in headers that files of several instruction sets include.
#ifndef PAGODA_KERNELS_BASE_INLINE_H_
#define PAGODA_KERNELS_BASE_INLINE_H_

// Never emitted on its own: a shared inline function compiled with AVX2 flags could otherwise be
// the copy that the linker keeps for the scalar path.
#define PAGODA_KERNELS_INLINE static inline __attribute__((always_inline))

#endif  // PAGODA_KERNELS_BASE_INLINE_H_
