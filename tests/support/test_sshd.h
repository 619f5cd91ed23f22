// A real sshd on the internet side of a test, for ssh clients that know its key.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::testing {

// Who started this process, asked before its first TestHosts made it root of its own.
struct Account {
  Account();
  uid_t uid;
  std::string name;
};

// It lets `account` in by a key, with the home of `hosts` and bash as its shell; only this mount namespace sees that
// account. Ends with this object, which must go before `hosts`.
class TestSshd {
 public:
  static constexpr int kPort = 2222;

  // `more` is appended to sshd_config(5).
  TestSshd(const TestHosts& hosts, const Account& account, const std::string& more = {});
  ~TestSshd();
  TestSshd(const TestSshd&) = delete;
  TestSshd& operator=(const TestSshd&) = delete;

  // The private key to come in by, and its own public key as `ssh-ed25519 AAAA…`.
  [[nodiscard]] std::string key() const { return folder_ / "key"; }
  [[nodiscard]] std::string host_key() const { return read_text(folder_ / "host.pub"); }
  // Kills what serves those who were let in without a terminal.
  void kill_sessions() const;
  [[nodiscard]] std::string log() const { return read_text(folder_ / "sshd.log"); }

 private:
  TempDir folder_;
  base::Fd log_;
  std::unique_ptr<Process> process_;
};

}  // namespace belljar::testing
