// `belljar notify [EVENT]` inside a guest: posts an event to the hook of the session. In the guest it is the whole of
// `belljar`: a program of its own, since Belljar's own ones are not there.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace {

constexpr int kFailed = 125;
constexpr size_t kMaxBody = size_t{1} << 20U;  // as the relay takes it
constexpr size_t kMaxAnswer = size_t{1} << 20U;

constexpr const char* kUsage =
    "Usage: belljar notify [EVENT]\n"
    "Posts an event to the hook of this session. The body is EVENT itself when that is a JSON object, else\n"
    "{\"event\": EVENT}, with what comes on the standard input, if anything, as \"data\". Prints the answer.\n\n"
    "Example:\n  belljar notify Stop\n";

int fail(const std::string& why) {
  std::fprintf(stderr, "belljar notify: %s\n", why.c_str());
  return kFailed;
}

bool looks_like_json(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && (text[at] == '{' || text[at] == '[');
}

// RFC 8259, section 7.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(byte));
      out += code.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// What is there at once or comes from a pipe or file; a terminal is not asked.
std::optional<std::string> read_input() {
  std::string out;
  if (::isatty(STDIN_FILENO) == 1) return out;
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(chunk.data(), static_cast<size_t>(n));
    if (out.size() > kMaxBody) return std::nullopt;
  }
}

std::string body_of(const std::string& event, const std::string& data) {
  if (looks_like_json(event)) return event;
  if (event.empty()) return looks_like_json(data) ? data : "{\"data\":" + quoted(data) + "}";
  std::string out = "{\"event\":" + quoted(event);
  if (!data.empty()) out += ",\"data\":" + (looks_like_json(data) ? data : quoted(data));
  return out + "}";
}

// The port of `http://127.0.0.1:PORT`, which http_proxy holds in every guest whose network is denied.
int proxy_port() {
  const char* text = std::getenv("http_proxy");
  constexpr std::string_view kHead = "http://127.0.0.1:";
  if (text == nullptr || !std::string_view(text).starts_with(kHead)) return 0;
  return std::atoi(text + kHead.size());
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  return -1;
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int post(const std::string& url, const std::string& body) {
  const int fd = connect_to(proxy_port());
  if (fd < 0) return fail("there is no way out of this guest");
  constexpr size_t kScheme = 7;
  const std::string host = url.substr(kScheme, url.find('/', kScheme) - kScheme);
  // HTTP/1.0, so that the answer is never chunked.
  const std::string head = "POST " + url + " HTTP/1.0\r\nHost: " + host +
                           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                           "\r\n\r\n";
  if (!send_all(fd, head + body)) return fail("the relay is gone");
  std::string answer;
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || answer.size() > kMaxAnswer) break;
    answer.append(chunk.data(), static_cast<size_t>(n));
  }
  ::close(fd);
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos || answer.size() < 12) return fail("the hook did not answer");
  const std::string_view text = std::string_view(answer).substr(end + 4);
  const bool good = answer[9] == '2';
  std::FILE* to = good ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), to);
  return good ? 0 : fail("the hook answers " + answer.substr(9, 3));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word != "notify" || argc > 3) {
    std::fputs(kUsage, word == "--help" ? stdout : stderr);
    return word == "--help" ? 0 : kFailed;
  }
  const std::string event = argc > 2 ? argv[2] : "";
  if (event == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const char* url = std::getenv("BELLJAR_HOOK_URL");
  if (url == nullptr || !std::string_view(url).starts_with("http://")) return fail("this session has no hook");
  const auto data = read_input();
  if (!data) return fail("more than 1 MiB on the standard input");
  if (event.empty() && data->empty()) return fail("neither an event nor anything on the standard input");
  return post(url, body_of(event, *data));
}
