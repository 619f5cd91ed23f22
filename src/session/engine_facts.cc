#include "session/engine_facts.h"

#include <utility>

#include "plan/container_plan.h"

namespace belljar::session {
namespace {

base::Status look(const std::string& docker_host, const std::string& image, const base::Deadline& deadline,
                  EngineLook& out) {
  BELLJAR_ASSIGN(out.socket, tiers::docker::engine_socket(docker_host));
  BELLJAR_ASSIGN(out.engine, tiers::docker::Engine::open(out.socket, deadline));
  BELLJAR_ASSIGN(out.image, out.engine->image(image.empty() ? plan::kDefaultImage : image, deadline));
  return {};
}

}  // namespace

EngineLook look_at_engine(const std::string& docker_host, const std::string& image, const base::Deadline& deadline) {
  EngineLook out;
  if (auto looked = look(docker_host, image, deadline, out); !looked) out.fault = std::move(looked).error();
  return out;
}

void add_engine(const EngineLook& look, plan::Facts& facts) {
  facts.engine.socket = look.socket;
  facts.engine.fault = look.fault;
  if (look.engine) {
    const tiers::docker::EngineInfo& info = look.engine->info();
    const auto fact = [&](bool usable) {
      return plan::CgroupFact{usable, usable ? "the container engine " + info.version : "",
                              usable ? "" : "the container engine says that its host cannot"};
    };
    facts.memory_group = fact(info.memory_limit);
    facts.cpu_group = fact(info.cpu_limit);
    facts.pids_group = fact(info.pids_limit);
  }
  if (look.image) {
    facts.engine.image_id = look.image->id;
    facts.engine.image_env = look.image->env;
  }
}

}  // namespace belljar::session
