// The guest's way out, as the launcher holds it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/audit.h"
#include "egress/proxy.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "session/hook_tls.h"
#include "session/live_rules.h"
#include "session/run.h"
#include "session/settlement.h"
#include "tiers/jail/launch.h"

namespace belljar::session {

// What other processes tell the proxy while it runs. Each may be invalid: then it is told nothing of the kind.
struct News {
  RuleDoor door;
  base::Fd questions;
  base::Fd name_servers;
  std::string tls_program;  // for a https hook
  HookSecrets hook;
};

// The proxy, on the guest's thread.
class WayOut {
 public:
  WayOut() = default;
  WayOut(const WayOut&) = delete;
  WayOut& operator=(const WayOut&) = delete;
  ~WayOut() { stop(); }

  // Before open(). An invalid file: nothing is kept. Its thread shuts itself in by
  // seal_thread().
  base::Status keep_audit(base::Fd file, const std::string& session, const policy::Audit& audit);
  // Readable when the audit file that is required takes nothing any more; -1 when there is none.
  [[nodiscard]] int audit_failure_fd() const { return audit_ ? audit_->failure_fd() : -1; }
  // Nothing is served yet.
  base::Status open(tiers::jail::Guest& guest, base::Fd listener, const plan::Plan& plan, const std::string& session,
                    News news);
  // Reads what of the host's files resolving needs. On the thread that a seal is about to shut in; may be called
  // without open().
  void prepare();
  // Serves, on the guest's thread.
  void start();
  // The guest is at its end; close() then has less to wait for.
  void begin_to_close();
  void close(Settlement& settlement);

 private:
  bool stop();

  std::unique_ptr<egress::Audit> audit_;   // goes after the proxy
  HookTls hook_tls_;                       // so does this
  tiers::jail::Keeper* keeper_ = nullptr;  // while it serves
  tiers::jail::Guest* guest_ = nullptr;
  std::unique_ptr<egress::Proxy> proxy_;
};

}  // namespace belljar::session
