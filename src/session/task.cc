#include "session/task.h"

#include <string>
#include <utility>

#include "base/clock.h"
#include "session/container.h"

namespace belljar::session {
namespace {

namespace docker = tiers::docker;
namespace task = tiers::docker::task;

base::Result<docker::Prepared> prepare(task::Launch& launch, const TaskInputs& inputs, const std::string& folder,
                                       docker::Meeting& meeting, const docker::Engine& engine) {
  BELLJAR_ASSIGN(launch.login, inputs.credential.stage(folder));
  BELLJAR_ASSIGN(docker::Prepared out, task::prepare(launch, meeting, engine));
  task::add_token(inputs.credential, out);
  return out;
}

}  // namespace

base::Result<Settlement> run_task(const task::Invocation& invocation, const docker::Engine& engine,
                                  const docker::Image& image, TaskInputs inputs, RunOptions options, plan::Plan& plan) {
  const auto started = base::boot_now();
  BELLJAR_TRY(invocation.authenticate());
  plan = task::plan_of(invocation, image, engine.socket());
  Settlement settlement = new_settlement();
  std::string folder;
  if (inputs.credential.is_file()) {
    BELLJAR_ASSIGN(folder, own_folder(options, "credentials"));
    folder += "/" + settlement.session;
  }
  task::Launch launch{.invocation = invocation,
                      .plan = plan,
                      .image = image,
                      .volumes = std::move(inputs.volumes),
                      .login = {},
                      .schema = inputs.schema ? &*inputs.schema : nullptr,
                      .certificates = inputs.certificates ? &*inputs.certificates : nullptr,
                      .session = settlement.session};
  ContainerRecipe recipe;
  recipe.more = folder;
  recipe.deadline = invocation.deadline();
  recipe.prepare = [&](docker::Meeting& meeting) { return prepare(launch, inputs, folder, meeting, engine); };
  BELLJAR_TRY(run_in_container(plan, options, engine, std::move(recipe), settlement));
  settlement.duration = base::boot_now() - started;
  return settlement;
}

}  // namespace belljar::session
