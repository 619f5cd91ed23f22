#include "egress/audit.h"

#include <sha2.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

namespace belljar::egress {
namespace {

constexpr size_t kMaxLine = size_t{64} << 10U;
constexpr std::string_view kChainKey = ",\"chain\":\"";
constexpr size_t kHashText = 2 * SHA256_DIGEST_LENGTH;
constexpr size_t kChainTail = kChainKey.size() + kHashText + 2;  // with `"}`

std::string first_chain() {
  return std::string(kHashText, '0');
}

// Over the hash of the line before and this line up to its own hash.
std::string next_chain(std::string_view before, std::string_view line) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const uint8_t*>(before.data()), before.size());
  SHA256Update(&context, reinterpret_cast<const uint8_t*>(line.data()), line.size());
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  return SHA256End(&context, text.data());
}

// The part of a whole line before its hash, and the hash; empty parts when it has none.
std::pair<std::string_view, std::string_view> split_line(std::string_view line) {
  if (line.size() <= kChainTail || !line.ends_with("\"}")) return {};
  const std::string_view tail = line.substr(line.size() - kChainTail);
  if (!tail.starts_with(kChainKey)) return {};
  return {line.substr(0, line.size() - kChainTail), tail.substr(kChainKey.size(), kHashText)};
}

// RFC 8259, section 7. Control bytes and what is not ASCII are escaped by base::escape() first.
void add_text(std::string& out, std::string_view key, std::string_view text) {
  out.append(",\"").append(key).append("\":\"");
  for (const char c : base::escape(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void add_number(std::string& out, std::string_view key, int64_t number) {
  out.append(",\"").append(key).append("\":").append(std::to_string(number));
}

std::string utc_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  std::array<char, 48> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ", static_cast<int>(now.tv_nsec / 1'000'000));
  return text.data();
}

std::string begin_line(const std::string& session, std::string_view event) {
  std::string out = R"({"time":")" + utc_now() + '"';
  add_text(out, "session", session);
  add_text(out, "event", event);
  return out;
}

std::string line_of(const std::string& session, const AuditEvent& event) {
  std::string out = begin_line(session, event.event);
  if (event.connection != 0) add_number(out, "connection", static_cast<int64_t>(event.connection));
  if (!event.verdict.empty()) {
    add_text(out, "verdict", event.verdict);
    add_text(out, "reason", event.reason);
  }
  add_text(out, "rule", event.rule);
  if (!event.source.empty()) add_text(out, "source", event.source);
  if (!event.method.empty()) add_text(out, "method", event.method);
  add_text(out, "host", event.host);
  add_number(out, "port", event.port);
  if (!event.address.empty()) add_text(out, "address", event.address);
  if (!event.detail.empty()) add_text(out, "detail", event.detail);
  if (!event.remedy.empty()) add_text(out, "remedy", event.remedy);
  if (event.event == "end") {
    add_number(out, "bytes_up", static_cast<int64_t>(event.up));
    add_number(out, "bytes_down", static_cast<int64_t>(event.down));
    add_number(out, "duration_ms", event.milliseconds);
  }
  return out;
}

std::string count_line(const std::string& session, std::string_view event, std::string_view key, uint64_t count) {
  std::string out = begin_line(session, event);
  add_number(out, key, static_cast<int64_t>(count));
  return out;
}

}  // namespace

