// The hook as an agent meets it: its callbacks reach the control host, and nothing else does.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/pair.h"
#include "support/belljar.h"
#include "support/everything.h"
#include "support/host_service.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A control host on this host's loopback. It answers /redirect with one, and every other path alike.
class ControlHost {
 public:
  ControlHost() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ControlHost() { stop(); }

  [[nodiscard]] std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string url(const std::string& path = "/hook") const { return "http://" + authority() + path; }
  // Every request so far, whole.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  void stop() {
    if (!thread_.joinable()) return;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void serve() {
    for (;;) {
      const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      std::string text = read_request(peer.get());
      const bool redirect = text.contains(" /redirect ");
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::move(text));
      }
      const std::string answer =
          redirect ? "HTTP/1.1 308 Moved\r\nLocation: " + url("/api") + "\r\nContent-Length: 0\r\n\r\n"
                   : "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncontrol";
      [[maybe_unused]] const ssize_t n = ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }
  static std::string read_request(int peer) {
    std::string text;
    std::array<char, 65536> chunk{};
    for (;;) {
      const size_t end = text.find("\r\n\r\n");
      const size_t at = text.find("Content-Length: ");
      const size_t body = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
      if (end != std::string::npos && text.size() >= end + 4 + body) return text;
      const ssize_t n = ::recv(peer, chunk.data(), chunk.size(), 0);
      if (n <= 0) return text;
      text.append(chunk.data(), static_cast<size_t>(n));
    }
  }

  base::Fd listener_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

class HookTest : public ::testing::Test {
 protected:
  static constexpr const char* kToken = "tok3n-tok3n-tok3n";

  Output script(const std::string& text, std::vector<std::string> options = {}, const std::string& path = "/hook") {
    options.insert(options.begin(), {"--hook-url", control_.url(path), "--hook-token-env", "CONTROL_TOKEN"});
    Command command = sealed_script(work_.path(), text, options);
    command.env["CONTROL_TOKEN"] = kToken;
    return run(command);
  }
  TempDir work_;
  ControlHost control_;
};

TEST_F(HookTest, CallbacksReachTheControlHostByEveryWay) {
  const std::string curl = "curl -sS --max-time 20 -H 'Content-Type: application/json' -d '{\"a\":1}' ";
  const Output output = script(curl + "\"$BELLJAR_HOOK_URL\"; echo; " +                    // as a proxy's client
                                   curl + "--noproxy '' " + control_.url() + "; echo; " +  // by its own name
                                   curl + "--noproxy '*' " + control_.url() + "; echo; " + curl +
                                   "--noproxy '*' \"$BELLJAR_HOOK_URL\"; echo; " +  // knowing no proxy
                                   curl + "--socks5-hostname \"${http_proxy#http://}\" \"$BELLJAR_HOOK_URL\"",
                               {"--report", work_ / "end.json"});
  EXPECT_EQ(output.out, "control\ncontrol\ncontrol\ncontrol\ncontrol") << output.err;
  const std::string session = nlohmann::json::parse(read_text(work_ / "end.json"))["session"];
  const std::string wanted = "POST /hook HTTP/1.1\r\nHost: " + control_.authority() +
                             "\r\nContent-Type: application/json\r\nContent-Length: 7\r\nAuthorization: Bearer " +
                             std::string(kToken) + "\r\nBelljar-Session: " + session +
                             "\r\nConnection: close\r\n\r\n{\"a\":1}";
  EXPECT_THAT(control_.requests(), ElementsAre(wanted, wanted, wanted, wanted, wanted));
}

TEST_F(HookTest, TheGuestNeverSeesTheToken) {
  write_file(work_ / "before", "");
  const Output output = script(everything_since("before") + "curl -s -d '{}' \"$BELLJAR_HOOK_URL\"");
  for (const char* text : {"BELLJAR_HOOK_URL=http://hook.belljar/hook\n", kFoundEverywhere, "control"}) {
    EXPECT_TRUE(output.out.contains(text)) << text << output.err;
  }
  EXPECT_FALSE(output.out.contains(kToken));
  EXPECT_THAT(control_.requests().at(0), HasSubstr(kToken));
  EXPECT_EQ(script("true", {"--report", work_ / "end.json"}).code, 0);
  EXPECT_THAT(read_text(work_ / "end.json"), Not(HasSubstr(kToken)));
  EXPECT_THAT(script("true", {"--env", "CONTROL_TOKEN"}).err, HasSubstr("the guest would get it as CONTROL_TOKEN"));
}

