#include "tiers/docker/storage/helpers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/tar.h"
#include "base/temp_tree.h"

namespace belljar::tiers::docker::storage {
namespace {

std::string archive_of(const std::string& name, const std::string& content) {
  std::string out;
  base::append_tar_header(out, {.path = name, .mode = 0644, .size = content.size()});
  out += content;
  out += base::tar_padding(content.size());
  base::append_tar_end(out);
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string content_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

bool within_ten_seconds(const std::function<bool()>& done) {
  for (int i = 0; i < 10'000; ++i, ::poll(nullptr, 0, 1)) {
    if (done()) return true;
  }
  return false;
}

// `first` bytes; the rest when the reader has taken these and has nothing.
void write_in_two(const std::string& fifo, const std::string& text, size_t first) {
  base::Fd out;
  const auto opens = [&] {
    out = base::Fd(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return static_cast<bool>(out);
  };
  ASSERT_TRUE(within_ten_seconds(opens)) << "nobody reads it";
  ASSERT_EQ(::write(out.get(), text.data(), first), static_cast<ssize_t>(first));
  const auto taken = [&] {
    int left = 1;
    return ::ioctl(out.get(), FIONREAD, &left) == 0 && left == 0;
  };
  ASSERT_TRUE(within_ten_seconds(taken));
  const std::string rest = text.substr(first);
  EXPECT_EQ(::write(out.get(), rest.data(), rest.size()), static_cast<ssize_t>(rest.size()))
      << "it has stopped reading";
}

// GNU's tar, which people's images have; the engine's tests have busybox's, which waits for whole blocks anyway.
TEST(SeederProfile, UnpacksAStreamThatComesInPiecesOfNoBlock) {
  ::signal(SIGPIPE, SIG_IGN);
  const base::TempTree tree;
  for (const char* name : {"/streams", "/work", "/git"}) ASSERT_EQ(::mkdir((tree.path() + name).c_str(), 0755), 0);
  const std::string streams = tree.path() + "/streams/";
  for (const char* name : {kWorkStream, kGitStream}) ASSERT_EQ(::mkfifo((streams + name).c_str(), 0644), 0);
  const Profile profile = seeder_profile({}, {}, {}, streams);
  ASSERT_EQ(profile.entrypoint, (std::vector<std::string>{"/bin/sh", "-c"}));
  ASSERT_EQ(profile.command.size(), 1U);
  std::string command = replaced(profile.command[0], std::string(kStreams) + "/", streams);
  command = replaced(replaced(command, kKeptWork, tree.path() + "/work"), kKeptGit, tree.path() + "/git");
  int status = -1;
  std::thread seeder([&] { status = std::system(command.c_str()); });
  const std::string content(30'000, 'x');
  write_in_two(streams + kWorkStream, archive_of("file", content), 19'459);  // in tar's second record
  write_in_two(streams + kGitStream, archive_of("HEAD", "ref: refs/heads/main\n"), 700);
  seeder.join();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(tree.path() + "/work/file"), content);
  EXPECT_EQ(content_of(tree.path() + "/git/HEAD"), "ref: refs/heads/main\n");
}

}  // namespace
}  // namespace belljar::tiers::docker::storage
