// The audit file: one JSON object a line for every verdict, written beside the proxy's own work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/bucket.h"

namespace belljar::egress {

struct AuditEvent {
  std::string_view event = "verdict";  // verdict, end
  uint64_t connection = 0;             // ties the end of something allowed to its verdict; 0: none
  std::string_view verdict{};          // allow, deny, error
  std::string_view reason{};           // code_of(); empty when allowed
  std::string_view rule{};             // id of the rule that decided, or empty
  std::string_view source{};           // the rule with the place it was said
  std::string_view method{};           // CONNECT, SOCKS5, DIRECT, or that of a plain request
  std::string_view host{};
  uint16_t port = 0;
  std::string_view address{};  // the one that was dialled
  std::string_view detail{};
  std::string_view remedy{};  // of a denial: the flag that would allow it, or empty
  uint64_t up = 0;            // of an end
  uint64_t down = 0;
  int64_t milliseconds = 0;
};

struct AuditOptions {
  // Regular, open for reading and appending.
  base::Fd file;
  std::string session;
  // Each line ends with a SHA-256 over itself and the line before (docs/policy.md). The file must be empty or end with
  // such a line, and is locked (flock) against other sessions.
  bool chain = false;
  // A line that cannot be written ends the session; see Audit::failed().
  bool required = false;
  // Called first on the writing thread; its error is start()'s. May be empty.
  std::function<base::Status()> on_thread{};
};

// What became of it.
struct AuditEnd {
  uint64_t lines = 0;
  uint64_t lost = 0;      // events that were not written
  uint64_t unlisted = 0;  // verdicts that were counted only, see Audit::add()
  std::string chain;      // the last hash; empty without a chain
  int error = 0;          // errno of the last write that failed, 0 when none did
};

// Lines are queued by one thread and written by another, so that a slow disk holds no connection up. The queue is
// bounded: what finds no room is lost, and counted.
class Audit {
 public:
  static constexpr size_t kQueue = size_t{8} << 20U;  // bytes
  // Lines of what was not allowed: so many at once, and so many a second.
  static constexpr size_t kRefusals = 4096;
  static constexpr size_t kRefusalsPerSecond = 32;

  // Reads the end of the chain, writes the line `start`, and starts the thread, which blocks all signals.
  [[nodiscard]] static base::Result<std::unique_ptr<Audit>> start(AuditOptions options);
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // A refusal costs a guest next to nothing, and it must not be able to fill the disk with them: beyond kRefusals they
  // are counted, in a line `unlisted` before the next one and at the end.
  void add(const AuditEvent& event);

  // True once a line was lost although lines are required: then nothing more may be allowed. Any thread.
  [[nodiscard]] bool failed() const { return failed_; }
  // Readable once failed(); for poll(2). -1 when lines are not required.
  [[nodiscard]] int failure_fd() const { return wake_.get(); }

  // Writes what is queued and a line `stop`, and ends the thread. Nothing may be added any more.
  AuditEnd close();

 private:
  explicit Audit(AuditOptions options) : options_(std::move(options)) {}
  base::Status read_end();
  void work();
  void write(std::vector<std::string> lines);
  std::string finish(const std::string& line);
  bool append(const std::string& text);
  void lose(uint64_t events, int error);
  void enqueue(std::string line);
  std::string unlisted_line();

  AuditOptions options_;
  base::Fd wake_;
  std::string chain_;
  Bucket refusals_;
  uint64_t unlisted_ = 0;
  uint64_t unlisted_told_ = 0;  // of those, in the file
  uint64_t written_ = 0;
  uint64_t lost_ = 0;       // all of them
  uint64_t to_report_ = 0;  // of those, not yet told in the file
  int error_ = 0;
  std::atomic<bool> failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> queue_;  // without their ends, see finish()
  size_t queued_bytes_ = 0;
  uint64_t unqueued_ = 0;  // found no room
  bool closing_ = false;
  std::thread thread_;
};

struct AuditReport {
  uint64_t lines = 0;
  std::string chain;  // the last hash
};

// Reads a chained file from its beginning. Refuses, with the number of the line, whatever was changed, taken out, put
// in or cut off inside; lines that are missing at the end are seen only by comparing `chain` with a settlement's.
[[nodiscard]] base::Result<AuditReport> verify_audit(int fd, const std::string& name);

}  // namespace belljar::egress
