#include "support/test_sshd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "support/belljar.h"
#include "support/must.h"

namespace belljar::testing {
namespace {

// sshd and ssh take homes from /etc/passwd.
std::string accounts_with(const Account& account, const std::string& home) {
  std::string out;
  std::istringstream lines(read_text("/etc/passwd"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(account.name + ":")) out += line + "\n";
  }
  const std::string id = std::to_string(account.uid);
  return out + account.name + ":x:" + id + ":" + id + "::" + home + ":/bin/bash\n";
}

}  // namespace

Account::Account() {
  static const uid_t first = ::geteuid();
  static const std::string first_name = ::getpwuid(first)->pw_name;
  uid = first;
  name = first_name;
}

TestSshd::TestSshd(const TestHosts& hosts, const Account& account, const std::string& more) {
  write_file(folder_ / "passwd", accounts_with(account, hosts.home()));
  must(::mount((folder_ / "passwd").c_str(), "/etc/passwd", nullptr, MS_BIND, nullptr) == 0, "cover /etc/passwd");
  must(::mount("tmpfs", "/run", "tmpfs", 0, "mode=755") == 0, "mount /run");
  ::mkdir("/run/sshd", 0755);
  must_run({.argv = {"sh", "-ec",
                     "ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; "
                     "cp key.pub authorized"},
            .cwd = folder_.path()});
  write_file(folder_ / "sshd_config",
             "Port " + std::to_string(kPort) + "\nListenAddress " + TestHosts::kInternet + "\nHostKey " +
                 (folder_ / "host") + "\nAuthorizedKeysFile " + (folder_ / "authorized") +
                 "\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\nLogLevel INFO\n" + more);
  log_ = base::Fd(::open((folder_ / "sshd.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  process_ = std::make_unique<Process>(hosts.start(hosts.as_caller(
      {.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", folder_ / "sshd_config"}, .err = Stream::from(log_.get())})));
  if (!eventually([&] { return log().contains("Server listening"); })) {
    std::fputs(log().c_str(), stderr);
    std::abort();
  }
}

void TestSshd::kill_sessions() const {
  // The one who was let in is served by a child of the listener's, or by a child of that.
  const std::string listener = std::to_string(process_->pid());
  must_run(
      {.argv = {"sh", "-c",
                "for first in $(pgrep -P " + listener + "); do kill -9 $(pgrep -P $first -f '@notty') $(pgrep -P " +
                    listener + " -f '@notty') && exit 0; done; exit 1"}});
}

TestSshd::~TestSshd() {
  process_.reset();
  if (::testing::Test::HasFailure()) std::fputs(log().c_str(), stderr);
  ::umount2("/run", MNT_DETACH);
  ::umount2("/etc/passwd", MNT_DETACH);
}

}  // namespace belljar::testing
