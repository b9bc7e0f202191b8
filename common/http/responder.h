// How a handler answers: one whole response, or a start and then chunks.
//
// The bytes wait in a bounded buffer until the client takes them; nothing here blocks. A client
// that goes away, or takes nothing for the stall limit, is reported once through OnClose.
//
// Concurrency: every method may be called from any thread, also after the connection is gone (the
// call then does nothing). Calls for one response must be ordered by the caller.
#ifndef PAGODA_COMMON_HTTP_RESPONDER_H_
#define PAGODA_COMMON_HTTP_RESPONDER_H_

#include <cstddef>
#include <functional>
#include <string_view>

#include "common/http/http_message.h"

namespace pagoda::http {

enum class CloseReason {
  kClientGone,  // the client closed (or half-closed) its side, or the connection broke
  kSlowReader,  // no byte taken for the stall limit, or more waiting than the buffer limit
  kServerStopping,
};

// Dropping the last reference without an answer sends a 500 (or cuts a stream that had begun), so
// that a lost request is never a silent hang.
class Responder {
 public:
  virtual ~Responder() = default;

  // The whole response. At most one of Send and Start is called, once.
  virtual void Send(HttpResponse response) = 0;

  // Sends status and headers now; the body follows in Write calls (chunked encoding) until Finish.
  virtual void Start(int status, HttpHeaders headers) = 0;
  // False when the connection is gone or this chunk passes the buffer limit, which closes it as
  // kSlowReader. An empty chunk does nothing.
  virtual bool Write(std::string_view chunk) = 0;
  virtual void Finish() = 0;
  // Cuts a response that cannot be completed; the client sees an incomplete body.
  virtual void Abort() = 0;

  // Bytes produced and not yet taken by the client's connection: how slow its reader is.
  virtual size_t pending_bytes() const = 0;

  // `callback` runs once on an I/O thread (so it must not block) if the connection ends before the
  // response was finished; at once if it already has. It is dropped unused after Send or Finish.
  virtual void OnClose(std::function<void(CloseReason)> callback) = 0;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_RESPONDER_H_
