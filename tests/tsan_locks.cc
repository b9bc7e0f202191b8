// Preloaded into programs built with ThreadSanitizer: makes visible to it how gRPC hands things
// from one thread to another.
//
// Debian's gRPC and Abseil are built without ThreadSanitizer: Abseil waits in futexes, gRPC queues
// operations by atomics, so what was handed on looks like a race. Here each lock and unlock also
// tells ThreadSanitizer: what happened before the unlock happened before the next lock. And what
// happened before an operation was started or ended happened before its completion is taken.
//
// Most functions are named by their symbols: a class cannot be defined again to wrap its methods,
// and gRPC's own are in no public header.
#include <dlfcn.h>
#include <grpc/grpc.h>

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

extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                                                 void* tag, void* reserved) {
  static const auto real = Real<decltype(&grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return real(call, ops, count, tag, reserved);
}

// grpc_cq_end_op. The status and what follows it only pass through.
extern "C" void
_Z14grpc_cq_end_opP21grpc_completion_queuePvN4absl7debian36StatusEPFvS1_P18grpc_cq_completionES1_S6_b(
    void* queue, void* tag, void* status, void* done, void* argument, void* storage,
    bool internal) {
  static const auto real = Real<void (*)(void*, void*, void*, void*, void*, void*, bool)>(
      "_Z14grpc_cq_end_opP21grpc_completion_queuePvN4absl7debian36StatusEPFvS1_P18grpc_cq_"
      "completionES1_S6_b");
  __tsan_release(tag);
  real(queue, tag, status, done, argument, storage, internal);
}

extern "C" grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                                 gpr_timespec deadline, void* reserved) {
  static const auto real =
      Real<decltype(&grpc_completion_queue_next)>("grpc_completion_queue_next");
  grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}
