#include "linux/systemd_scope.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace belljar::linux {
namespace {

constexpr size_t kMostMessage = size_t{1} << 20U;
constexpr std::string_view kOperation = "ask systemd for a scope";

enum class Type : uint8_t { kCall = 1, kReturn = 2, kError = 3, kSignal = 4 };
enum Field : uint8_t {
  kPath = 1,
  kInterface = 2,
  kMember = 3,
  kErrorName = 4,
  kReplySerial = 5,
  kDestination = 6,
  kSignature = 8
};

// Values as the wire has them: each aligned to its size, from the start of the message (D-Bus, "Marshaling").
class Writer {
 public:
  void align(size_t to) { out_.resize((out_.size() + to - 1) / to * to); }
  void byte(uint8_t value) { out_ += static_cast<char>(value); }
  void number(uint32_t value) {
    align(4);
    for (unsigned shift = 0; shift < 32; shift += 8) byte(static_cast<uint8_t>(value >> shift));
  }
  void text(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    out_.append(value);
    byte(0);
  }
  void signature(std::string_view value) {
    byte(static_cast<uint8_t>(value.size()));
    out_.append(value);
    byte(0);
  }
  // An array whose elements have this alignment, filled by `fill`.
  template <class Fill>
  void array(size_t element, Fill fill) {
    number(0);
    const size_t size_at = out_.size() - 4;
    align(element);
    const size_t start = out_.size();
    fill();
    const auto size = static_cast<uint32_t>(out_.size() - start);
    for (unsigned i = 0; i < 4; ++i) out_[size_at + i] = static_cast<char>(size >> (8 * i));
  }
  [[nodiscard]] std::string& bytes() { return out_; }

 private:
  std::string out_;
};

struct Message {
  Type type = Type::kCall;
  std::string path, interface, member, destination, signature, body, error;
  uint32_t reply_serial = 0;
};

// Checks every bound: what comes is the bus's, which a person may have pointed anywhere.
class Reader {
 public:
  explicit Reader(std::string_view bytes, size_t at = 0) : bytes_(bytes), at_(at) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return at_ >= bytes_.size(); }
  void align(size_t to) { at_ = (at_ + to - 1) / to * to; }
  uint8_t byte() { return take(1) ? static_cast<uint8_t>(bytes_[at_ - 1]) : uint8_t{0}; }
  uint32_t number() {
    align(4);
    if (!take(4)) return 0;
    uint32_t out = 0;
    for (size_t i = 0; i < 4; ++i) out |= uint32_t{static_cast<uint8_t>(bytes_[at_ - 4 + i])} << (8 * i);
    return out;
  }
  std::string text() { return sized(number()); }
  std::string signature() { return sized(byte()); }

 private:
  bool take(size_t size) {
    good_ = good_ && at_ <= bytes_.size() && size <= bytes_.size() - at_;
    if (good_) at_ += size;
    return good_;
  }
  std::string sized(size_t size) {
    if (!take(size + 1)) return {};
    return std::string(bytes_.substr(at_ - size - 1, size));
  }
  std::string_view bytes_;
  size_t at_;
  bool good_ = true;
};

std::string encode(const Message& message, uint32_t serial) {
  Writer out;
  out.byte('l');
  out.byte(static_cast<uint8_t>(message.type));
  out.byte(0);
  out.byte(1);
  out.number(static_cast<uint32_t>(message.body.size()));
  out.number(serial);
  const auto field = [&](Field code, const char* type, const std::string& value) {
    if (value.empty()) return;
    out.align(8);
    out.byte(code);
    out.signature(type);
    if (*type == 'g') {
      out.signature(value);
    } else {
      out.text(value);
    }
  };
  out.array(8, [&] {
    field(kPath, "o", message.path);
    field(kInterface, "s", message.interface);
    field(kMember, "s", message.member);
    field(kDestination, "s", message.destination);
    field(kSignature, "g", message.signature);
  });
  out.align(8);
  return std::move(out.bytes()) + message.body;
}