// ---- a token of the session's own ----

class HookTokenTest : public HookTest {
 protected:
  Output fresh(const std::string& text, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"--hook-url", control_.url(), "--hook-token-file", file()});
    return run(sealed_script(work_.path(), text, options));
  }
  [[nodiscard]] std::string file() const { return files_ / "token"; }
  // What the control host reads.
  [[nodiscard]] std::string token() const {
    const std::string line = read_text(file());
    return line.substr(0, line.find('\n'));
  }
  TempDir files_;
};

TEST_F(HookTokenTest, IsFreshForEachSessionAndTheControlHostsToRead) {
  EXPECT_EQ(fresh("belljar notify Stop </dev/null").out, "control");
  const std::string first = token();
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), static_cast<std::filesystem::perms>(0600));
  // Before the command runs, so that no callback comes too early.
  Command command = sealed_script(work_.path(), "echo started; cat; belljar notify Stop </dev/null",
                                  {"--hook-url", control_.url(), "--hook-token-file", file()});
  command.in = Stream::pipe("");
  Process process(command);
  ASSERT_EQ(process.read_line(), "started");
  const std::string second = token();
  EXPECT_NE(second, first);
  EXPECT_EQ(process.wait().code, 0);
  ASSERT_EQ(control_.requests().size(), 2U);
  EXPECT_THAT(control_.requests()[0], HasSubstr("\r\nAuthorization: Bearer " + first + "\r\n"));
  EXPECT_THAT(control_.requests()[1], HasSubstr("\r\nAuthorization: Bearer " + second + "\r\n"));
}

TEST_F(HookTokenTest, TheGuestNeverSeesIt) {
  // The token's own file, all that can be read, and what the hook is answered.
  write_file(work_ / "before", "");
  const Output output =
      fresh("cat '" + file() + "' 2>&1; " + everything_since("before") + "curl -s -i -d '{}' \"$BELLJAR_HOOK_URL\"",
            {"--report", files_ / "end.json"});
  ASSERT_EQ(token().size(), 64U);
  for (const char* text : {"BELLJAR_HOOK_URL=", "No such file", kFoundEverywhere, "control"}) {
    EXPECT_TRUE(output.out.contains(text)) << text << output.err;
  }
  EXPECT_FALSE(output.out.contains(token()));
  EXPECT_FALSE(output.err.contains(token()));
  EXPECT_FALSE(read_text(files_ / "end.json").contains(token()));
  EXPECT_THAT(control_.requests().at(0), HasSubstr(token())) << "else this test shows nothing";
  // A plan makes none.
  const std::string before = token();
  const Output plan = run({.argv = {belljar_program(), "plan", "--json", "--hook-url", control_.url(),
                                    "--hook-token-file", file(), "--", "true"},
                           .cwd = work_.path()});
  EXPECT_THAT(plan.out, HasSubstr("\"token_file\": \"" + file()));
  EXPECT_FALSE(plan.out.contains(before));
  EXPECT_EQ(token(), before);
}

TEST_F(HookTokenTest, WhatCouldShowItOrWouldBeLostIsRefusedBeforeAnythingStarts) {
  const auto refused = [&](const std::vector<std::string>& options, const std::string& why) {
    const Output output = run(sealed_script(work_.path(), "echo started", options));
    EXPECT_EQ(output.code, 125) << why;
    EXPECT_EQ(output.out, "") << why;
    EXPECT_THAT(output.err, HasSubstr(why));
  };
  const std::string url = control_.url();
  refused({"--hook-url", url, "--hook-token-file", work_ / "token"}, "the guest would see it, refusing");
  refused({"--hook-url", url, "--hook-token-file", file(), "--read", files_.path()},
          "the guest would see it, refusing");
  refused({"--hook-url", url, "--hook-token-file", "/etc/belljar-token"}, "the guest would see it, refusing");
  refused({"--hook-token-file", file()}, "no URL is named that it would be sent to, refusing");
  refused({"--hook-url", url, "--hook-token-file", file(), "--hook-token-env", "HOME"}, "contradicts");
  refused({"--hook-url", url, "--hook-token-file", file(), "--net", "allow"}, "contradicts");
  EXPECT_FALSE(std::filesystem::exists(file()));
  write_file(file(), "the only copy of something\n");
  std::filesystem::permissions(file(), static_cast<std::filesystem::perms>(0600));
  refused({"--hook-url", url, "--hook-token-file", file()}, "it holds something else, which would be lost, refusing");
  EXPECT_EQ(read_text(file()), "the only copy of something\n");
  write_file(file(), "");
  std::filesystem::permissions(file(), static_cast<std::filesystem::perms>(0640));
  refused({"--hook-url", url, "--hook-token-file", file()}, "others than you may open that file, refusing");
  std::filesystem::remove(file());
  std::filesystem::create_symlink("elsewhere", file());
  refused({"--hook-url", url, "--hook-token-file", file()}, "a link is in the way");
}