base::Result<std::unique_ptr<Audit>> Audit::start(AuditOptions options) {
  std::unique_ptr<Audit> audit(new Audit(std::move(options)));
  if (audit->options_.required) {
    audit->wake_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!audit->wake_) return base::system_error("eventfd", "", errno);
  }
  BELLJAR_TRY(audit->read_end());
  // At once and not by the thread, so that a file that takes nothing is known before the launch.
  if (!audit->append(audit->finish(begin_line(audit->options_.session, "start")))) {
    return base::system_error("write the audit file", "", audit->error_);
  }
  ++audit->written_;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::promise<base::Status> ready;
  audit->thread_ = std::thread([raw = audit.get(), &ready] {
    ready.set_value(raw->options_.on_thread ? raw->options_.on_thread() : base::Status{});
    raw->work();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BELLJAR_TRY(ready.get_future().get());
  return audit;
}

Audit::~Audit() {
  if (thread_.joinable()) close();
}

base::Status Audit::read_end() {
  constexpr std::string_view kOperation = "continue the audit file";
  if (!options_.chain) {
    if (::flock(options_.file.get(), LOCK_SH | LOCK_NB) != 0) {
      return base::refuse(kOperation, "", "a session that keeps a chain writes to it", "name another file");
    }
    return {};
  }
  if (::flock(options_.file.get(), LOCK_EX | LOCK_NB) != 0) {
    return base::refuse(kOperation, "", "another session writes to it",
                        "a chain has one writer: name another file, or leave chain out");
  }
  struct stat found{};
  if (::fstat(options_.file.get(), &found) != 0) return base::system_error(kOperation, "", errno);
  chain_ = first_chain();
  if (found.st_size == 0) return {};
  const auto size = static_cast<size_t>(found.st_size);
  std::string tail(std::min(size, kMaxLine), '\0');
  const ssize_t got = ::pread(options_.file.get(), tail.data(), tail.size(), static_cast<off_t>(size - tail.size()));
  if (got != static_cast<ssize_t>(tail.size())) return base::system_error(kOperation, "", got < 0 ? errno : EIO);
  const auto cannot = [&] {
    return base::refuse(kOperation, "", "its last line is not the whole end of a chain",
                        "see 'belljar audit verify FILE'; name another file");
  };
  if (!tail.ends_with('\n')) return cannot();
  tail.pop_back();
  const auto [line, chain] = split_line(std::string_view(tail).substr(tail.rfind('\n') + 1));
  if (chain.empty()) return cannot();
  chain_ = chain;
  return {};
}

void Audit::add(const AuditEvent& event) {
  const bool refusal = !event.verdict.empty() && event.verdict != "allow";
  if (refusal && !refusals_.take(base::boot_now(), kRefusals, kRefusalsPerSecond)) {
    ++unlisted_;
    return;
  }
  if (unlisted_told_ != unlisted_) enqueue(unlisted_line());
  enqueue(line_of(options_.session, event));
}

// Tells what was not told yet.
std::string Audit::unlisted_line() {
  return count_line(options_.session, "unlisted", "verdicts", unlisted_ - std::exchange(unlisted_told_, unlisted_));
}

void Audit::enqueue(std::string line) {
  const std::lock_guard lock(mutex_);
  if (queued_bytes_ + line.size() > kQueue) {
    ++unqueued_;
    if (options_.required) failed_ = true;
  } else {
    queued_bytes_ += line.size();
    queue_.push_back(std::move(line));
  }
  changed_.notify_one();
}

void Audit::work() {
  std::unique_lock lock(mutex_);
  while (!closing_ || !queue_.empty() || unqueued_ != 0) {
    if (queue_.empty() && unqueued_ == 0) {
      changed_.wait(lock);
      continue;
    }
    std::vector<std::string> lines = std::exchange(queue_, {});
    queued_bytes_ = 0;
    const uint64_t unqueued = std::exchange(unqueued_, 0);
    lock.unlock();
    write(std::move(lines));
    if (unqueued != 0) lose(unqueued, ENOBUFS);
    lock.lock();
  }
}

std::string Audit::finish(const std::string& line) {
  if (!options_.chain) return line + "}\n";
  chain_ = next_chain(chain_, line);
  return line + std::string(kChainKey) + chain_ + "\"}\n";
}

void Audit::write(std::vector<std::string> lines) {
  const std::string before = chain_;
  const uint64_t told = to_report_;
  std::string text;
  if (told != 0) text += finish(count_line(options_.session, "lost", "events", told));
  for (const std::string& line : lines) text += finish(line);
  if (append(text)) {
    written_ += lines.size() + (told != 0 ? 1 : 0);
    to_report_ -= told;
  } else {
    chain_ = before;
    lose(lines.size(), error_);
  }
}

// All or nothing: a line cut short would break the chain and its readers.
bool Audit::append(const std::string& text) {
  struct stat before{};
  // Not fstat(3): glibc 2.33 to 2.38 makes it newfstatat(2), which a sealed launcher may not.
  if (::syscall(SYS_fstat, options_.file.get(), &before) == 0 && base::write_all(options_.file.get(), text))
    return true;
  error_ = errno != 0 ? errno : EIO;
  // Only with a chain is nobody else's line behind ours.
  if (options_.chain) [[maybe_unused]]
    const int cut = ::ftruncate(options_.file.get(), before.st_size);
  return false;
}

void Audit::lose(uint64_t events, int error) {
  lost_ += events;
  to_report_ += events;
  error_ = error;
  if (!options_.required) return;
  failed_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

AuditEnd Audit::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
  std::vector<std::string> last;
  if (unlisted_told_ != unlisted_) last.push_back(unlisted_line());
  last.push_back(count_line(options_.session, "stop", "lost", lost_));
  write(std::move(last));
  if (options_.required) ::fdatasync(options_.file.get());
  return {written_, lost_, unlisted_, chain_, error_};
}

base::Result<AuditReport> verify_audit(int fd, const std::string& name) {
  constexpr std::string_view kOperation = "verify";
  AuditReport report{0, first_chain()};
  std::string text;
  std::array<char, size_t{64} << 10U> buffer{};
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error(kOperation, name, errno);
    if (got == 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
    size_t at = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
      const auto [line, chain] = split_line(std::string_view(text).substr(at, end - at));
      ++report.lines;
      const std::string where = "line " + std::to_string(report.lines);
      if (chain.empty()) return base::refuse(kOperation, name, where + " is not part of a chain");
      if (next_chain(report.chain, line) != chain) {
        return base::refuse(kOperation, name,
                            where + " does not follow from the lines before it: changed, or not all there");
      }
      report.chain = chain;
      at = end + 1;
    }
    text.erase(0, at);
    if (text.size() > kMaxLine) return base::refuse(kOperation, name, "holds a line that no audit file has");
  }
  if (!text.empty()) return base::refuse(kOperation, name, "its last line is cut short");
  if (report.lines == 0) return base::refuse(kOperation, name, "holds no line");
  return report;
}

}  // namespace belljar::egress
