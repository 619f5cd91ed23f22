// A container engine that speaks Docker's Engine API (https://docs.docker.com/engine/api/v1.41/) on a unix socket.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/channel.h"
#include "tiers/docker/outcome.h"

namespace belljar::tiers::docker {

using Labels = std::map<std::string, std::string>;

struct EngineInfo {
  std::string version;                        // of the engine: "20.10.24"
  std::string api;                            // the newest API it speaks
  std::string oldest_api;                     // and the oldest
  std::vector<std::string> security_options;  // "name=seccomp,profile=default"
  std::vector<std::string> runtimes;          // names, sorted
  std::string cgroup_version;
  std::string os_type;
  bool memory_limit = false;  // what its host's kernel lets it limit
  bool swap_limit = false;
  bool pids_limit = false;
  bool cpu_limit = false;
};

struct Image {
  std::string id;  // the content's: "sha256:" and 64 hex digits
  std::vector<std::string> env;
  Labels labels;
  std::vector<std::string> volumes;  // anonymous ones that the image would have made
};

// A container or volume as a list tells of it.
struct Owned {
  std::string id;    // of a volume: its name
  std::string name;  // without the leading slash
  Labels labels;
  std::string state;  // of a container: "running"
};

// The path behind DOCKER_HOST's value (`unix:///path`), or the usual one when there is none. Refuses any other scheme:
// only a socket of this host is spoken to.
[[nodiscard]] base::Result<std::string> engine_socket(std::string_view docker_host);

// A value; each call is a connection of its own. The three outcomes stay apart where it matters, else an error of
// require() is given.
class Engine {
 public:
  // Asks for version and abilities, one request as a rule, and settles the version of the API: 1.41, or the engine's
  // oldest if that is newer.
  // Refuses an engine without 1.41 and one of another system than Linux.
  [[nodiscard]] static base::Result<Engine> open(std::string socket, const base::Deadline& deadline);

  [[nodiscard]] const EngineInfo& info() const { return info_; }
  [[nodiscard]] const std::string& socket() const { return socket_; }

  // `target` is below the API's version: "/containers/json?all=1".
  [[nodiscard]] Outcome ask(std::string_view method, std::string_view target, const base::Deadline& deadline,
                            Body body = {}) const;
  // The answer's body goes to `sink` (see Request), of any size.
  [[nodiscard]] Outcome fetch(std::string_view target, const std::function<bool(std::string_view)>& sink,
                              const base::Deadline& deadline) const;
  // `json` as the body.
  [[nodiscard]] Outcome post(std::string_view target, std::string_view json, const base::Deadline& deadline) const;
  // The connection itself, for attach and exec.
  [[nodiscard]] Outcome hijack(std::string_view target, std::string_view json, Hijacked& taken,
                               const base::Deadline& deadline) const;

  // `reference` is a name, a digest or an id that the engine has already; nothing is fetched.
  [[nodiscard]] base::Result<Image> image(std::string_view reference, const base::Deadline& deadline) const;
  // Makes an image of one layer from a tar archive on `file`; `changes` are lines of a Dockerfile (ENV, LABEL). Returns
  // its id. `tag` ("name:tag") may be empty.
  [[nodiscard]] base::Result<std::string> import_image(int file, uint64_t bytes, std::string_view tag,
                                                       const std::vector<std::string>& changes,
                                                       const base::Deadline& deadline) const;

  // Ids of the images, dangling ones too, that bear `label`.
  [[nodiscard]] base::Result<std::vector<std::string>> images_with(std::string_view label,
                                                                   const base::Deadline& deadline) const;
  // Containers in any state, and volumes, that bear `label` (`name` or `name=value`).
  [[nodiscard]] base::Result<std::vector<Owned>> containers_with(std::string_view label,
                                                                 const base::Deadline& deadline) const;
  [[nodiscard]] base::Result<std::vector<Owned>> volumes_with(std::string_view label,
                                                              const base::Deadline& deadline) const;

 private:
  Engine(std::string socket, EngineInfo info) : socket_(std::move(socket)), info_(std::move(info)) {}
  [[nodiscard]] base::Status settle_version(const base::Deadline& deadline);
  [[nodiscard]] base::Status check_version(bool good) const;

  std::string socket_;
  EngineInfo info_;
  std::string prefix_;  // "/v1.41"
};

// What `ask` is answered by the engine at `socket`, tried again each tenth of a second until it is or the time is up:
// the last error then. `engine` is opened where it is not yet, and stays so for the next question.
template <typename Ask>
[[nodiscard]] std::invoke_result_t<Ask, const Engine&> ask_until_answered(std::optional<Engine>& engine,
                                                                          const std::string& socket,
                                                                          const base::Deadline& deadline, Ask ask) {
  using Answer = std::invoke_result_t<Ask, const Engine&>;
  constexpr int kPauseMilliseconds = 100;
  const auto once = [&]() -> Answer {
    if (!engine) {
      BELLJAR_ASSIGN(engine, Engine::open(socket, deadline));
    }
    return ask(*engine);
  };
  for (;;) {
    Answer found = once();
    if (found || deadline.passed()) return found;
    (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
}

}  // namespace belljar::tiers::docker
