#include "tiers/docker/image/step.h"

#include <cstddef>
#include <utility>

#include "base/text.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker::image {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20U;
constexpr size_t kMostShown = 2000;

// What a script said before it failed: the end of it.
std::string last_words(const Output& output) {
  std::string_view text = output.err.empty() ? output.out : output.err;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() > kMostShown) text.remove_prefix(text.size() - kMostShown);
  return text.empty() ? "it said nothing" : "it said: " + base::escape(text);
}

}  // namespace

base::Result<Step> run_step(const Engine& engine, const Profile& profile, const Archive* archive,
                            const base::Deadline& deadline) {
  const std::string& name = profile.name;
  const std::string create = "/containers/create?name=" + percent_encode(name);
  BELLJAR_ASSIGN(const Answered made,
                 require(engine.post(create, create_request(profile), deadline), "create the container", name));
  const auto id = read_id(made.body);
  if (!id) return base::refuse("create the container", name, "the container engine named none, refusing");
  const std::string path = "/containers/" + percent_encode(*id);
  BELLJAR_ASSIGN(const Answered inspected,
                 require(engine.ask("GET", path + "/json", deadline), "look at the container", name));
  BELLJAR_TRY(validate(profile, inspected.body));
  if (archive != nullptr) {
    const Body body{.type = "application/x-tar", .file = archive->file.get(), .file_bytes = archive->bytes};
    BELLJAR_TRY(require(engine.ask("PUT", path + "/archive?path=%2F&noOverwriteDirNonDir=1", deadline, body),
                        "put the packages into the container", name));
  }
  Hijacked attached;
  BELLJAR_TRY(require(engine.hijack(path + "/attach?stream=1&stdout=1&stderr=1", "", attached, deadline),
                      "attach to the container", name));
  BELLJAR_TRY(require(engine.ask("POST", path + "/start", deadline), "start the container", name));
  BELLJAR_ASSIGN(Output output, gather(std::move(attached), "", kMostOutput, deadline));
  BELLJAR_ASSIGN(const Answered ended,
                 require(engine.ask("POST", path + "/wait", deadline), "wait for the container", name));
  const auto code = read_exit_code(ended.body);
  if (!code) return base::refuse("wait for the container", name, "the engine did not say how it ended, refusing");
  if (*code != 0) {
    return base::refuse("run the container", name,
                        "it ended with " + std::to_string(*code) + "; " + last_words(output));
  }
  if (deadline.passed()) return base::refuse("run the container", name, "it ended after the deadline, refusing");
  return Step{*id, std::move(output)};
}

}  // namespace belljar::tiers::docker::image
