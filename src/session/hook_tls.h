// Who speaks TLS with the control host of a https hook, as the launcher holds it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::session {

// A process of the program belljar-tls, which knows the authorities' certificates and the one host. It ends with this,
// or with the launcher.
class HookTls {
 public:
  // Before the seal. `program` must be a file that only root or the caller can have written. `authorities` are
  // certificates in PEM, which count alone; empty: those of $SSL_CERT_FILE, else the host's. Waits until it is ready.
  [[nodiscard]] static base::Result<HookTls> start(const std::string& program, const std::string& host,
                                                   const std::string& authorities);
  HookTls() = default;
  HookTls(HookTls&& other) noexcept;
  HookTls& operator=(HookTls&& other) noexcept;
  HookTls(const HookTls&) = delete;
  HookTls& operator=(const HookTls&) = delete;
  ~HookTls() { end(); }

  // Gives it a socket that is connected to the control host; returns the one that the clear text goes through,
  // non-blocking. After the seal, on any thread.
  [[nodiscard]] base::Result<base::Fd> secure(int connected) const;

 private:
  void end();
  HookTls(base::Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  base::Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace belljar::session
