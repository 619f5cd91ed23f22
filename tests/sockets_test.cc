// Sockets and FIFOs of the host below what a guest gets, and what the caller's own 0, 1 and 2 may be.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A program of the host that listens at `path`.
base::Fd listen_at(const std::string& path) {
  base::Fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof name.sun_path);
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::bind(out.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0) << path;
  EXPECT_EQ(::listen(out.get(), 8), 0);
  EXPECT_EQ(::chmod(path.c_str(), 0777), 0);
  return out;
}

bool was_called(const base::Fd& listener) {
  return base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid();
}

class SocketsTest : public ::testing::Test {
 protected:
  SocketsTest() {
    for (const char* name : {"a/deep", ".git/modules/sub", ".git/objects", ".vscode/deep", "a/.husky"})
      fs::create_directories(work_ / name);
    fs::permissions(data_.path(), fs::perms::all);
    write_file(work_ / "call.pl",
               "use Socket; for (@ARGV) { socket(S, AF_UNIX, SOCK_STREAM, 0); "
               "print \"reached $_\\n\" if connect(S, pack_sockaddr_un($_)); }");
  }
  Output call(const std::vector<std::string>& paths, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{"perl", "call.pl"};
    words.insert(words.end(), paths.begin(), paths.end());
    return run(sealed(work_.path(), words, options));
  }
  TempDir work_;
  TempDir data_;
};

TEST_F(SocketsTest, OfTheHostAreNotReached) {
  const std::vector<std::string> paths{work_ / "s",
                                       work_ / "a/deep/s",
                                       work_ / ".git/s",
                                       work_ / ".vscode/s",
                                       work_ / ".git/modules/sub/s",
                                       work_ / ".git/objects/s",
                                       work_ / ".vscode/deep/s",
                                       work_ / "a/.husky/s",
                                       data_ / "s"};
  std::vector<base::Fd> listeners;
  listeners.reserve(paths.size());
  for (const std::string& path : paths) listeners.push_back(listen_at(path));
  EXPECT_EQ(call(paths, {"--read", data_.path()}).out, "");
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_FALSE(was_called(listeners[i])) << paths[i];
  // Without the seal each is there.
  std::vector<std::string> words{"perl", work_ / "call.pl"};
  words.insert(words.end(), paths.begin(), paths.end());
  (void)run({.argv = words});
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_TRUE(was_called(listeners[i])) << paths[i];
}

TEST_F(SocketsTest, AreNotUncoveredByMovingOrLinking) {
  const base::Fd listener = listen_at(work_ / "a/deep/s");
  const Output output = run(sealed_script(
      work_.path(),
      "mv a/deep/s x; rm -f a/deep/s; ln a/deep/s hard; ln -s a/deep/s soft; mv a b; cp -a b/deep/s copy; "
      "perl call.pl x hard soft copy b/deep/s a/deep/s; mv b/deep c; mkdir -p b/deep; perl call.pl c/s"));
  EXPECT_EQ(output.out, "") << output.err;
  EXPECT_FALSE(was_called(listener));
}

TEST_F(SocketsTest, ThatThePolicyNamesAreReachedAndTold) {
  const base::Fd inside = listen_at(work_ / "s");
  const base::Fd outside = listen_at(data_ / "s");
  const Output output = call({"s", data_ / "s"}, {"--read", "s", "--read", data_ / "s"});
  EXPECT_EQ(output.out, "reached s\nreached " + data_ / "s" + "\n") << output.err;
  EXPECT_TRUE(was_called(inside));
  EXPECT_TRUE(was_called(outside));
  EXPECT_THAT(output.err, HasSubstr("is a socket of the host"));
}

TEST_F(SocketsTest, OfAnEngineAreRefusedWhateverThePolicySays) {
  const base::Fd engine = listen_at(data_ / "docker.sock");
  const Output named = call({data_ / "docker.sock"}, {"--read", data_ / "docker.sock"});
  EXPECT_EQ(named.code, 125);
  EXPECT_THAT(named.err, HasSubstr("who reaches a container engine is root of the host, refusing"));
  EXPECT_EQ(call({data_ / "docker.sock"}, {"--read", data_.path()}).out, "");
  EXPECT_FALSE(was_called(engine));
}

TEST_F(SocketsTest, AndFifosOfTheHostTakeAndGiveNothing) {
  for (const std::string& path :
       {work_ / "fifo", work_ / ".git/modules/sub/fifo", work_ / ".vscode/fifo", data_ / "fifo"}) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    const base::Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const Output output = run(sealed_script(
        work_.path(), "test -p " + path + " && echo fifo; echo evil >" + path + "; test -e " + path + " && echo hidden",
        {"--read", data_.path()}));
    EXPECT_EQ(output.out, "hidden\n") << output.err;
    std::string got(16, '\0');
    EXPECT_LE(::read(reader.get(), got.data(), got.size()), 0);
  }
}

