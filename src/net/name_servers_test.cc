#include "net/name_servers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace belljar::net {
namespace {

TEST(NameServers, AreThoseOfTheFile) {
  EXPECT_EQ(name_servers_of("# nameserver 192.0.2.9\nsearch x\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # two\n"
                            "nameserver fe80::1%eth0\nnameservers 192.0.2.3\nnameserver\nnameserver nonsense\n"),
            "192.0.2.1,[2001:db8::1]");
  EXPECT_EQ(name_servers_of(""), "");
}

TEST(ResolvConf, TellsOfEachChangeOnce) {
  const std::string folder = ::testing::TempDir() + "resolv-conf-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/resolv.conf";
  const auto write = [](const std::string& name, const std::string& text) { std::ofstream(name) << text; };
  ResolvConf file(path);
  EXPECT_EQ(file.changed(), std::nullopt);
  write(path, "nameserver 192.0.2.1\n");
  EXPECT_EQ(file.changed(), "192.0.2.1");
  EXPECT_EQ(file.changed(), std::nullopt);
  // In place, and of the same size: only its time tells.
  write(path, "nameserver 192.0.2.2\n");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(file.changed(), "192.0.2.2");
  // Another file of the same time: only its inode tells.
  const auto time = std::filesystem::last_write_time(path);
  write(folder + "/next", "nameserver 192.0.2.3\n");
  std::filesystem::last_write_time(folder + "/next", time);
  std::filesystem::rename(folder + "/next", path);
  EXPECT_EQ(file.changed(), "192.0.2.3");
  // By a link, and what lies at its end.
  write(folder + "/far", "nameserver 192.0.2.4\n");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("far", path);
  EXPECT_EQ(file.changed(), "192.0.2.4");
  write(folder + "/far", "nameserver 192.0.2.40\n");
  EXPECT_EQ(file.changed(), "192.0.2.40");
  // Half-written, or gone: no servers are no news; whole again they are.
  write(folder + "/far", "");
  EXPECT_EQ(file.changed(), std::nullopt);
  std::filesystem::remove(folder + "/far");
  EXPECT_EQ(file.changed(), std::nullopt);
  write(folder + "/far", "nameserver 192.0.2.5\n");
  EXPECT_EQ(file.changed(), "192.0.2.5");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace belljar::net
