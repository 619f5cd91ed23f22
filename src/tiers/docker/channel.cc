#include "tiers/docker/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/http_body.h"
#include "net/http_head.h"
#include "tiers/docker/refusal_json.h"

namespace belljar::tiers::docker {
namespace {

std::string reason_of(int code) {
  const char* const text = strerrordesc_np(code);
  return text != nullptr ? text : "error " + std::to_string(code);
}

Unknown unknown(int code) {
  return {code, reason_of(code)};
}

Unknown late() {
  return {ETIMEDOUT, "no answer in time"};
}

// False with errno set: ETIMEDOUT when the deadline has passed.
bool wait_for(int fd, short events, const base::Deadline& deadline) {
  for (;;) {
    if (deadline.passed()) {
      errno = ETIMEDOUT;
      return false;
    }
    pollfd wait{fd, events, 0};
    const int ready = ::poll(&wait, 1, deadline.poll_timeout());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::string head_of(const Request& request) {
  std::string out(request.method);
  out += " " + request.target + " HTTP/1.1\r\nHost: engine\r\nUser-Agent: belljar\r\n";
  if (request.hijack) {
    out += "Connection: Upgrade\r\nUpgrade: tcp\r\n";
  } else {
    out += "Connection: close\r\n";
  }
  if (!request.body.type.empty()) {
    const uint64_t size = request.body.file >= 0 ? request.body.file_bytes : request.body.content.size();
    out += "Content-Type: " + std::string(request.body.type) + "\r\nContent-Length: " + std::to_string(size) + "\r\n";
  } else if (request.method == "POST" || request.method == "PUT") {
    out += "Content-Length: 0\r\n";
  }
  return out + "\r\n";
}

class Exchange {
 public:
  Exchange(base::Fd stream, const Request& request) : stream_(std::move(stream)), request_(request) {}

  Outcome run(Hijacked* taken);

 private:
  enum class Sent : uint8_t { kAll, kStopped, kFailed };
  Sent send(std::string_view bytes);
  Sent send_file();
  // Bytes read: 0 at the end of the stream, -1 with errno.
  ssize_t read_more(std::string& into);
  Outcome answer(Hijacked* taken);
  Outcome body_of(const net::ResponseHead& head, std::string_view rest);

  base::Fd stream_;
  const Request& request_;
  bool begun_ = false;  // the engine may have seen something
};

Exchange::Sent Exchange::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      begun_ = true;
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    const int code = n < 0 ? errno : EIO;
    if (code == EINTR) continue;
    // It may have refused already and closed its end without reading on: its answer is there to be read.
    if (code == EPIPE) return Sent::kStopped;
    if (code != EAGAIN || !wait_for(stream_.get(), POLLOUT, request_.deadline)) return Sent::kFailed;
  }
  return Sent::kAll;
}

Exchange::Sent Exchange::send_file() {
  std::array<char, 65536> buffer{};
  uint64_t left = request_.body.file_bytes;
  while (left > 0) {
    const ssize_t n = ::read(request_.body.file, buffer.data(), std::min<uint64_t>(buffer.size(), left));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENODATA;  // it has shrunk
    if (n <= 0) return Sent::kFailed;
    left -= static_cast<uint64_t>(n);
    if (const Sent sent = send({buffer.data(), static_cast<size_t>(n)}); sent != Sent::kAll) return sent;
  }
  return Sent::kAll;
}

ssize_t Exchange::read_more(std::string& into) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = ::recv(stream_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n >= 0) {
      into.append(buffer.data(), static_cast<size_t>(n));
      return n;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(stream_.get(), POLLIN, request_.deadline)) return -1;
  }
}

