#include "egress/audit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

// A file without a name.
base::Fd new_file() {
  base::Fd file(::memfd_create("audit", MFD_CLOEXEC));
  ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

// The same file, opened anew: with a lock and an offset of its own.
base::Fd again(const base::Fd& file) {
  return base::Fd(::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
}

std::string text_of(const base::Fd& file) {
  std::string out(1U << 20U, '\0');
  const ssize_t got = ::pread(file.get(), out.data(), out.size(), 0);
  out.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return out;
}

std::vector<nlohmann::json> lines_of(const base::Fd& file) {
  std::vector<nlohmann::json> out;
  const std::string text = text_of(file);
  for (const std::string_view line : base::split(text, '\n')) {
    if (!line.empty()) out.push_back(nlohmann::json::parse(line));
  }
  return out;
}

void set_text(const base::Fd& file, const std::string& text) {
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  ASSERT_TRUE(base::write_all(file.get(), text));
}

// A chain of three sessions' lines.
AuditEnd write_chain(const base::Fd& file) {
  AuditEnd end;
  for (const char* session : {"s1", "s2", "s3"}) {
    auto audit = Audit::start({again(file), session, true, false});
    EXPECT_TRUE(audit) << audit.error().message();
    (*audit)->add({.verdict = "deny", .reason = "host_not_allowed", .host = "a.test", .port = 443});
    (*audit)->add({.connection = 1, .verdict = "allow", .rule = "allow:b.test", .host = "b.test", .port = 443});
    end = (*audit)->close();
  }
  return end;
}

TEST(Audit, AChainGoesOnFromSessionToSession) {
  const base::Fd file = new_file();
  const AuditEnd end = write_chain(file);
  const auto verified = verify_audit(again(file).get(), "f");
  ASSERT_TRUE(verified) << verified.error().message();
  EXPECT_EQ(verified->lines, 12U);
  EXPECT_EQ(verified->chain, end.chain);
  EXPECT_EQ(lines_of(file)[1]["host"], "a.test");
}

TEST(Audit, EveryChangeBreaksTheChain) {
  const base::Fd file = new_file();
  write_chain(file);
  const std::string good = text_of(file);
  const auto complaint = [&](const std::string& text) {
    set_text(file, text);
    const auto verified = verify_audit(again(file).get(), "f");
    return verified ? std::string("good") : verified.error().message();
  };
  const size_t second = good.find('\n') + 1;
  const size_t third = good.find('\n', second) + 1;
  std::string changed = good;
  changed.replace(changed.find("a.test"), 1, "z");
  EXPECT_TRUE(complaint(changed).contains("verify 'f': line 2 does not follow")) << complaint(changed);
  EXPECT_TRUE(complaint(good.substr(0, second) + good.substr(third)).contains("line 2 does not follow")) << "taken out";
  EXPECT_TRUE(complaint(good.substr(second)).contains("line 1 does not follow")) << "the beginning is missing";
  EXPECT_TRUE(complaint(good.substr(0, third) + good.substr(second)).contains("line 3 does not follow")) << "twice";
  EXPECT_TRUE(
      complaint(good.substr(0, second) + "{}\n" + good.substr(second)).contains("line 2 is not part of a chain"));
  EXPECT_TRUE(complaint(good.substr(0, good.size() - 1)).contains("cut short"));
  EXPECT_TRUE(complaint("").contains("holds no line"));
  EXPECT_EQ(complaint(good), "good");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string one = good;
    one[i] = static_cast<char>(one[i] ^ 1);
    ASSERT_NE(complaint(one), "good") << "byte " << i;
  }
}

TEST(Audit, AChainHasOneWriterAndAWholeEnd) {
  const base::Fd file = new_file();
  auto first = Audit::start({again(file), "s", true, false});
  ASSERT_TRUE(first);
  EXPECT_FALSE(Audit::start({again(file), "s", true, false}));
  EXPECT_FALSE(Audit::start({again(file), "s", false, false}));
  first->reset();
  EXPECT_TRUE(Audit::start({again(file), "s", false, false}));
  const auto broken = Audit::start({again(file), "s", true, false});
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message().contains("its last line is not the whole end of a chain"));
}

