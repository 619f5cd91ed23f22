#include "docker/task_launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "tiers/docker/remove.h"

namespace belljar::testing {
namespace {

namespace task = tiers::docker::task;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

}  // namespace

task::Ledger TestLedger::ledger() {
  return {[this](const std::string& attempt, const std::string& request) -> base::Status {
            if (kept.emplace(attempt, request).second) return {};
            return base::refuse("capture the request", attempt, "this attempt was captured before, refusing");
          },
          [this](const std::string& attempt) -> base::Result<std::string> { return kept[attempt]; }};
}

TaskLaunch::TaskLaunch(const std::string& guest, TaskOptions options) : guest_(guest), options_(std::move(options)) {
  ::mkdir((state_ / "containers").c_str(), 0700);
  ::mkdir((state_ / "credentials").c_str(), 0700);
}

TaskLaunch::~TaskLaunch() {
  const auto removal =
      tiers::docker::remove({DockerWorld::get().socket(), kSession, meeting(), staged()}, false, soon());
  EXPECT_TRUE(removal.unreleased.empty());
}

base::Result<tiers::docker::Prepared> TaskLaunch::prepare() {
  const auto& engine = DockerWorld::get().engine();
  BELLJAR_ASSIGN(image_, engine.image(DockerWorld::get().image_id(), soon()));
  task::Request request{.attempt = "attempt",
                        .task = volumes_.task(),
                        .phase = options_.phase,
                        .agent = options_.agent,
                        .command = {"true"},
                        .image_id = image_->id,
                        .token = options_.token.substr(0, options_.token.find('=')),
                        .login = !options_.login.empty(),
                        .schema = options_.schema,
                        .certificates = {},
                        .ceilings = {},
                        .seconds = 300};
  BELLJAR_ASSIGN(invocation_, task::Invocation::capture(std::move(request), ledger_.ledger()));
  plan_ = task::plan_of(*invocation_, *image_, engine.socket());
  BELLJAR_ASSIGN(met_, tiers::docker::Meeting::make(meeting(), guest_));
  if (const task::Adapter* adapter = task::find_adapter(options_.agent)) {
    if (!options_.login.empty()) {
      write_file(state_ / "login.json", options_.login);
      BELLJAR_ASSIGN(credential_, task::Credential::from_file(*adapter, state_ / "login.json"));
    } else if (!options_.token.empty()) {
      const size_t equals = options_.token.find('=');
      BELLJAR_ASSIGN(credential_, task::Credential::from_token(*adapter, options_.token.substr(0, equals),
                                                               options_.token.substr(equals + 1)));
    }
  }
  BELLJAR_ASSIGN(std::string login, credential_.stage(staged()));
  if (!options_.schema.empty()) {
    BELLJAR_ASSIGN(schema_, task::SealedInput::seal("schema", options_.schema));
  }
  launch_ = std::make_unique<task::Launch>(task::Launch{.invocation = *invocation_,
                                                        .plan = plan_,
                                                        .image = *image_,
                                                        .volumes = volumes_.volumes(),
                                                        .login = std::move(login),
                                                        .schema = schema_ ? &*schema_ : nullptr,
                                                        .certificates = nullptr,
                                                        .session = kSession});
  BELLJAR_ASSIGN(tiers::docker::Prepared out, task::prepare(*launch_, *met_, engine));
  task::add_token(credential_, out);
  return out;
}

base::Result<guest::ProbeRecord> TaskLaunch::prove(
    const std::function<void(tiers::docker::Prepared&, nlohmann::json&)>& weaken) {
  BELLJAR_ASSIGN(tiers::docker::Prepared prepared, prepare());
  nlohmann::json request = nlohmann::json::parse(prepared.request);
  if (weaken) {
    weaken(prepared, request);
    prepared.check = false;
    prepared.request = request.dump();
  }
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  BELLJAR_ASSIGN(auto guest, tiers::docker::start(DockerWorld::get().engine(), prepared, *met_,
                                                  {.fds = {null.get(), null.get(), null.get()}}, soon()));
  return guest.prove(soon());
}

}  // namespace belljar::testing