TEST_F(HookTest, NothingElseOfThatHostIsReached) {
  const ControlHost other;
  const std::string code = "curl -s -o /dev/null -w '%{http_code} ' --max-time 20 --noproxy '' ";
  const Output output =
      script(code + control_.url() + "; " + code + "-X PUT -d x " + control_.url() + "; " + code + "-d x " +
             control_.url("/") + "; " + code + "-d x " + control_.url("/hook/api") + "; " + code + "-d x '" +
             control_.url("/hook?x") + "'; " + code + "--path-as-is -d x " + control_.url("/hook/../api") + "; " +
             code + "-d x " + other.url() + "; " + code + "-d x http://hook.belljar/api; " + code +
             "-d x http://localhost:" + control_.authority().substr(10) + "/hook; " + code + "-p -d x " +
             control_.url() + "; " + code + "-d x http://hook.belljar:81/hook; true");
  EXPECT_EQ(output.out, "403 403 403 403 403 403 403 403 403 000 403 ") << output.err;
  // Around the proxy: another port of the guest's own loopback, where nobody is; what is no callback on the hook's.
  const Output direct = script("curl -sS --max-time 20 --noproxy '*' -d x " + other.url() +
                               " 2>&1; curl -sS --max-time 20 --noproxy '*' " + control_.url() +
                               " 2>&1; curl -sS --max-time 20 --noproxy '*' -d x " + control_.url("/api") +
                               " 2>&1; curl -sSk --max-time 20 --noproxy '*' https://" + control_.authority() +
                               "/hook 2>&1; "
                               "curl -sS --max-time 20 --noproxy '*' -d x http://hook.belljar/api 2>&1; "
                               "curl -sSk --max-time 20 --noproxy '*' https://hook.belljar:80/hook 2>&1; true");
  EXPECT_THAT(direct.out, AllOf(HasSubstr("onnect"), Not(HasSubstr("control"))));
  // The bwrap tier leads nobody there who knows no proxy.
  for (const char* reason : {"method_not_allowed", "path_not_allowed"}) {
    EXPECT_EQ(direct.out.contains(reason), !by_bubblewrap()) << reason;
  }
  EXPECT_THAT(control_.requests(), IsEmpty());
}

TEST_F(HookTest, WithoutAHookTheSameRequestsFail) {
  const Output output = run(sealed_script(work_.path(),
                                          "echo \"[$BELLJAR_HOOK_URL]\"; command -v belljar; curl -s -o /dev/null -w "
                                          "'%{http_code}' --noproxy '' -d x " +
                                              control_.url() + "; true"));
  EXPECT_EQ(output.out, "[]\n403");
  EXPECT_THAT(control_.requests(), IsEmpty());
}

TEST_F(HookTest, SizeAndRateAreBoundedAndNoRedirectIsFollowed) {
  const std::string code = "curl -s -o /dev/null -w '%{http_code}\\n' --max-time 20 ";
  const Output large = script("head -c 1048577 /dev/zero >b; " + code +
                              "--data-binary @b \"$BELLJAR_HOOK_URL\"; head -c "
                              "1048576 /dev/zero >b; " +
                              code + "--data-binary @b \"$BELLJAR_HOOK_URL\"; " + code +
                              "-H 'Transfer-Encoding: chunked' -d x \"$BELLJAR_HOOK_URL\"");
  EXPECT_EQ(large.out, "413\n200\n411\n") << large.err;
  const Output moved = script(code + "-L --post301 --post302 -d x \"$BELLJAR_HOOK_URL\"", {}, "/redirect");
  EXPECT_EQ(moved.out, "502\n");
  const size_t before = control_.requests().size();
  EXPECT_EQ(before, 2U);
  const Output many = script(
      "curl -s -o /dev/null -d x -w '%{http_code}\\n' \"$BELLJAR_HOOK_URL#[1-700]\" | sort | uniq -c | sed 's/^ *//'");
  EXPECT_THAT(many.out, HasSubstr(" 429\n"));
  // 600 at once, and what a minute brings back meanwhile.
  EXPECT_LT(control_.requests().size() - before, 690U);
  EXPECT_GE(control_.requests().size() - before, 600U);
}

