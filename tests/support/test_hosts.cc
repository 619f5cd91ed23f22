#include "support/test_hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "support/must.h"

namespace belljar::testing {
namespace {

bool write_proc(const char* path, const std::string& text) {
  const base::Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// One line that maps `outside` of the parent namespace to `inside` (user_namespaces(7)); groups need setgroups denied.
bool map_ids(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) {
  // Denied already in the parent namespace means denied here, and writing it again is allowed.
  return write_proc("/proc/self/setgroups", "deny") &&
         write_proc("/proc/self/uid_map", std::to_string(inside_uid) + " " + std::to_string(outside_uid) + " 1") &&
         write_proc("/proc/self/gid_map", std::to_string(inside_gid) + " " + std::to_string(outside_gid) + " 1");
}

// Who started this process, asked before its first user namespace made it root of its own.
std::pair<uid_t, gid_t> caller() {
  static const std::pair<uid_t, gid_t> ids{::geteuid(), ::getegid()};
  return ids;
}

}  // namespace

TestHosts::TestHosts(const std::vector<std::string>& names, const std::map<std::string, std::string>& other_names)
    : uid_(caller().first), gid_(caller().second) {
  // Root has what it needs, and so has an ordinary user since the first one of this process.
  const int user_namespace = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
  must(::unshare(user_namespace | CLONE_NEWNS | CLONE_NEWNET) == 0, "unshare");
  must(user_namespace == 0 || map_ids(0, uid_, 0, gid_), "id map");
  must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make / private");

  std::string hosts = "127.0.0.1 localhost\n::1 localhost\n";
  for (const std::string& name : names) hosts += std::string(kInternet) + " " + name + "\n";
  for (const auto& [name, address] : other_names) hosts += address + " " + name + "\n";
  write_file(temp_ / "hosts", hosts);
  // Nobody answers there, and says so at once: a name that /etc/hosts lacks fails without waiting.
  write_file(temp_ / "resolv.conf", "nameserver " + std::string(kInternet) + "\noptions attempts:1 timeout:1\n");
  cover_file("/etc/hosts", temp_ / "hosts");
  cover_file("/etc/resolv.conf", temp_ / "resolv.conf");
  covered_.emplace_back("/home");
  must(::mkdir((temp_ / "home").c_str(), 0700) == 0, "mkdir home");
  must(::mount("tmpfs", "/home", "tmpfs", 0, "mode=755") == 0, "mount /home");
  must(::mkdir(home().c_str(), 0755) == 0, "mkdir home");
  must(::mount((temp_ / "home").c_str(), home().c_str(), nullptr, MS_BIND, nullptr) == 0, "bind home");

  internet_ = std::make_unique<Process>(Command{
      .argv = {"sh", "-c", "echo ready; exec sleep infinity"},
      .before_exec = [] { return ::unshare(CLONE_NEWNET) == 0; },
  });
  must(internet_->read_line().has_value(), "the internet side");
  const std::string pid = std::to_string(internet_->pid());
  internet_net_ = base::Fd(::open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  must(internet_net_.valid(), "open network namespace");
  must_run({.argv = {"ip", "-batch", "-"},
            .in = Stream::pipe("link set lo up\nlink add wire type veth peer name wire netns " + pid +
                               "\naddress add 45.45.45.1/24 dev wire\naddress add 2606:4545::1/64 dev wire nodad\n"
                               "link set wire up\n")});
  must_run({.argv = {"nsenter", "--net=/proc/" + pid + "/ns/net", "ip", "-batch", "-"},
            .in = Stream::pipe("link set lo up\naddress add 45.45.45.2/24 dev wire\n"
                               "address add 2606:4545::2/64 dev wire nodad\nlink set wire up\n")});
}

// What has something mounted on it can be neither removed nor, once removed, covered again.
TestHosts::~TestHosts() {
  for (auto target = covered_.rbegin(); target != covered_.rend(); ++target) ::umount2(target->c_str(), MNT_DETACH);
}

Process TestHosts::start(Command command) const {
  command.before_exec = [this, then = command.before_exec] {
    return ::setns(internet_net_.get(), CLONE_NEWNET) == 0 && (!then || then());
  };
  return Process(command);
}

Command TestHosts::as_caller(Command command) const {
  if (uid_ != 0) {
    // Executing as a user id other than 0 drops the capabilities that the new user namespace gave.
    command.before_exec = [this] { return ::unshare(CLONE_NEWUSER) == 0 && map_ids(uid_, 0, gid_, 0); };
  }
  return command;
}

void TestHosts::cover_file(const std::string& target, const std::string& source) {
  // A dangling or absent file cannot be covered; then there is nothing of the host's to hide either.
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(target, error);
  if (error) return;
  must(::mount(source.c_str(), real.c_str(), nullptr, MS_BIND, nullptr) == 0, target.c_str());
  covered_.push_back(real);
}

// What covers the host's file; where there was none to cover, nobody reads it.
void TestHosts::set_name_servers(const std::string& resolv_conf) const {
  write_file(temp_ / "resolv.conf", resolv_conf);
}

void TestHosts::show(const std::string& source, const std::string& target) {
  std::filesystem::create_directories(target);
  must(::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) == 0, target.c_str());
  covered_.push_back(target);
}

void make_certificates(const std::string& folder, const std::vector<std::string>& names) {
  std::string subjects;
  for (const std::string& name : names) subjects += (subjects.empty() ? "subjectAltName=DNS:" : ",DNS:") + name;
  write_file(folder + "/extensions", subjects + "\n");
  must_run({.argv = {"sh", "-ec", R"(
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -keyout ca.key -out ca.pem -days 2 -subj '/CN=Belljar test CA' \
  -addext basicConstraints=critical,CA:TRUE
openssl req $key -keyout key.pem -out request.pem -subj "/CN=$1"
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile extensions
)",
                     "sh", names.front()},
            .cwd = folder});
}

}  // namespace belljar::testing
