// A task's container: what it is asked to be, and what its first process has to find.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "plan/plan.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/launch.h"
#include "tiers/docker/meeting.h"
#include "tiers/docker/profile.h"
#include "tiers/docker/task/credential.h"
#include "tiers/docker/task/invocation.h"
#include "tiers/docker/task/sealed_input.h"

namespace belljar::tiers::docker::task {

inline constexpr uid_t kUser = 10001;
inline constexpr gid_t kGroup = 10001;
inline constexpr const char* kWork = "/work";
inline constexpr const char* kMetadata = "/work/.git";
inline constexpr const char* kHome = "/home/agent";
// What the agent gets to read.
inline constexpr const char* kSchema = "/run/belljar-input/schema.json";
inline constexpr const char* kCertificates = "/run/belljar-input/certificates.pem";

// The two volumes of a task, by the engine's own word of them.
struct Volumes {
  VolumeMount work;
  VolumeMount metadata;
};

// The launch as a plan: the sealed network with the agent's own vendor's hosts, the environment from an allowlist, the
// limits, the command. No credential is in it. Pure but for the host's number of processors.
[[nodiscard]] plan::Plan plan_of(const Invocation& invocation, const Image& image, const std::string& engine);

// What a container is made from.
struct Launch {
  const Invocation& invocation;
  const plan::Plan& plan;
  const Image& image;
  Volumes volumes;
  std::string login;              // the staged login's path, or empty
  SealedInput* schema = nullptr;  // or nothing
  SealedInput* certificates = nullptr;
  std::string_view session;
};

// Refuses an invocation that the ledger does not know as it is, an image that is another one, or an engine that cannot
// hold the profile. Puts into the meeting's folder what the container gets as files. `launch` must outlive it.
[[nodiscard]] base::Result<Prepared> prepare(const Launch& launch, Meeting& meeting, const Engine& engine);

// The token's way: into what the agent is started with, by the launcher's own channel to the guest.
void add_token(const Credential& credential, Prepared& prepared);

}  // namespace belljar::tiers::docker::task