TEST_F(HookTest, AnAgentThatOnlyRunsCommandsNotifies) {
  const Output output = script(
      "belljar notify Stop </dev/null && echo && printf '{\"tool\": \"x\"}' | belljar notify PermissionRequest && echo "
      "&& "
      "belljar notify '{\"type\": \"turn\"}' </dev/null && echo && printf 'two\\nlines\"' | belljar notify Note");
  EXPECT_EQ(output.out, "control\ncontrol\ncontrol\ncontrol") << output.err;
  std::vector<std::string> bodies;
  for (const std::string& request : control_.requests()) {
    EXPECT_THAT(request, HasSubstr(kToken));
    bodies.push_back(request.substr(request.find("\r\n\r\n") + 4));
  }
  EXPECT_THAT(bodies,
              ElementsAre("{\"event\":\"Stop\"}", "{\"event\":\"PermissionRequest\",\"data\":{\"tool\": \"x\"}}",
                          "{\"type\": \"turn\"}", "{\"event\":\"Note\",\"data\":\"two\\u000alines\\\"\"}"));
  control_.stop();
  const Output gone = script("belljar notify Stop </dev/null; echo $?");
  EXPECT_THAT(gone.err, HasSubstr("belljar notify: the hook answers 502"));
  EXPECT_THAT(gone.out, HasSubstr("125"));
}

// ---- https ----

// A control host that speaks TLS, as `localhost`, and writes each request down.
class TlsHookTest : public HookTest {
 protected:
  TlsHookTest() {
    make_certificates(files_.path(), {"localhost"});
    Command command{.argv = {"python3", "-u", "-c",
                             "import http.server as h, ssl, sys\n"
                             "class S(h.BaseHTTPRequestHandler):\n"
                             "  def do_POST(s):\n"
                             "    body = s.rfile.read(int(s.headers['Content-Length'])).decode()\n"
                             "    print(s.path, s.headers['Host'], s.headers['Authorization'], len(body), body[:20], "
                             "file=open('log', 'a'))\n"
                             "    s.send_response(200); s.send_header('Content-Length', str(len(body) + 7)); "
                             "s.end_headers()\n"
                             "    s.wfile.write(b'control' + body.encode())\n"
                             "  def log_message(s, *a): pass\n"
                             "c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')\n"
                             "x = h.ThreadingHTTPServer(('127.0.0.1', 0), S); "
                             "x.socket = c.wrap_socket(x.socket, server_side=True)\n"
                             "print(x.server_address[1]); x.serve_forever()"},
                    .cwd = files_.path()};
    server_ = std::make_unique<Process>(command);
    port_ = server_->read_line().value_or("");
  }
  // `text` in a guest whose hook is there.
  Output secure(const std::string& host, const std::string& text, bool trusted = true) {
    Command command =
        sealed_script(work_.path(), text,
                      {"--hook-url", "https://" + host + ":" + port_ + "/hook", "--hook-token-env", "CONTROL_TOKEN"});
    command.env["CONTROL_TOKEN"] = kToken;
    command.env["SSL_CERT_FILE"] = trusted ? std::optional(files_ / "ca.pem") : std::nullopt;
    return run(command);
  }
  [[nodiscard]] std::string log() const { return read_text(files_ / "log"); }

  static constexpr const char* kPost = "curl -s --max-time 20 -w ' %{http_code}\\n' -d event \"$BELLJAR_HOOK_URL\"";
  TempDir files_;
  std::unique_ptr<Process> server_;
  std::string port_;
};

TEST_F(TlsHookTest, IsRelayedInTls) {
  const Output output = secure("localhost", std::string(kPost) +
                                                "; head -c 1000000 /dev/zero | tr '\\0' x >b; curl -s --max-time 20 "
                                                "--data-binary @b \"$BELLJAR_HOOK_URL\" | wc -c; "
                                                "belljar notify Stop </dev/null; env | grep -c tok3n");
  EXPECT_EQ(output.out, "controlevent 200\n1000007\ncontrol{\"event\":\"Stop\"}0\n") << output.err;
  const std::string head = "/hook localhost:" + port_ + " Bearer " + kToken;
  EXPECT_THAT(log(), AllOf(HasSubstr(head + " 5 event\n"), HasSubstr(head + " 1000000 xxxx")));
  // Many at once, each a connection of its own.
  const Output many = secure("localhost",
                             "for i in $(seq 20); do curl -s --max-time 20 -d $i \"$BELLJAR_HOOK_URL\" >$i & done; "
                             "wait; for i in $(seq 20); do cat $i; echo; done");
  std::string expected;
  for (int i = 1; i <= 20; ++i) expected += "control" + std::to_string(i) + "\n";
  EXPECT_EQ(many.out, expected) << many.err;
}

