#include "guest/transparent_check.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "linux/local_route.h"

namespace belljar::guest {
namespace {

constexpr uint16_t kAnyPort = 9;
constexpr uint16_t kResolverPort = 53;
constexpr int kPatience = 10'000;  // milliseconds: the launcher may be starved of processor time

std::string name_of(int code) {
  const char* name = strerrorname_np(code);
  return name != nullptr ? name : std::to_string(code);
}

sockaddr_in v4_address(uint32_t number, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(number);
  return out;
}

Finding connect_to(const char* subject, const sockaddr* address, socklen_t length) {
  const base::Fd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The way out resets what is led to it for no host, and may be quicker than connect() is to return: ECONNRESET is
  // what an established connection gets; one that nobody took gets ECONNREFUSED (Linux, tcp_reset() in tcp_input.c).
  if (socket && (::connect(socket.get(), address, length) == 0 || errno == ECONNRESET)) return {};
  return {subject, "led to the way out", name_of(errno), errno};
}

// `localhost`, type A, as a stub resolver asks (RFC 1035, section 4.1).
constexpr std::string_view kQuestion("BJ\1\0\0\1\0\0\0\0\0\0\11localhost\0\0\1\0\1", 27);
// The same with one answer: a response without error, and 127.0.0.1 at its end.
constexpr std::string_view kAnswerStart("BJ\x81\x80\0\1\0\1", 8);
constexpr std::string_view kAnswerEnd("\0\4\x7f\0\0\1", 6);

}  // namespace

Finding check_redirect(bool v6) {
  const sockaddr_in v4 = v4_address(linux::kSyntheticV4, kAnyPort);
  Finding found = connect_to("198.18.0.0", reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  if (!found.expected.empty() || !v6) return found;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(kAnyPort);
  address.sin6_addr.s6_addr[0] = linux::kSyntheticV6 >> 8U;
  address.sin6_addr.s6_addr[1] = linux::kSyntheticV6 & 0xffU;
  return connect_to("fd53::", reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void ResolverQuestion::ask() {
  socket_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in resolver = v4_address(INADDR_LOOPBACK, kResolverPort);
  const bool asked = socket_ &&
                     ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&resolver), sizeof resolver) == 0 &&
                     ::write(socket_.get(), kQuestion.data(), kQuestion.size()) >= 0;
  error_ = asked ? 0 : errno;
}

Finding ResolverQuestion::check() {
  constexpr const char* kSubject = "localhost";
  constexpr const char* kExpected = "127.0.0.1 from the resolver";
  if (error_ != 0) return {kSubject, kExpected, name_of(error_), error_};
  pollfd wait{socket_.get(), POLLIN, 0};
  if (::poll(&wait, 1, kPatience) <= 0) return {kSubject, kExpected, "no answer", 0};
  std::array<char, 128> answer;
  const ssize_t size = ::read(socket_.get(), answer.data(), answer.size());
  if (size < 0) return {kSubject, kExpected, name_of(errno), errno};
  const std::string_view text(answer.data(), static_cast<size_t>(size));
  if (text.starts_with(kAnswerStart) && text.ends_with(kAnswerEnd)) return {};
  return {kSubject, kExpected, "another answer", 0};
}

}  // namespace belljar::guest
