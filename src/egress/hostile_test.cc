// Inputs meant to be read in two ways, and the one verdict each has. In every case nothing may reach an upstream. Of
// shared/cases/egress.md: E2, E5 and E6.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "egress/test_world.h"

namespace belljar::egress {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

struct Hostile {
  const char* what;
  std::string bytes;  // @ stands for the port of the allowed host ok.example
  int status;
};

std::string with_port(std::string text, uint16_t port) {
  const std::string number = std::to_string(port);
  for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at + number.size())) {
    text.replace(at, 1, number);
  }
  return text;
}

// A request for the allowed host that lacks nothing but what `fields` adds or spoils.
std::string plain(const std::string& fields) {
  return "POST http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n" + fields + "\r\n";
}
std::string connect(const std::string& authority) {
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}
std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: ok.example:@\r\n\r\n";
}

std::vector<Hostile> framing_cases() {
  return {
      {"both Content-Length and Transfer-Encoding",
       plain("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {"the same in the other order", plain("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n") + "0\r\n\r\n", 400},
      {"Content-Length twice, equal", plain("Content-Length: 3\r\nContent-Length: 3\r\n") + "abc", 400},
      {"Content-Length twice, different", plain("Content-Length: 3\r\nContent-Length: 4\r\n") + "abcd", 400},
      {"Content-Length as a list", plain("Content-Length: 3, 3\r\n") + "abc", 400},
      {"Content-Length with a sign", plain("Content-Length: +3\r\n") + "abc", 400},
      {"Content-Length negative", plain("Content-Length: -3\r\n"), 400},
      {"Content-Length in hexadecimal", plain("Content-Length: 0x3\r\n") + "abc", 400},
      {"Content-Length with a blank inside", plain("Content-Length: 1 0\r\n"), 400},
      {"Content-Length empty", plain("Content-Length:\r\n"), 400},
      {"Content-Length beyond 64 bits", plain("Content-Length: 18446744073709551617\r\n"), 400},
      {"Content-Length near 64 bits", plain("Content-Length: 18446744073709551615\r\n"), 400},
      {"a coding before chunked", plain("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 400},
      {"a coding after chunked", plain("Transfer-Encoding: chunked, identity\r\n") + "0\r\n\r\n", 400},
      {"xchunked", plain("Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n", 400},
      {"chunked in quotes", plain("Transfer-Encoding: \"chunked\"\r\n") + "0\r\n\r\n", 400},
      {"chunked with a parameter", plain("Transfer-Encoding: chunked;x=1\r\n") + "0\r\n\r\n", 400},
      {"chunked after a vertical tab",
       plain("Transfer-Encoding: \x0b"
             "chunked\r\n") +
           "0\r\n\r\n",
       400},
      {"Transfer-Encoding twice", plain("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
       400},
      {"Transfer-Encoding empty", plain("Transfer-Encoding:\r\n"), 400},
      {"Transfer-Encoding in HTTP/1.0",
       "POST http://ok.example:@/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a blank before the colon", plain("Transfer-Encoding : chunked\r\n") + "0\r\n\r\n", 400},
      {"a tab before the colon", plain("Content-Length\t: 3\r\n") + "abc", 400},
      {"a blank before the name",
       "POST http://ok.example:@/ HTTP/1.1\r\n Host: evil.example\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a folded value", plain("X: a\r\n b\r\n"), 400},
      {"a value folded by a tab", plain("X: a\r\n\tTransfer-Encoding: chunked\r\n"), 400},
      {"Connection names Host", plain("Connection: Host\r\n"), 400},
      {"Connection names Content-Length", plain("Connection: close, content-length\r\nContent-Length: 3\r\n") + "abc",
       400},
      {"Connection names Transfer-Encoding",
       plain("Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
  };
}

std::vector<Hostile> line_cases() {
  return {
      {"lines that end in LF alone", "GET http://ok.example:@/ HTTP/1.1\nHost: ok.example:@\n\n", 400},
      {"one LF alone", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\nX: y\r\n\r\n", 400},
      {"LF alone before the empty line", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\n", 400},
      {"a CR in a value", plain("X: a\rTransfer-Encoding: chunked\r\n"), 400},
      {"two CRs before LF", plain("X: a\r\r\n"), 400},
      {"a NUL in a value", plain(std::string("X: a\0b\r\n", 8)), 400},
      {"a NUL in a name", plain(std::string("X\0: a\r\n", 7)), 400},
      {"an escape in a value", plain("X: \x1b[2J\r\n"), 400},
      {"a DEL in a value", plain("X: \x7f\r\n"), 400},
      {"a name outside ASCII", plain("X\xc3\xa4: a\r\n"), 400},
      {"a name with a bracket", plain("X[]: a\r\n"), 400},
      {"an empty name", plain(": a\r\n"), 400},
      {"a line without a colon", plain("Transfer-Encoding\r\n"), 400},
      {"an empty first line", "\r\nGET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a blank before the method", " GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"two blanks after the method", "GET  http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a tab after the method", "GET\thttp://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"two blanks before the version", "GET http://ok.example:@/  HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a blank after the version", "GET http://ok.example:@/ HTTP/1.1 \r\nHost: ok.example:@\r\n\r\n", 400},
      {"a blank in the target", "GET http://ok.example:@/a b HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a target outside ASCII", get("http://ok.example:@/\xc3\xa4"), 400},
      {"a method that is no token", "G(T http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"no version", "GET http://ok.example:@/\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a version in lower case", "GET http://ok.example:@/ http/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"HTTP/0.9", "GET http://ok.example:@/ HTTP/0.9\r\n\r\n", 505},
      {"HTTP/1.2", "GET http://ok.example:@/ HTTP/1.2\r\nHost: ok.example:@\r\n\r\n", 505},
      {"HTTP/1.10", "GET http://ok.example:@/ HTTP/1.10\r\nHost: ok.example:@\r\n\r\n", 400},
      {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"a TLS hello to the proxy", std::string("\x16\x03\x01\x00\x05hello", 10), 400},
      {"a SOCKS4 request", std::string("\x04\x01\x01\xbb\x7f\x00\x00\x01\x00", 9), 400},
      {"a request line without end", "GET http://ok.example:@/" + std::string(9000, 'a'), 414},
      {"a field of 100 KB", plain("X: " + std::string(100'000, 'a') + "\r\n"), 431},
      {"a thousand fields", plain([] {
         std::string fields;
         for (int i = 0; i < 1000; ++i) fields += "X: a\r\n";
         return fields;
       }()),
       431},
      {"fields without end", "GET http://ok.example:@/ HTTP/1.1\r\n" + std::string(70'000, 'a'), 431},
  };
}

std::vector<Hostile> host_cases() {
  return {
      {"no Host", "GET http://ok.example:@/ HTTP/1.1\r\n\r\n", 400},
      {"an empty Host", "GET http://ok.example:@/ HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"two Hosts, equal", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\nHost: ok.example:@\r\n\r\n",
       400},
      {"two Hosts, different", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\nHost: evil.example\r\n\r\n",
       400},
      {"Host and hOsT", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@\r\nhOsT: ok.example:@\r\n\r\n", 400},
      {"Host names another", "GET http://ok.example:@/ HTTP/1.1\r\nHost: evil.example:@\r\n\r\n", 400},
      {"Host names another port", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", 400},
      {"Host is a list", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@, evil.example\r\n\r\n", 400},
      {"Host with a user name", "GET http://ok.example:@/ HTTP/1.1\r\nHost: u%40ok.example:@\r\n\r\n", 400},
      {"Host with a path", "GET http://ok.example:@/ HTTP/1.1\r\nHost: ok.example:@/x\r\n\r\n", 400},
      {"CONNECT with another Host", "CONNECT ok.example:@ HTTP/1.1\r\nHost: evil.example:@\r\n\r\n", 400},
      {"CONNECT with another port in Host", "CONNECT ok.example:@ HTTP/1.1\r\nHost: ok.example:1\r\n\r\n", 400},
      {"CONNECT without Host", "CONNECT ok.example:@ HTTP/1.1\r\n\r\n", 400},
      {"CONNECT without port", connect("ok.example"), 400},
      {"CONNECT with an empty port", connect("ok.example:"), 400},
      {"CONNECT with port 0", connect("ok.example:0"), 400},
      {"CONNECT with a port that wraps", connect("ok.example:65979"), 400},
      {"CONNECT with a zero before the port", connect("ok.example:0@"), 400},
      {"CONNECT with a URI", connect("http://ok.example:@/"), 400},
      {"CONNECT with a path", connect("ok.example:@/"), 400},
      {"CONNECT with a body", "CONNECT ok.example:@ HTTP/1.1\r\nHost: ok.example:@\r\nContent-Length: 3\r\n\r\nabc",
       400},
      {"CONNECT with a chunked body",
       "CONNECT ok.example:@ HTTP/1.1\r\nHost: ok.example:@\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a path alone", get("/"), 400},
      {"an asterisk", "OPTIONS * HTTP/1.1\r\nHost: ok.example:@\r\n\r\n", 400},
      {"a https URI", get("https://ok.example:@/"), 400},
      {"another scheme", get("ftp://ok.example:@/"), 400},
      {"no host in the URI", get("http:///x"), 400},
      {"a fragment", get("http://ok.example:@/#x"), 400},
      {"a backslash instead of the path", get("http://ok.example:@\\.evil.example/"), 400},
  };
}

// All of these spell a host in a way that some resolver or library reads as another; `connect` and absolute-form.
std::vector<Hostile> spelling_cases() {
  std::vector<Hostile> out;
  const std::vector<std::pair<const char*, std::string>> hosts = {
      {"percent-encoded", "ok%2eexample"},
      {"percent-encoded NUL", "ok.example%00"},
      {"decimal IPv4", "2130706433"},
      {"hexadecimal IPv4", "0x7f000001"},
      {"octal IPv4", "0177.0.0.1"},
      {"short IPv4", "127.1"},
      {"IPv4 with a zero", "127.0.0.01"},
      {"mapped IPv6", "[::ffff:127.0.0.1]"},
      {"IPv6 with a zone", "[fe80::1%25eth0]"},
      {"IPv6 without brackets' end", "[::1"},
      {"an empty label", "ok..example"},
      {"two trailing dots", "ok.example.."},
      {"a label of 64 letters", std::string(64, 'a') + ".example"},
      {"a name of 300 letters", std::string(150, 'a') + "." + std::string(149, 'b')},
      {"a comma", "ok.example,evil.example"},
      {"a quote", "ok.example'"},
      {"a wildcard", "*.example"},
      {"a semicolon", "ok.example;evil"},
      {"a backslash", "ok.example\\evil"}};
  for (const auto& [what, host] : hosts) {
    out.push_back({what, "CONNECT " + host + ":443 HTTP/1.0\r\n\r\n", 400});
    out.push_back({what, "GET http://" + host + "/ HTTP/1.0\r\n\r\n", 400});
  }
  // Well-formed, and none of our host's: refused as any other host.
  for (const char* host : {"ok.example.evil.example", "xok.example", "a.ok.example", "ok.example-", "127.0.0.1",
                           "[::1]", "localhost", "example"}) {
    out.push_back({host, "CONNECT " + std::string(host) + ":443 HTTP/1.0\r\n\r\n",
                   std::string_view(host) == "ok.example-" ? 400 : 403});
  }
  return out;
}

// Longer first, so that a prefix is no other case: the user-name forms hold an at sign, which @ stands for elsewhere.
const char* const kUserNames[] = {"GET http://user\x40ok.example/ HTTP/1.0\r\n\r\n",
                                  "GET http://ok.example\x40"
                                  "evil.example/ HTTP/1.0\r\n\r\n",
                                  "CONNECT ok.example\x40"
                                  "evil.example:443 HTTP/1.0\r\n\r\n"};

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() {
    world.allow_upstream("ok.example", upstream);
    world.start();
  }

  void expect(const char* what, const std::string& bytes, int status) {
    Peer peer = world.guest();
    peer.send(bytes);
    peer.end_writing();
    const std::string response = peer.read_all();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 " + std::to_string(status) + " ")) << what << ": " << response;
    EXPECT_NE(response.find("\r\nConnection: close\r\n"), std::string::npos) << what;
    EXPECT_EQ(response.find("HTTP/1.1", 1), std::string::npos) << what << ": answered more than once";
  }

  void expect_all(const std::vector<Hostile>& cases) {
    for (const Hostile& each : cases) {
      expect(each.what, with_port(each.bytes, upstream.port()), each.status);
      // Again with more behind it, which nobody may take for a request.
      expect(each.what, with_port(each.bytes + get("http://ok.example:@/"), upstream.port()), each.status);
    }
    world.stop();
    EXPECT_EQ(upstream.connections(), 0);
    EXPECT_TRUE(world.table.asked.empty());
  }

  Upstream upstream{[](Peer& peer) { peer.read(1); }};
  World world;
};

// The control: without its flaw each case would have reached the upstream.
TEST_F(HostileTest, TheFlawlessRequestPasses) {
  for (const std::string& good :
       {plain("Content-Length: 3\r\n") + "abc", plain("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        plain("X: a\tb \xc3\xa4\r\n"), get("http://OK.example.:@/x|y"), connect("ok.example:@")}) {
    const int before = upstream.connections();
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(with_port(good, upstream.port())));
    peer.end_writing();
    peer.read_all();
    // The upstream's thread may take it a moment after the guest is done.
    for (int i = 0; i < 10'000 && upstream.connections() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(upstream.connections(), before + 1) << good;
  }
}

TEST_F(HostileTest, Framing) {
  expect_all(framing_cases());
}
TEST_F(HostileTest, Lines) {
  expect_all(line_cases());
}
TEST_F(HostileTest, HostAndTarget) {
  expect_all(host_cases());
}
TEST_F(HostileTest, Spelling) {
  expect_all(spelling_cases());
}
TEST_F(HostileTest, UserNames) {
  for (const char* bytes : kUserNames) expect(bytes, bytes, 400);
}

// A body that turns out malformed: what came before it was good and went out, nothing after it does.
TEST_F(HostileTest, ABadChunkEndsTheExchange) {
  for (const char* body :
       {"x\r\n", "1;a=b\r\nx\r\n0\r\n\r\n", "1\nx\n0\n\n", "1\r\nxx\r\n0\r\n\r\n", "0x1\r\nx\r\n0\r\n\r\n", "-1\r\n",
        "0\r\nbad\r\n\r\n", "1000000000000000\r\n", " 1\r\nx\r\n0\r\n\r\n"}) {
    expect(body, with_port(plain("Transfer-Encoding: chunked\r\n"), upstream.port()) + body, 400);
  }
}

}  // namespace
}  // namespace belljar::egress