// The fields that are looked at; of others the kinds that the specification gives headers.
bool read_field(Reader& in, Message& out) {
  in.align(8);
  const uint8_t code = in.byte();
  const std::string type = in.signature();
  if (type == "u") {
    const uint32_t value = in.number();
    if (code == kReplySerial) out.reply_serial = value;
    return in.good();
  }
  if (type != "s" && type != "o" && type != "g") return false;
  const std::string value = type == "g" ? in.signature() : in.text();
  if (code == kMember) out.member = value;
  if (code == kErrorName) out.error = value;
  if (code == kSignature) out.signature = value;
  return in.good();
}

// A connection to one bus.
class Bus {
 public:
  explicit Bus(const base::Deadline& deadline) : deadline_(deadline) {}

  base::Status open(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (path.size() >= sizeof name.sun_path) return fail("its socket has too long a name");
    std::memcpy(&name.sun_path[0], path.c_str(), path.size());
    fd_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_ || ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
      return base::system_error(kOperation, path, errno);
    }
    // The user id in decimal, its digits in hexadecimal (D-Bus, "Authentication Mechanisms: EXTERNAL").
    std::string hex;
    for (const char digit : std::to_string(::geteuid())) hex += std::string("3") + digit;
    BELLJAR_TRY(send(std::string(1, '\0') + "AUTH EXTERNAL " + hex + "\r\n"));
    while (!input_.contains("\r\n")) BELLJAR_TRY(receive());
    if (!input_.starts_with("OK ")) return fail("the bus does not know this user");
    input_.erase(0, input_.find("\r\n") + 2);
    return send("BEGIN\r\n");
  }

  // Sends a call, and returns the body of its answer. Signals that come meanwhile are kept.
  base::Result<std::string> call(const Message& message) {
    const uint32_t serial = ++serial_;
    BELLJAR_TRY(send(encode(message, serial)));
    for (;;) {
      BELLJAR_ASSIGN(Message answer, next());
      if (answer.type == Type::kSignal) {
        signals_.push_back(std::move(answer));
        continue;
      }
      if (answer.reply_serial != serial) continue;
      if (answer.type == Type::kReturn) return std::move(answer.body);
      std::string why = answer.error;
      if (answer.signature.starts_with('s')) why += ": " + Reader(answer.body).text();
      return base::refuse(kOperation, "", why);
    }
  }

  base::Result<Message> next_signal() {
    while (signals_.empty()) {
      BELLJAR_ASSIGN(Message message, next());
      if (message.type == Type::kSignal) signals_.push_back(std::move(message));
    }
    Message out = std::move(signals_.front());
    signals_.erase(signals_.begin());
    return out;
  }

 private:
  static std::unexpected<base::Error> fail(const char* reason) { return base::refuse(kOperation, "", reason); }

  base::Status wait(short events) {
    pollfd wait{fd_.get(), events, 0};
    int ready = 0;
    do {
      ready = ::poll(&wait, 1, deadline_.poll_timeout());
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return fail("no answer in time");
    return {};
  }

  base::Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) {
        BELLJAR_TRY(wait(POLLOUT));
      } else if (n < 0 && errno != EINTR) {
        return base::system_error(kOperation, "", errno);
      } else if (n > 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      }
    }
    return {};
  }

  base::Status receive() {
    BELLJAR_TRY(wait(POLLIN));
    std::array<char, 4096> bytes{};
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n == 0) return fail("the bus has closed the connection");
    if (n < 0 && errno != EAGAIN && errno != EINTR) return base::system_error(kOperation, "", errno);
    if (n > 0) input_.append(bytes.data(), static_cast<size_t>(n));
    return {};
  }

  base::Result<Message> next() {
    constexpr size_t kFixed = 16;  // up to and with the size of the array of fields
    while (input_.size() < kFixed) BELLJAR_TRY(receive());
    if (input_[0] != 'l' || input_[3] != 1) return fail("the bus speaks another protocol");
    Reader sizes(input_, 4);
    const uint32_t body = sizes.number();
    (void)sizes.number();
    const uint32_t fields = sizes.number();
    if (body > kMostMessage || fields > kMostMessage) return fail("the bus sends too much");
    const size_t body_at = (kFixed + fields + 7) / 8 * 8;
    while (input_.size() < body_at + body) BELLJAR_TRY(receive());
    Message out;
    out.type = static_cast<Type>(input_[1]);
    Reader header(std::string_view(input_).substr(0, kFixed + fields), kFixed);
    while (!header.at_end()) {
      if (!read_field(header, out)) return fail("the bus sends a header that is none");
    }
    out.body = input_.substr(body_at, body);
    input_.erase(0, body_at + body);
    return out;
  }

  base::Deadline deadline_;
  base::Fd fd_;
  std::string input_;
  uint32_t serial_ = 0;
  std::vector<Message> signals_;
};