Outcome Exchange::body_of(const net::ResponseHead& head, std::string_view rest) {
  const auto framing = net::response_framing(head, request_.method);
  if (!framing) return Unknown{EPROTO, "its answer is no HTTP: " + std::string(framing.error().text)};
  // An end of the stream would not tell a whole answer from one that was cut off.
  if (framing->kind == net::Framing::Kind::kUntilClose) return Unknown{EPROTO, "its answer has no length"};
  const size_t most = request_.most_answer != 0 ? request_.most_answer : kMostAnswer;
  const bool handed_on = request_.sink && head.status < 300;
  net::BodyCopier copier(*framing, net::ChunkedCopier::Extensions::kDrop, net::ChunkedCopier::Output::kPlain);
  std::string body;
  std::string unread(rest);
  while (!copier.done()) {
    const auto used = copier.copy(unread, body, most + 1);
    if (!used) return Unknown{EPROTO, "its answer is no HTTP: " + std::string(used.error().text)};
    unread.erase(0, *used);
    if (handed_on) {
      if (!body.empty() && !request_.sink(body)) return Unknown{ECANCELED, "its answer was not wanted any more"};
      body.clear();
    }
    if (body.size() > most) return Unknown{EFBIG, "its answer is larger than expected"};
    if (copier.done()) break;
    const ssize_t n = read_more(unread);
    if (n < 0) return errno == ETIMEDOUT ? late() : unknown(errno);
    if (n == 0) {
      if (copier.end()) break;
      return Unknown{ECONNRESET, "its answer was cut off"};
    }
  }
  if (request_.deadline.passed()) return late();
  if (head.status >= 400) return Refused{head.status, refusal_of(body, head.status)};
  std::string_view api;
  if (net::count_fields(head.fields, "Api-Version", &api) != 1) api = {};
  return Answered{head.status, std::move(body), std::string(api)};
}

Outcome Exchange::answer(Hijacked* taken) {
  std::string bytes;
  net::HeadScanner scanner;
  for (;;) {
    const auto size = scanner.scan(bytes);
    if (!size) return Unknown{EPROTO, "its answer is no HTTP: " + std::string(size.error().text)};
    if (*size == 0) {
      const ssize_t n = read_more(bytes);
      if (n < 0) return errno == ETIMEDOUT ? late() : unknown(errno);
      if (n == 0) return Unknown{ECONNRESET, "it closed the connection without an answer"};
      continue;
    }
    const auto head = net::parse_response_head(std::string_view(bytes).substr(0, *size));
    if (!head) return Unknown{EPROTO, "its answer is no HTTP: " + std::string(head.error().text)};
    if (head->status == 101) {
      if (!request_.hijack || taken == nullptr) return Unknown{EPROTO, "it changes the protocol unasked"};
      if (request_.deadline.passed()) return late();
      *taken = {std::move(stream_), bytes.substr(*size)};
      return Answered{101, {}, {}};
    }
    if (head->status >= 200) {
      Outcome out = body_of(*head, std::string_view(bytes).substr(*size));
      // The connection would have to be the stream now, and is not.
      if (request_.hijack && std::holds_alternative<Answered>(out)) return Unknown{EPROTO, "it did not hand over"};
      return out;
    }
    bytes.erase(0, *size);  // an interim answer (RFC 9110, section 15.2)
    scanner.restart();
  }
}

Outcome Exchange::run(Hijacked* taken) {
  Sent sent = send(head_of(request_));
  if (sent == Sent::kAll) sent = request_.body.file >= 0 ? send_file() : send(request_.body.content);
  const int code = errno;
  if (sent == Sent::kFailed) {
    if (!begun_) return Refused{0, code == ETIMEDOUT ? "no answer in time" : reason_of(code)};
    return code == ETIMEDOUT ? late() : unknown(code);
  }
  if (!begun_) return Refused{0, reason_of(code)};
  return answer(taken);
}

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kPlain.contains(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

base::Result<base::Fd> connect_to(const std::string& socket, const base::Deadline& deadline) {
  constexpr std::string_view kOperation = "connect to the container engine";
  // By its descriptor: an address holds 108 bytes (unix(7)), and what is connected to is what was opened.
  const base::Fd place(::open(socket.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return base::system_error(kOperation, socket, errno);
  const std::string path = "/proc/self/fd/" + std::to_string(place.get());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  base::Fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out) return base::system_error(kOperation, socket, errno);
  while (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    // A full backlog is EAGAIN and cannot be polled for (connect(2)).
    if (errno != EAGAIN) return base::system_error(kOperation, socket, errno);
    if (deadline.passed()) return base::system_error(kOperation, socket, ETIMEDOUT);
    (void)::poll(nullptr, 0, 10);
  }
  return out;
}

Outcome carry_out(const std::string& socket, const Request& request, Hijacked* taken) {
  if (request.deadline.passed()) return Refused{0, "the time was up before it was asked"};
  auto stream = connect_to(socket, request.deadline);
  if (!stream) return Refused{0, "'" + socket + "': " + reason_of(stream.error().code)};
  return Exchange(std::move(*stream), request).run(taken);
}

}  // namespace belljar::tiers::docker