// E14 of shared/cases/egress.md: a disk that is full, as a limit on the size of files (setrlimit(2): EFBIG, with
// SIGXFSZ ignored).
class FullDisk {
 public:
  explicit FullDisk(rlim_t size) {
    before_action_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{size, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_action_);
  }

 private:
  rlimit before_{};
  void (*before_action_)(int) = nullptr;
};

TEST(Audit, AFullDiskIsCountedAndLeavesNoHalfLine) {
  const base::Fd file = new_file();
  AuditEnd end;
  {
    auto audit = Audit::start({again(file), "s", true, false});
    ASSERT_TRUE(audit);
    const FullDisk full(text_of(file).size() + 10);
    (*audit)->add({.verdict = "deny", .host = "a.test"});
    end = (*audit)->close();
    EXPECT_FALSE((*audit)->failed()) << "not required";
  }
  EXPECT_EQ(end.error, EFBIG);
  EXPECT_GE(end.lost, 1U);
  const auto verified = verify_audit(again(file).get(), "f");
  ASSERT_TRUE(verified) << verified.error().message();
  EXPECT_EQ(verified->lines, 1U);
}

TEST(Audit, WhenLinesAreRequiredAFullDiskAllowsNothingMore) {
  const base::Fd file = new_file();
  auto audit = Audit::start({again(file), "s", false, true});
  ASSERT_TRUE(audit);
  Upstream upstream([](Peer& peer) { peer.read_all(); });
  World world;
  world.options.audit = audit->get();
  world.allow_upstream("ok.example", upstream);
  world.start();
  const FullDisk full(text_of(file).size());
  {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send("CONNECT no.example:443 HTTP/1.1\r\nHost: no.example:443\r\n\r\n"));
    EXPECT_TRUE(peer.read_all().contains("host_not_allowed"));
  }
  pollfd wait{(*audit)->failure_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
  const std::string authority = upstream.at("ok.example");
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"));
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 503 Service Unavailable (belljar: audit_failed)"));
  EXPECT_EQ(upstream.connections(), 0);
  world.stop();
}

// A flood of them is no way to fill a disk, nor to leave out what was allowed.
TEST(Audit, CountsRefusalsBeyondWhatAPersonReads) {
  const base::Fd file = new_file();
  auto audit = Audit::start({again(file), "s", true, false});
  ASSERT_TRUE(audit);
  constexpr uint64_t kFlood = Audit::kRefusals * 10;
  for (uint64_t i = 0; i < kFlood; ++i) (*audit)->add({.verdict = i % 2 == 0 ? "deny" : "error", .host = "no.test"});
  (*audit)->add({.connection = 1, .verdict = "allow", .host = "ok.test"});
  for (uint64_t i = 0; i < kFlood; ++i) (*audit)->add({.verdict = "deny", .host = "no.test"});
  const AuditEnd end = (*audit)->close();
  EXPECT_EQ(end.lost, 0U);
  std::map<std::string, uint64_t> events;
  uint64_t unlisted = 0;
  for (const auto& line : lines_of(file)) {
    ++events[line["event"].get<std::string>() + " " + line.value("host", "")];
    if (line["event"] == "unlisted") unlisted += line["verdicts"].get<uint64_t>();
  }
  EXPECT_EQ(events["verdict ok.test"], 1U);
  EXPECT_GE(events["verdict no.test"], Audit::kRefusals);
  EXPECT_EQ(events["verdict no.test"] + unlisted, 2 * kFlood);
  EXPECT_EQ(unlisted, end.unlisted);
  EXPECT_GE(events["unlisted "], 2U) << "before what was allowed, and at the end";
  EXPECT_TRUE(verify_audit(again(file).get(), "f"));
}

