// Preloaded into programs built with ThreadSanitizer: makes Abseil's locks visible to it.
//
// Debian's Abseil is built without ThreadSanitizer and waits in futexes, so what gRPC hands from
// one thread to another under an absl::Mutex looks like a race. Here each lock and unlock also
// tells ThreadSanitizer: what happened before the unlock happened before the next lock.
//
// Functions are named by their symbols, because a class cannot be defined again to wrap its
// methods.
#include <dlfcn.h>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

// The function of that name in the library.
template <typename Function>
Function Real(const char* symbol) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
}

struct AbslTime {  // as absl::Time is passed
  long seconds;
  unsigned ticks;
};

}  // namespace

#define LOCK(symbol)                                         \
  extern "C" void symbol(void* mutex) {                      \
    static const auto real = Real<void (*)(void*)>(#symbol); \
    real(mutex);                                             \
    __tsan_acquire(mutex);                                   \
  }
#define UNLOCK(symbol)                                       \
  extern "C" void symbol(void* mutex) {                      \
    static const auto real = Real<void (*)(void*)>(#symbol); \
    __tsan_release(mutex);                                   \
    real(mutex);                                             \
  }

LOCK(_ZN4absl7debian35Mutex4LockEv)
LOCK(_ZN4absl7debian35Mutex10ReaderLockEv)
UNLOCK(_ZN4absl7debian35Mutex6UnlockEv)
UNLOCK(_ZN4absl7debian35Mutex12ReaderUnlockEv)

extern "C" bool _ZN4absl7debian35Mutex7TryLockEv(void* mutex) {
  static const auto real = Real<bool (*)(void*)>("_ZN4absl7debian35Mutex7TryLockEv");
  bool locked = real(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

extern "C" void _ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(void* condition, void* mutex) {
  static const auto real =
      Real<void (*)(void*, void*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  real(condition, mutex);
  __tsan_acquire(mutex);
}

extern "C" bool _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE(
    void* condition, void* mutex, AbslTime deadline) {
  static const auto real = Real<bool (*)(void*, void*, AbslTime)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  bool timed_out = real(condition, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}
