#include "session/engine_facts.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "plan/container_plan.h"
#include "tiers/docker/engine.h"

namespace belljar::session {
namespace {

constexpr auto kTime = std::chrono::seconds(20);

base::Status look(const std::string& docker_host, const std::string& image, plan::Facts& facts) {
  const auto deadline = base::Deadline::after(kTime);
  BELLJAR_ASSIGN(facts.engine.socket, tiers::docker::engine_socket(docker_host));
  BELLJAR_ASSIGN(const auto engine, tiers::docker::Engine::open(facts.engine.socket, deadline));
  const auto fact = [&](bool usable) {
    return plan::CgroupFact{usable, usable ? "the container engine " + engine.info().version : "",
                            usable ? "" : "the container engine says that its host cannot"};
  };
  facts.memory_group = fact(engine.info().memory_limit);
  facts.cpu_group = fact(engine.info().cpu_limit);
  facts.pids_group = fact(engine.info().pids_limit);
  BELLJAR_ASSIGN(tiers::docker::Image found, engine.image(image.empty() ? plan::kDefaultImage : image, deadline));
  facts.engine.image_id = std::move(found.id);
  facts.engine.image_env = std::move(found.env);
  return {};
}

}  // namespace

void gather_engine(const std::string& docker_host, const std::string& image, plan::Facts& facts) {
  if (auto looked = look(docker_host, image, facts); !looked) facts.engine.fault = std::move(looked).error();
}

}  // namespace belljar::session
