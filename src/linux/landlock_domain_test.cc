// Landlock in force: each case forks, restricts itself and tries.
#include "linux/landlock_domain.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "linux/seal.h"

namespace belljar::linux {
namespace {

int result(long value) {
  return value == -1 ? errno : 0;
}

constexpr int kNotOffered = 254;

// What a restricted child ends with: `wanted` where this kernel offers all of `features`, and otherwise kNotOffered,
// because landlock_restrict must fail rather than restrict less.
int under(LandlockFeatures features, int wanted) {
  const LandlockFeatures offered = landlock_features(landlock_abi());
  const bool all = (offered.files || !features.files) && (offered.signals || !features.signals) &&
                   (offered.abstract_sockets || !features.abstract_sockets);
  return all ? wanted : kNotOffered;
}

// `restricted` false leaves the wall out: the same body must then succeed, or the case would show nothing.
int in_child(bool restricted, const std::vector<LandlockRule>& rules, LandlockFeatures features,
             const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (set_no_new_privs() != 0) _exit(255);
    if (restricted) {
      if (const int error = landlock_restrict(rules, features); error != 0)
        _exit(error == EOPNOTSUPP ? kNotOffered : 253);
    }
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

constexpr LandlockFeatures kFiles{.files = true};

class Landlock : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
    for (const char* name : {"work", "work/a", "work/b", "read", "hidden"}) std::filesystem::create_directory(at(name));
    for (const char* name : {"work/a/file", "read/file", "hidden/file"}) std::ofstream(at(name)) << "text";
    work_.reset(open(at("work").c_str(), O_PATH | O_CLOEXEC));
    read_.reset(open(at("read").c_str(), O_PATH | O_CLOEXEC));
    rules_ = {{.fd = work_.get(), .writable = true}, {.fd = read_.get()}};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string at(const std::string& name) const { return root_ + "/" + name; }

  // `body` fails with `error` inside and succeeds when the domain is left out.
  void expect_shut(int error, const std::function<int()>& body) {
    EXPECT_EQ(in_child(true, rules_, kFiles, body), under(kFiles, error));
    EXPECT_EQ(in_child(false, rules_, kFiles, body), 0) << "refused without landlock as well";
  }
  void expect_open(const std::function<int()>& body) {
    EXPECT_EQ(in_child(true, rules_, kFiles, body), under(kFiles, 0));
  }

  std::string root_ = "/tmp/belljar-landlock-XXXXXX";
  base::Fd work_;
  base::Fd read_;
  std::vector<LandlockRule> rules_;
};

TEST(LandlockFeatures, GrowWithTheAbi) {
  EXPECT_FALSE(landlock_features(0).files);
  EXPECT_FALSE(landlock_features(1).files);
  EXPECT_TRUE(landlock_features(2).files);
  EXPECT_FALSE(landlock_features(5).signals);
  EXPECT_TRUE(landlock_features(6).signals);
  EXPECT_TRUE(landlock_features(6).abstract_sockets);
}

TEST(LandlockFeatures, MoreThanTheKernelHasIsRefused) {
  EXPECT_EQ(landlock_restrict({}, {}), EOPNOTSUPP);
  const LandlockFeatures offered = landlock_features(landlock_abi());
  if (!offered.files) {
    EXPECT_EQ(landlock_restrict({}, {.files = true}), EOPNOTSUPP);
  }
  if (!offered.signals) {
    EXPECT_EQ(landlock_restrict({}, {.signals = true}), EOPNOTSUPP);
  }
}

TEST_F(Landlock, OutsideIsShut) {
  expect_shut(EACCES, [&] { return result(open(at("hidden/file").c_str(), O_RDONLY | O_CLOEXEC)); });
  expect_shut(EACCES, [&] { return result(open(at("hidden").c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY)); });
  expect_shut(EACCES, [&] { return result(open(at("hidden/new").c_str(), O_WRONLY | O_CLOEXEC | O_CREAT, 0600)); });
}

TEST_F(Landlock, ReadOnlyTreeIsReadOnly) {
  expect_open([&] { return result(open(at("read/file").c_str(), O_RDONLY | O_CLOEXEC)); });
  expect_open([&] { return result(open(at("read").c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY)); });
  expect_shut(EACCES, [&] { return result(open(at("read/file").c_str(), O_WRONLY | O_CLOEXEC)); });
  expect_shut(EACCES, [&] { return result(mkdir(at("read/folder").c_str(), 0700)); });
  expect_shut(EACCES, [&] { return result(unlink(at("read/file").c_str())); });
}

TEST_F(Landlock, TruncatingNeedsTheRight) {
  // Before ABI 3 (Linux 6.2) there is no such right, and read-only mounts alone forbid it.
  const int wanted = landlock_abi() < 3 ? 0 : EACCES;
  expect_shut(wanted, [&] { return result(truncate(at("read/file").c_str(), 0)); });
  expect_open([&] { return result(truncate(at("work/a/file").c_str(), 0)); });
}

TEST_F(Landlock, WorkFolderIsWhole) {
  expect_open([&] { return result(open(at("work/new").c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, 0600)); });
  expect_open([&] { return result(mkdir(at("work/folder").c_str(), 0700)); });
  expect_open([&] { return result(symlink("new", at("work/link").c_str())); });
  expect_open([&] { return result(mkfifo(at("work/fifo").c_str(), 0600)); });
  expect_open([&] { return result(rename(at("work/a/file").c_str(), at("work/b/file").c_str())); });
  expect_open([&] { return result(link(at("work/b/file").c_str(), at("work/a/again").c_str())); });
  expect_open([&] { return result(unlink(at("work/new").c_str())); });
  expect_open([&] { return result(rmdir(at("work/folder").c_str())); });
}

TEST_F(Landlock, NothingMovesOutOrIn) {
  expect_shut(EACCES, [&] { return result(link(at("work/a/file").c_str(), at("hidden/stolen").c_str())); });
  expect_shut(EXDEV, [&] { return result(link(at("hidden/file").c_str(), at("work/stolen").c_str())); });
}

TEST_F(Landlock, DevicesAreNobodysToMake) {
  expect_shut(EACCES, [&] { return result(mknod(at("work/whiteout").c_str(), S_IFCHR | 0600, 0)); });
}

TEST_F(Landlock, DeviceRuleWritesAndControlsButMakesNothing) {
  const base::Fd device(open("/dev/ptmx", O_PATH | O_CLOEXEC));
  ASSERT_TRUE(device);
  const auto control = [] {
    const int fd = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
    unsigned number = 0;
    return fd < 0 ? errno : result(ioctl(fd, TIOCGPTN, &number));
  };
  EXPECT_EQ(in_child(true, {{.fd = device.get(), .device = true}}, kFiles, control), under(kFiles, 0));
  EXPECT_EQ(in_child(true, {{.fd = device.get()}}, kFiles, control), under(kFiles, EACCES));
  const base::Fd folder(open(at("work").c_str(), O_PATH | O_CLOEXEC));
  const std::vector<LandlockRule> as_device{{.fd = folder.get(), .device = true}};
  EXPECT_EQ(in_child(true, as_device, kFiles, [&] { return result(mkdir(at("work/x").c_str(), 0700)); }),
            under(kFiles, EACCES));
  EXPECT_EQ(
      in_child(true, as_device, kFiles, [&] { return result(open(at("work/a/file").c_str(), O_RDWR | O_CLOEXEC)); }),
      under(kFiles, 0));
}

TEST_F(Landlock, IoctlOnDevicesNeedsTheRight) {
  const base::Fd device(open("/dev/ptmx", O_PATH | O_CLOEXEC));
  const auto control = [] {
    const int fd = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
    unsigned number = 0;
    return fd < 0 ? 200 : result(ioctl(fd, TIOCGPTN, &number));
  };
  EXPECT_EQ(in_child(true, {{.fd = device.get(), .writable = true}}, kFiles, control),
            under(kFiles, landlock_abi() < 5 ? 0 : EACCES));
}

TEST_F(Landlock, FilesStayOpenWhenOnlyScopesAreAsked) {
  EXPECT_EQ(in_child(true, {}, {.signals = true},
                     [&] { return result(open(at("hidden/file").c_str(), O_RDWR | O_CLOEXEC)); }),
            under({.signals = true}, 0));
}

TEST_F(Landlock, AbstractSocketsOfOthersAreOutOfReach) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string text = "belljar-landlock-" + std::to_string(getpid());
  memcpy(name.sun_path + 1, text.data(), text.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const auto* address = reinterpret_cast<const sockaddr*>(&name);
  const base::Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), address, size), 0);
  ASSERT_EQ(listen(listener.get(), 4), 0);
  const auto reach = [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? 200 : result(connect(fd, address, size));
  };
  EXPECT_EQ(in_child(true, {}, {.abstract_sockets = true}, reach), under({.abstract_sockets = true}, EPERM));
  EXPECT_EQ(in_child(true, {}, {.signals = true}, reach), under({.signals = true}, 0));
  EXPECT_EQ(in_child(false, {}, {}, reach), 0);
}

TEST_F(Landlock, ProcessesOutsideAreNotSignalled) {
  const auto signal_parent = [] { return result(kill(getppid(), 0)); };
  EXPECT_EQ(in_child(true, {}, {.signals = true}, signal_parent), under({.signals = true}, EPERM));
  EXPECT_EQ(in_child(true, {}, {.abstract_sockets = true}, signal_parent), under({.abstract_sockets = true}, 0));
  EXPECT_EQ(in_child(false, {}, {}, signal_parent), 0);
  EXPECT_EQ(in_child(true, {}, {.signals = true}, [] { return result(kill(getpid(), 0)); }),
            under({.signals = true}, 0));
}

TEST_F(Landlock, ABadDescriptorRestrictsNothing) {
  EXPECT_EQ(in_child(false, {}, {},
                     [&] {
                       const std::array<LandlockRule, 1> bad{LandlockRule{.fd = -1}};
                       if (landlock_restrict(bad, kFiles) != (landlock_abi() < 2 ? EOPNOTSUPP : EBADF)) return 200;
                       return result(open(at("hidden/file").c_str(), O_RDONLY | O_CLOEXEC));
                     }),
            0);
}

}  // namespace
}  // namespace belljar::linux