TEST_F(TlsHookTest, NothingIsSaidToWhoCannotProveItself) {
  // The certificate is for localhost; by an authority that only this test knows.
  EXPECT_THAT(secure("127.0.0.1", kPost).out, AllOf(HasSubstr("IP address mismatch"), HasSubstr(" 502\n")));
  EXPECT_THAT(secure("localhost", kPost, false).out,
              AllOf(HasSubstr("no TLS with the control host"), HasSubstr("certificate"), HasSubstr(" 502\n")));
  EXPECT_EQ(log(), "");
  // A server without TLS, and none.
  const HostService plain;
  port_ = plain.port();
  EXPECT_THAT(secure("localhost", kPost).out, HasSubstr(" 502\n"));
  control_.stop();
  port_ = control_.authority().substr(10);
  EXPECT_THAT(secure("localhost", kPost).out, HasSubstr(" 502\n"));
}

TEST_F(TlsHookTest, NoOtherWayLeadsThere) {
  const std::string code = "curl -sk -o /dev/null -w '%{http_code} ' --max-time 20 -d x ";
  const Output output = secure("localhost", code + "-p --noproxy '' https://localhost:" + port_ + "/hook; " + code +
                                                "--noproxy '' http://localhost:" + port_ + "/hook; " + code +
                                                "--noproxy '*' https://localhost:" + port_ + "/hook; " + code +
                                                "http://hook.belljar/api; " + code + "https://hook.belljar/hook; true");
  EXPECT_THAT(output.out, Not(HasSubstr("200"))) << output.err;
  EXPECT_EQ(log(), "");
}

TEST_F(TlsHookTest, WithoutAuthoritiesNothingStarts) {
  std::filesystem::remove(files_ / "ca.pem");
  const Output output = secure("localhost", "echo started");
  EXPECT_EQ(output.code, 125);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr("no certificates of authorities could be read, refusing"));
}

TEST_F(TlsHookTest, ItsProcessEndsWithTheLauncher) {
  // No other test's.
  const std::string host = "of-" + std::to_string(::getpid()) + ".localhost";
  Command command =
      sealed_script(work_.path(), "echo started; exec sleep 600", {"--hook-url", "https://" + host + "/x"});
  command.env["SSL_CERT_FILE"] = files_ / "ca.pem";
  Process process(command);
  ASSERT_EQ(process.read_line(), "started");
  const std::string line = "/belljar-tls " + host;
  ASSERT_THAT(processes_with(line), Not(IsEmpty()));
  process.signal(SIGKILL);
  (void)process.wait();
  EXPECT_TRUE(eventually([&] { return processes_with(line).empty(); }));
}

// Each connection over TLS is a process of the host, which no limit of the guest's counts.
class StalledHookTest : public TlsHookTest {
 protected:
  // The control host makes the handshake and reads nothing.
  StalledHookTest() {
    Command command{.argv = {"python3", "-u", "-c",
                             "import socket, ssl\n"
                             "c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')\n"
                             "l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)\n"
                             "l.bind(('127.0.0.1', 0)); l.listen(1000); print(l.getsockname()[1])\n"
                             "kept = []\n"
                             "while True:\n"
                             "  try: kept.append(c.wrap_socket(l.accept()[0], server_side=True))\n"
                             "  except OSError: pass\n"},
                    .cwd = files_.path()};
    command.err = Stream::null();
    stalled_ = std::make_unique<Process>(command);
    port_ = stalled_->read_line().value_or("");
  }
  // A guest that sends `count` requests of which `bytes` of the body come, says `sent`, and does what `then` is.
  Process start(int count, size_t bytes, const std::string& then) {
    write_file(work_ / "stall.py",
               "import os, socket, time\n"
               "proxy = os.environ['http_proxy'].removeprefix('http://').split(':')\n"
               "kept = []\n"
               "for i in range(" +
                   std::to_string(count) +
                   "):\n"
                   "  s = socket.create_connection(proxy); s.settimeout(1); kept.append(s)\n"
                   "  s.sendall(b'POST ' + os.environ['BELLJAR_HOOK_URL'].encode() + b' HTTP/1.1\\r\\nHost: "
                   "hook.belljar\\r\\n'\n"
                   "            b'Content-Length: 1048576\\r\\n\\r\\n')\n"
                   "  try: s.sendall(b'x' * " +
                   std::to_string(bytes) +
                   ")\n"
                   "  except OSError: pass\n"
                   "  " +
                   then +
                   "\n"
                   "print('sent', flush=True); time.sleep(600)\n");
    Command command =
        sealed_script(work_.path(), "exec python3 stall.py", {"--hook-url", "https://localhost:" + port_ + "/hook"});
    command.env["SSL_CERT_FILE"] = files_ / "ca.pem";
    return Process(command);
  }
  // Processes of this name below `pid`.
  static std::vector<pid_t> relays_below(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    std::vector<pid_t> out;
    if (read_text(folder + "/comm") == "belljar-tls\n") out.push_back(pid);
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
      std::istringstream children(read_text(task.path() / "children"));
      for (pid_t child = 0; children >> child;) std::ranges::copy(relays_below(child), std::back_inserter(out));
    }
    return out;
  }
  std::unique_ptr<Process> stalled_;
};

