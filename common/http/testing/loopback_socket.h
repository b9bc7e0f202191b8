// A raw blocking socket for tests that speak HTTP byte by byte, also wrongly.
//
// Every read gives up after 20 s, so that a broken server fails a test instead of hanging it.
//
// Concurrency: one thread.
#ifndef PAGODA_COMMON_HTTP_TESTING_LOOPBACK_SOCKET_H_
#define PAGODA_COMMON_HTTP_TESTING_LOOPBACK_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace pagoda::http {

class LoopbackSocket {
 public:
  // `address` is 127.0.0.1:PORT. `receive_buffer` > 0 makes a reader that takes little unread data.
  explicit LoopbackSocket(std::string_view address, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    timeval timeout{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(
        static_cast<uint16_t>(std::stoi(std::string(address.substr(address.rfind(':') + 1)))));
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~LoopbackSocket() { Close(); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  bool connected() const { return connected_; }

  // False when the peer has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Everything received so far and up to the first `mark`; what follows stays for the next call.
  // At the end of the stream: what there is.
  std::string ReadUntil(std::string_view mark) {
    size_t at;
    while ((at = received_.find(mark)) == std::string::npos) {
      if (!Fill()) return std::exchange(received_, std::string());
    }
    std::string result = received_.substr(0, at + mark.size());
    received_.erase(0, at + mark.size());
    return result;
  }

  std::string ReadToEnd() {
    while (Fill()) {
    }
    return std::exchange(received_, std::string());
  }

  // True when the peer has closed (or reset) and nothing more arrives.
  bool AtEnd() { return received_.empty() && !Fill() && !timed_out_; }

  void ShutdownSending() { shutdown(fd_, SHUT_WR); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  bool Fill() {
    char bytes[16384];
    ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got <= 0) {
      timed_out_ = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      return false;
    }
    received_.append(bytes, static_cast<size_t>(got));
    return true;
  }

  int fd_ = -1;
  bool connected_ = false;
  bool timed_out_ = false;
  std::string received_;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_TESTING_LOOPBACK_SOCKET_H_
