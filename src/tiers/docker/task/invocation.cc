#include "tiers/docker/task/invocation.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/pack.h"
#include "tiers/docker/task/adapter.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr std::string_view kCapture = "capture the request";
constexpr size_t kMostAttempt = 64;
constexpr size_t kMostWord = size_t{128} << 10U;  // of one argument (execve(2), MAX_ARG_STRLEN)
constexpr uint64_t kMostSeconds = 7 * 24 * 3600;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostAttempt &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

base::Status check(const Request& request) {
  if (!is_name(request.attempt)) {
    return base::refuse(kCapture, request.attempt, "an attempt is named by 1 to 64 of a-z, 0-9 and '-'");
  }
  if (!request.image_id.starts_with("sha256:")) {
    return base::refuse(kCapture, request.image_id, "the image is not named by its content's id, refusing");
  }
  if (request.seconds == 0 || request.seconds > kMostSeconds) {
    return base::refuse(kCapture, request.attempt, "a deadline of 1 s to 7 days is expected", "say --deadline 30m");
  }
  BELLJAR_TRY(check(request.ceilings));
  const Adapter* adapter = request.agent.empty() ? nullptr : find_adapter(request.agent);
  if (!request.agent.empty() && adapter == nullptr) {
    return base::refuse(kCapture, request.agent, "no adapter holds this agent to a phase, refusing",
                        "use claude or codex, or -- COMMAND without an agent");
  }
  if (request.command.empty() || request.command.front().empty()) {
    return base::refuse(kCapture, request.attempt, "no command is given", "say --prompt TEXT, or -- COMMAND");
  }
  for (const std::string& word : request.command) {
    if (word.contains('\0') || word.size() >= kMostWord) {
      return base::refuse(kCapture, request.attempt, "an argument is too long or holds a NUL byte, refusing");
    }
  }
  if (request.token.empty() ? (request.login && adapter == nullptr)
                            : (adapter == nullptr || request.login ||
                               std::ranges::find(adapter->tokens, request.token) == adapter->tokens.end())) {
    return base::refuse(kCapture, request.token.empty() ? request.attempt : request.token,
                        "it is no credential of the agent's, refusing",
                        "one credential of the vendor of --agent, and only that, can come along");
  }
  return {};
}

}  // namespace

std::string encode(const Request& request) {
  std::string out;
  base::pack_text(out, "belljar attempt 2");
  for (const std::string* text : {&request.attempt, &request.task, &request.agent, &request.image_id, &request.token,
                                  &request.schema, &request.certificates}) {
    base::pack_text(out, *text);
  }
  base::pack_text(out, to_text(request.phase));
  base::pack_text(out, request.login ? "login" : "");
  base::pack_text(out, std::to_string(request.seconds));
  pack(out, request.ceilings);
  for (const std::string& word : request.command) base::pack_text(out, word);
  return out;
}

base::Result<Invocation> Invocation::capture(Request request, Ledger ledger) {
  BELLJAR_TRY(check(request));
  const auto deadline = base::Deadline::after(std::chrono::seconds(request.seconds));
  BELLJAR_TRY(ledger.claim(request.attempt, encode(request)));
  return Invocation(std::move(request), std::move(ledger), deadline);
}

base::Status Invocation::authenticate() const {
  constexpr std::string_view kAuthenticate = "authenticate the request";
  BELLJAR_ASSIGN(const std::string kept, ledger_.kept(request_.attempt));
  if (kept != encode(request_)) {
    return base::refuse(kAuthenticate, request_.attempt, "it is not what was captured, refusing",
                        "capture a request of its own");
  }
  if (deadline_.passed()) {
    return base::refuse(kAuthenticate, request_.attempt, "its deadline has passed, refusing",
                        "capture another with a later --deadline");
  }
  return {};
}

}  // namespace belljar::tiers::docker::task