// Of a callback that has no turn when the guest has left: the buffers on the way are full, and nobody will hear an
// answer.
TEST_F(StalledHookTest, WhatNobodyWaitsForIsOver) {
  base::Fd ours;
  base::Fd theirs;
  ASSERT_TRUE(base::make_pair(SOCK_SEQPACKET, ours, theirs));
  Command command{.argv = {std::filesystem::path(belljar_program()).parent_path() / "belljar-tls", "localhost"}};
  command.env["SSL_CERT_FILE"] = files_ / "ca.pem";
  command.in = Stream::from(theirs.get());
  Process program(command);
  theirs.reset();
  std::array<char, 256> word{};
  ASSERT_EQ(::recv(ours.get(), word.data(), word.size(), 0), ssize_t{256});
  ASSERT_STREQ(word.data(), "");

  base::Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int small = 4096;  // over loopback a usual one takes all that a callback may have
  ASSERT_EQ(::setsockopt(server.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(port_)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  base::Fd clear;
  base::Fd its_clear;
  ASSERT_TRUE(base::make_pair(SOCK_STREAM, clear, its_clear));
  const std::array<int, 2> given{server.get(), its_clear.get()};
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof given)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof given);
  std::memcpy(CMSG_DATA(header), given.data(), sizeof given);
  ASSERT_EQ(::sendmsg(ours.get(), &message, MSG_NOSIGNAL), 1);
  server.reset();
  its_clear.reset();
  ASSERT_TRUE(eventually([&] { return relays_below(program.pid()).size() == 2; }));
  const std::string much(size_t{1} << 20U, 'x');
  // Until nothing more is taken for a while.
  pollfd takes{clear.get(), POLLOUT, 0};
  while (::poll(&takes, 1, 300) > 0) {
    if (::send(clear.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
  }
  clear.reset();
  EXPECT_TRUE(eventually([&] { return relays_below(program.pid()).size() == 1; }));
  program.signal(SIGKILL);
  (void)program.wait();
}

TEST_F(StalledHookTest, AGuestHasFewAtATime) {
  Process process = start(150, 0, "pass");
  ASSERT_EQ(process.read_line(), "sent");
  EXPECT_TRUE(eventually([&] { return relays_below(process.pid()).size() > 2; }));
  EXPECT_LE(relays_below(process.pid()).size(), 33U);
  process.signal(SIGKILL);
  (void)process.wait();
}

TEST_F(HookTest, WhatCannotBeRelayedIsRefusedBeforeAnythingStarts) {
  EXPECT_THAT(run(sealed(work_.path(), {"true"}, {"--hook-url", "ftp://control.test/hook"})).err,
              HasSubstr("not an http URL"));
  EXPECT_THAT(run(sealed(work_.path(), {"true"}, {"--hook-url", "http://127.0.0.1/a/../b"})).err,
              HasSubstr("can be read in two ways"));
  EXPECT_THAT(
      run(sealed(work_.path(), {"true"}, {"--hook-token-env", "NO_SUCH_TOKEN", "--hook-url", control_.url()})).err,
      HasSubstr("that variable is not set, refusing"));
}

}  // namespace
}  // namespace belljar::testing
