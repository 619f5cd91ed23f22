#include "tiers/docker/fake_engine.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/io.h"

namespace belljar::tiers::docker {

FakeEngine::FakeEngine(std::function<void(int)> serve) {
  const char* temp = std::getenv("TMPDIR");
  folder_ = std::string(temp != nullptr ? temp : "/tmp") + "/belljar-engine.XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  path_ = folder_ + "/s";
  listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!listener_ || path_.size() >= sizeof address.sun_path) std::abort();
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0) {
    std::abort();
  }
  thread_ = std::thread([fd = listener_.get(), serve = std::move(serve)] {
    for (;;) {
      const base::Fd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) return;
      serve(connection.get());
    }
  });
}

FakeEngine::~FakeEngine() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
  ::unlink(path_.c_str());
  ::rmdir(folder_.c_str());
}

std::string read_request(int fd) {
  std::string out;
  size_t wanted = SIZE_MAX;
  while (out.size() < wanted) {
    std::array<char, 4096> buffer{};
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<size_t>(n));
    const size_t end = out.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const size_t length = out.find("Content-Length: ");
    wanted = end + 4 + (length < end ? std::strtoul(out.c_str() + length + 16, nullptr, 10) : 0);
  }
  return out;
}

void say(int fd, std::string_view text) {
  (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace belljar::tiers::docker
