#include "tiers/docker/remove.h"

#include <poll.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/pack.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/launch.h"
#include "tiers/docker/meeting.h"

namespace belljar::tiers::docker {
namespace {

constexpr auto kSettleTime = std::chrono::seconds(2);  // for a container whose create was not answered
constexpr int kPauseMilliseconds = 100;
constexpr size_t kMostText = 4096;

// Whether it went, the next list tells.
void end(const Engine& engine, const Owned& container, const base::Deadline& deadline, Removal& out) {
  const std::string path = "/containers/" + container.id;
  const Outcome state = engine.ask("GET", path + "/json", deadline);
  const auto* answer = std::get_if<Answered>(&state);
  if (answer != nullptr && was_out_of_memory(answer->body)) {
    out.notes.emplace_back("the kernel ended processes of the container at its limit of memory");
  }
  // By its id: a container of the same name that is another's stays.
  (void)engine.ask("DELETE", path + "?force=1&v=1", deadline);
}

}  // namespace

std::string encode(const Remains& remains) {
  std::string out;
  for (const std::string* text : {&remains.engine, &remains.session, &remains.meeting, &remains.more}) {
    base::pack_text(out, *text);
  }
  return out;
}

base::Result<Remains> decode_remains(std::string_view record) {
  base::Unpacker in(record);
  Remains out;
  for (std::string* text : {&out.engine, &out.session, &out.meeting}) *text = in.text(kMostText);
  if (!in.at_end()) out.more = in.text(kMostText);  // belljar 0.1 wrote none
  if (!in.at_end() || out.session.empty()) return base::refuse("read the record of a container", "", "it is not whole");
  return out;
}

std::string unreleased_text(const Remains& remains, const base::Error& why) {
  return "container " + container_name(remains.session) + " (label " + session_label(remains.session) +
         "): " + why.message();
}

Removal remove(const Remains& remains, bool settle, const base::Deadline& deadline) {
  Removal out;
  const base::Deadline settled = base::Deadline::after(settle ? kSettleTime : std::chrono::seconds(0));
  bool seen = false;
  std::optional<Engine> engine;
  for (;;) {
    const auto found = ask_until_answered(engine, remains.engine, deadline, [&](const Engine& opened) {
      return opened.containers_with(session_label(remains.session), deadline);
    });
    if (!found) {
      out.unreleased.push_back(unreleased_text(remains, found.error()));
      return out;
    }
    if (found->empty() && (seen || settled.passed())) break;
    for (const Owned& one : *found) {
      if (!engine || deadline.passed()) {
        out.unreleased.push_back("container " + one.id + " (label " + session_label(remains.session) +
                                 "): it is still there");
      } else {
        end(*engine, one, deadline, out);
      }
      seen = true;
    }
    if (!out.unreleased.empty()) return out;
    if (found->empty()) (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
  for (const std::string* folder : {&remains.more, &remains.meeting}) {
    if (folder->empty()) continue;
    if (const auto removed = remove_meeting(*folder); !removed) out.unreleased.push_back(removed.error().message());
  }
  return out;
}

}  // namespace belljar::tiers::docker