Message call_to(const char* destination, const char* path, const char* interface, const char* member) {
  Message out;
  out.destination = destination;
  out.path = path;
  out.interface = interface;
  out.member = member;
  return out;
}

Message to_systemd(const char* member) {
  return call_to("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", member);
}

Message to_bus(const char* member) {
  return call_to("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", member);
}

// name, mode, properties, auxiliary units (org.freedesktop.systemd1(5)).
Message start_scope(const std::string& unit) {
  Message out = to_systemd("StartTransientUnit");
  out.signature = "ssa(sv)a(sa(sv))";
  Writer body;
  body.text(unit);
  body.text("fail");
  body.array(8, [&] {
    const auto property = [&](const char* name, const char* type) {
      body.align(8);
      body.text(name);
      body.signature(type);
    };
    property("Description", "s");
    body.text("the guest of a belljar session");
    property("Delegate", "b");
    body.number(1);
    property("CollectMode", "s");
    body.text("inactive-or-failed");
    property("PIDs", "au");
    body.array(4, [&] { body.number(static_cast<uint32_t>(::getpid())); });
  });
  body.array(8, [] {});
  out.body = std::move(body.bytes());
  return out;
}

}  // namespace

std::string systemd_bus(bool root, std::string_view address, std::string_view runtime_folder) {
  if (root) return "/run/dbus/system_bus_socket";
  constexpr std::string_view kPrefix = "unix:path=";
  if (address.starts_with(kPrefix)) {
    return std::string(address.substr(kPrefix.size(), address.find_first_of(",;") - kPrefix.size()));
  }
  return runtime_folder.starts_with('/') ? std::string(runtime_folder) + "/bus" : std::string();
}

base::Status enter_delegated_scope(const std::string& bus_path, const std::string& name,
                                   const base::Deadline& deadline) {
  Bus bus(deadline);
  BELLJAR_TRY(bus.open(bus_path));
  BELLJAR_TRY(bus.call(to_bus("Hello")));
  Message match = to_bus("AddMatch");
  match.signature = "s";
  Writer rule;
  rule.text(
      "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',"
      "member='JobRemoved'");
  match.body = std::move(rule.bytes());
  BELLJAR_TRY(bus.call(match));
  // Without a subscriber systemd sends none.
  BELLJAR_TRY(bus.call(to_systemd("Subscribe")));
  const std::string unit = name + ".scope";
  BELLJAR_ASSIGN(const std::string started, bus.call(start_scope(unit)));
  const std::string job = Reader(started).text();
  for (;;) {
    BELLJAR_ASSIGN(const Message signal, bus.next_signal());
    if (signal.member != "JobRemoved" || signal.signature != "uoss") continue;
    Reader in(signal.body);
    (void)in.number();
    if (in.text() != job || !in.good()) continue;
    (void)in.text();
    const std::string result = in.text();
    if (result == "done") return {};
    return base::refuse(kOperation, unit, "its job ended as '" + result + "'");
  }
}

}  // namespace belljar::linux