TEST(Audit, OneLineForEveryVerdictAndOneForTheEnd) {
  const base::Fd file = new_file();
  auto audit = Audit::start({again(file), "the-session", false, false});
  ASSERT_TRUE(audit);
  const std::string answer = net::testing::server_hello();
  Upstream upstream([&](Peer& peer) {
    peer.read(net::testing::hello_for("ok.example").size());
    peer.send(answer);
  });
  World world;
  world.options.audit = audit->get();
  world.allow_upstream("ok.example", upstream);
  policy::give_ids(world.options.rules);
  world.start();
  const std::string hello = net::testing::hello_for("ok.example");
  {
    Peer peer = world.tunnel(upstream.at("ok.example"));
    ASSERT_TRUE(peer.send(hello));
    peer.end_writing();
    EXPECT_EQ(peer.read_all(), answer);
  }
  for (int i = 0; i < 2; ++i) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send("GET http://no.example/\" HTTP/1.1\r\nHost: no.example\r\n\r\n"));
    peer.read_all();
  }
  world.stop();
  world.proxy.reset();
  (*audit)->close();
  const auto lines = lines_of(file);
  std::vector<std::string> events;
  for (const auto& line : lines) {
    EXPECT_EQ(line["session"], "the-session");
    events.push_back(line["event"].get<std::string>() + " " + line.value("verdict", ""));
  }
  ASSERT_EQ(events.size(), 6U) << text_of(file);
  const auto find = [&](const std::string& event) -> nlohmann::json {
    for (const auto& line : lines) {
      if (line["event"].get<std::string>() + " " + line.value("verdict", "") == event) return line;
    }
    return {};
  };
  const auto allow = find("verdict allow");
  EXPECT_EQ(allow["rule"], "allow:ok.example:" + std::to_string(upstream.port()));
  EXPECT_EQ(allow["method"], "CONNECT");
  EXPECT_EQ(allow["host"], "ok.example");
  EXPECT_EQ(allow["port"], upstream.port());
  EXPECT_EQ(allow["address"], "127.0.0.1");
  const auto end = find("end ");
  EXPECT_EQ(end["connection"], allow["connection"]);
  EXPECT_EQ(end["bytes_up"], hello.size());
  EXPECT_EQ(end["bytes_down"], answer.size());
  EXPECT_TRUE(end.contains("duration_ms"));
  const auto deny = find("verdict deny");
  EXPECT_EQ(deny["host"], "no.example") << "one line each, equal or not";
  EXPECT_EQ(std::count(events.begin(), events.end(), "verdict deny"), 2);
}

// Who speaks SOCKS, or knows no proxy, cannot be told what would let it through; whoever reads the file is.
TEST(Audit, NamesTheRemedyWhateverWayWasTaken) {
  const base::Fd file = new_file();
  auto audit = Audit::start({again(file), "the-session", false, false});
  ASSERT_TRUE(audit);
  World world;
  world.options.audit = audit->get();
  std::atomic<bool> redirected = false;
  world.options.destination_of = [&](int) -> std::optional<Destination> {
    if (!redirected) return {};
    return Destination{"direct.example", 8443};
  };
  world.start();
  Peer socks = world.guest();
  using namespace std::string_literals;
  ASSERT_TRUE(socks.send("\x05\x01\x00\x05\x01\x00\x03\x0dsocks.example\x00\x16"s));
  socks.read_all();
  redirected = true;
  Peer direct = world.guest();
  direct.read_all();
  world.stop();
  world.proxy.reset();
  (*audit)->close();
  std::map<std::string, nlohmann::json> denied;
  for (const auto& line : lines_of(file)) {
    if (line.value("verdict", "") == "deny") denied[line["host"]] = line;
  }
  EXPECT_EQ(denied["socks.example"]["method"], "SOCKS5");
  EXPECT_EQ(denied["socks.example"]["remedy"], "--allow-host socks.example:22");
  EXPECT_EQ(denied["direct.example"]["method"], "DIRECT");
  EXPECT_EQ(denied["direct.example"]["remedy"], "--allow-host direct.example:8443");
}

}  // namespace
}  // namespace belljar::egress