// A guest's own work as before.
TEST_F(SocketsTest, OfTheGuestsOwnWork) {
  const Output output = run(sealed_script(
      work_.path(),
      "perl -MSocket -e 'for (@ARGV) { socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($_)) or die; "
      "listen(S, 1) or die; socket(C, AF_UNIX, SOCK_STREAM, 0); connect(C, pack_sockaddr_un($_)) or die; "
      "print \"mine\\n\" }' own /tmp/own; mkfifo f; echo x >f & cat f"));
  EXPECT_EQ(output.out, "mine\nmine\nx\n") << output.err;
}

// ---- the caller's 0, 1 and 2 ----

class StdioTest : public ::testing::Test {
 protected:
  // 0, 1, 2 of the command, and what became of it.
  Output with(int in, int out, const std::string& script) {
    Command command = sealed_script(work_.path(), script);
    if (in >= 0) command.in = Stream::from(in);
    if (out >= 0) command.out = Stream::from(out);
    return run(command);
  }
  TempDir work_;
  TempDir elsewhere_;
};

// The descriptor's own powers do not go in: a log that is open for reading too cannot be read back, nor rewound, nor
// another file of its folder be opened by way of /proc.
TEST_F(StdioTest, AFileOfTheCallersIsRelayedAndNoMore) {
  write_file(elsewhere_ / "log", "what was there\n");
  const base::Fd log(::open((elsewhere_ / "log").c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  const Output output = with(-1, log.get(),
                             "perl -MFcntl -e 'sysseek(STDOUT, 0, 0) and print \"rewound\"; "
                             "sysopen(F, \"/proc/self/fd/1\", O_RDONLY | O_NONBLOCK) "
                             "and sysread(F, $b, 3) and print \"read back $b\"' </dev/null; "
                             "test -f /proc/self/fd/1 && echo a file; echo first; echo last");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(read_text(elsewhere_ / "log"), "what was there\nfirst\nlast\n");
}

TEST_F(StdioTest, AppendingAppends) {
  write_file(elsewhere_ / "log", "before\n");
  const base::Fd log(::open((elsewhere_ / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const base::Fd other(::open((elsewhere_ / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  (void)with(-1, log.get(), "echo one");
  ASSERT_EQ(::write(other.get(), "two\n", 4), 4);
  (void)with(-1, log.get(), "echo three");
  EXPECT_EQ(read_text(elsewhere_ / "log"), "before\none\ntwo\nthree\n");
}

TEST_F(StdioTest, AFileIsReadFromWhereTheCallerIs) {
  write_file(elsewhere_ / "in", "first\nsecond\n");
  const base::Fd in(::open((elsewhere_ / "in").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(in.get(), 6, SEEK_SET), 6);
  EXPECT_EQ(with(in.get(), -1, "cat; test -p /proc/self/fd/0 && echo a pipe").out, "second\na pipe\n");
}

TEST_F(StdioTest, ASocketOfTheCallersIsRelayedAndNoMore) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const base::Fd ours(pair[0]);
  base::Fd theirs(pair[1]);
  ASSERT_EQ(::write(ours.get(), "hello\n", 6), 6);
  ASSERT_EQ(::shutdown(ours.get(), SHUT_WR), 0);
  const Output output = with(theirs.get(), theirs.get(),
                             "cat; for f in 0 1; do test -S /proc/self/fd/$f && echo a socket; done; echo end");
  theirs.reset();
  EXPECT_EQ(output.code, 0) << output.err;
  std::string got(64, '\0');
  const ssize_t n = ::read(ours.get(), got.data(), got.size());
  ASSERT_GE(n, 0);
  EXPECT_EQ(got.substr(0, static_cast<size_t>(n)), "hello\nend\n");
}

// From a folder's descriptor the whole host is one openat(2) away.
TEST_F(StdioTest, AFolderIsRefused) {
  const base::Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const int number : {0, 1, 2}) {
    Command command = sealed_script(work_.path(), "echo started >started");
    (number == 0 ? command.in : number == 1 ? command.out : command.err) = Stream::from(folder.get());
    const Output output = run(command);
    EXPECT_EQ(output.code, 125) << number;
    EXPECT_FALSE(fs::exists(work_ / "started"));
    if (number != 2) {
      EXPECT_THAT(output.err, HasSubstr("it is a folder, refusing"));
    }
  }
}

}  // namespace
}  // namespace belljar::testing
