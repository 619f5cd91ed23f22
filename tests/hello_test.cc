// What of TLS a guest says in a tunnel to an allowed host, and whom it names there, judged from inside the guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"
#include "support/tls_host.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class HelloTest : public ::testing::Test {
 protected:
  HelloTest() : hosts_({"good.test", "other.test", "second.test"}) {}

  void SetUp() override {
    // As in the tests of the agents: root's files are nobody's in the user namespace that plays the host.
    std::filesystem::create_directories(home_ + "/bin");
    for (const char* name : {"belljar", "belljar-guest"}) {
      std::filesystem::copy_file(std::filesystem::path(belljar_program()).parent_path() / name, home_ + "/bin/" + name);
    }
    std::filesystem::create_directories(work_);
    make_certificates(temp_.path(), {"good.test"});
    server_ = std::make_unique<Process>(hosts_.start(tls_server(temp_.path(), TestHosts::kInternet)));
    ASSERT_EQ(server_->read_line(), "ready");
  }
  Output script(const std::string& text, std::vector<std::string> options) {
    options.insert(options.end(), {"--report", temp_ / "report"});
    Command command = sealed_script(work_, text, options);
    if (command.argv[0] == belljar_program()) command.argv[0] = home_ + "/bin/belljar";
    command.env = {{"HOME", home_}, {"PATH", home_ + "/bin:/usr/local/bin:/usr/bin:/bin"}};
    return run(hosts_.as_caller(std::move(command)));
  }

  // A policy by which whatever the two ends speak may pass.
  [[nodiscard]] std::string any_protocol() const {
    write_file(temp_ / "any.toml", "[isolation]\nallow_hosts = [{host = \"good.test:*\", tls = \"any\"}]\n");
    return temp_ / "any.toml";
  }

  TestHosts hosts_;
  TempDir temp_;
  std::string home_ = hosts_.home();
  std::string work_ = home_ + "/work";
  std::unique_ptr<Process> server_;
};

// The bwrap tier has no way for programs that know no proxy.
TEST_F(HelloTest, MustNameTheHostThatWasAskedFor) {
  const std::string direct_good = by_bubblewrap() ? "" : "direct good.test 200\n";
  for (const char* other : {"other.test", "second.test"}) {
    const std::string name = other;
    const Output output = script(hellos("good.test", name, !by_bubblewrap()),
                                 {"--allow-host", "good.test", "--allow-host", "second.test"});
    EXPECT_EQ(output.out, "connect good.test 200\nsocks good.test 200\n" + direct_good + "openssl 1\nconnect " + name +
                              " 000\nsocks " + name + " 000\n" + (by_bubblewrap() ? "" : "direct " + name + " 000\n") +
                              "openssl 0\nopenssl 0\nplain 000\n")
        << output.err;
    EXPECT_THAT(output.err, HasSubstr("refused good.test:443: sni_mismatch"));
    const json report = json::parse(read_text(temp_ / "report"));
    const std::string denials = report["denials"].dump();
    for (const char* reason : {"sni_mismatch", "no_sni", "not_tls"}) EXPECT_THAT(denials, HasSubstr(reason));
    EXPECT_THAT(denials, HasSubstr("the hello names '" + name + "'"));
  }
  // Not a byte of those came to the server.
  const std::string heard = read_text(temp_ / "heard");
  EXPECT_THAT(heard, HasSubstr("good.test\n"));
  for (const char* word : {"other", "second", "something", "None"}) EXPECT_THAT(heard, Not(HasSubstr(word)));
}

// A host that is allowed may run other services than TLS ones. Those skip what they do not know, a hello, and obey the
// rest.
TEST_F(HelloTest, IsFollowedByNothingWhereTheServerSpeaksNoTls) {
  write_file(temp_ / "plain.py",
             "import socket, sys, threading\n"
             "def serve(port, first, answer):\n"
             "  listener = socket.create_server((sys.argv[1], port))\n"
             "  def loop():\n"
             "    while True:\n"
             "      s, _ = listener.accept(); s.settimeout(20)\n"
             "      try:\n"
             "        s.sendall(first)\n"
             "        while data := s.recv(65536):\n"
             "          open('plain', 'ab').write(data); s.sendall(answer)\n"
             "      except OSError: pass\n"
             "      s.close()\n"
             "  threading.Thread(target=loop).start()\n"
             "serve(25, b'220 ready\\r\\n', b'500 what\\r\\n'); serve(6379, b'', b'')\n"
             "serve(11211, b'', b'ERROR\\r\\n'); print('ready')\n");
  Command command{.argv = {"python3", "-u", "plain.py", TestHosts::kInternet}, .cwd = temp_.path()};
  command.err = Stream::null();
  Process plain(hosts_.start(command));
  ASSERT_EQ(plain.read_line(), "ready");
  write_file(
      std::filesystem::path(work_) / "smuggle.py",
      "import os, socket, ssl, time\n"
      "proxy = os.environ['https_proxy'].removeprefix('http://').split(':')\n"
      "out = ssl.MemoryBIO()\n"
      "try: ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname='good.test').do_handshake()\n"
      "except ssl.SSLWantReadError: pass\n"
      "hello = out.read()\n"
      "for port in 25, 6379, 11211:\n"
      "  for pause in 0, 0.2:\n"
      "    s = socket.create_connection(proxy, 20)\n"
      "    s.sendall(b'CONNECT good.test:%d HTTP/1.0\\r\\n\\r\\n' % port)\n"
      "    answer = s.recv(12); s.sendall(hello); time.sleep(pause)\n"
      "    try:\n"
      "      s.sendall(b'smuggled\\r\\n'); s.shutdown(socket.SHUT_WR)\n"
      "      while s.recv(4096): pass\n"
      "    except OSError: pass\n"
      "    print(answer.decode(), end=' ')\n");
  const Output output = script("python3 smuggle.py", {"--allow-host", "good.test:25", "--allow-host", "good.test:6379",
                                                      "--allow-host", "good.test:11211"});
  std::string granted;
  for (int i = 0; i < 6; ++i) granted += "HTTP/1.1 200 ";
  EXPECT_EQ(output.out, granted) << output.err;
  for (const char* port : {"25", "6379", "11211"}) {
    EXPECT_THAT(output.err, HasSubstr("refused good.test:" + std::string(port) + ": not_tls, 2 times"));
  }
  EXPECT_FALSE(read_text(temp_ / "plain").contains("smuggled"));
  // With a rule that says so, it is the owner's to allow.
  const Output any = script("python3 smuggle.py", {"--policy", any_protocol()});
  EXPECT_TRUE(read_text(temp_ / "plain").contains("smuggled")) << any.err;
}

}  // namespace
}  // namespace belljar::testing
