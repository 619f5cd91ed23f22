#include "tiers/docker/engine.h"

#include <charconv>
#include <utility>

#include "base/path.h"
#include "tiers/docker/engine_json.h"

namespace belljar::tiers::docker {
namespace {

constexpr int kApi = 41;  // of 1.x; the first with CgroupnsMode in what it resolves
constexpr std::string_view kOpen = "open the container engine";

// The x of "1.x"; -1 when it is none.
int minor_of(std::string_view version) {
  if (!version.starts_with("1.")) return -1;
  version.remove_prefix(2);
  int out = -1;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), out);
  return error == std::errc() && end == version.data() + version.size() ? out : -1;
}

base::Error odd(std::string_view operation, std::string_view subject) {
  return base::refuse(operation, subject, "the container engine's answer is not of the API's form, refusing").error();
}

}  // namespace

base::Result<std::string> engine_socket(std::string_view docker_host) {
  constexpr std::string_view kScheme = "unix://";
  if (docker_host.empty()) return "/var/run/docker.sock";
  std::string path =
      docker_host.starts_with(kScheme) ? base::normal_path(docker_host.substr(kScheme.size())) : std::string();
  if (path.empty()) {
    return base::refuse("DOCKER_HOST", docker_host, "it is no socket of this host, refusing",
                        "set it to unix:///path/of/the/socket, or unset it for /var/run/docker.sock");
  }
  return path;
}

base::Status Engine::settle_version(const base::Deadline& deadline) {
  prefix_.clear();
  BELLJAR_ASSIGN(const Answered version, require(ask("GET", "/version", deadline), kOpen, socket_));
  if (!read_version(version.body, info_)) return std::unexpected(odd(kOpen, socket_));
  const int oldest = info_.oldest_api.empty() ? kApi : minor_of(info_.oldest_api);
  BELLJAR_TRY(check_version(oldest >= 0));
  prefix_ = "/v1." + std::to_string(oldest > kApi ? oldest : kApi);
  return {};
}

base::Status Engine::check_version(bool good) const {
  if (!good || minor_of(info_.api) < kApi) {
    return base::refuse(kOpen, socket_, "version " + info_.version + " speaks API " + info_.api + ", refusing",
                        "API 1.41 is needed: Docker 20.10 or later");
  }
  if (info_.os_type != "linux") {
    return base::refuse(kOpen, socket_, "it runs " + info_.os_type + " containers, refusing");
  }
  return {};
}

// An engine starts programs to answer either of /version and /info, so it is asked for the first only when it does not
// know the API's version that the second is asked in.
base::Result<Engine> Engine::open(std::string socket, const base::Deadline& deadline) {
  Engine out(std::move(socket), {});
  out.prefix_ = "/v1." + std::to_string(kApi);
  Outcome info = out.ask("GET", "/info", deadline);
  const auto* refused = std::get_if<Refused>(&info);
  const auto* answered = std::get_if<Answered>(&info);
  if ((refused != nullptr && refused->status != 0) || (answered != nullptr && answered->api.empty())) {
    BELLJAR_TRY(out.settle_version(deadline));
    info = out.ask("GET", "/info", deadline);
  } else if (answered != nullptr) {
    out.info_.api = answered->api;
  }
  BELLJAR_ASSIGN(const Answered answer, require(std::move(info), kOpen, out.socket_));
  if (!read_info(answer.body, out.info_)) return std::unexpected(odd(kOpen, out.socket_));
  BELLJAR_TRY(out.check_version(true));
  return out;
}

Outcome Engine::ask(std::string_view method, std::string_view target, const base::Deadline& deadline, Body body) const {
  Request request{.method = method, .target = prefix_ + std::string(target), .body = body, .deadline = deadline};
  return carry_out(socket_, request);
}

Outcome Engine::fetch(std::string_view target, const std::function<bool(std::string_view)>& sink,
                      const base::Deadline& deadline) const {
  Request request{.method = "GET", .target = prefix_ + std::string(target), .deadline = deadline, .sink = sink};
  return carry_out(socket_, request);
}

Outcome Engine::post(std::string_view target, std::string_view json, const base::Deadline& deadline) const {
  return ask("POST", target, deadline, {.type = "application/json", .content = json});
}

Outcome Engine::hijack(std::string_view target, std::string_view json, Hijacked& taken,
                       const base::Deadline& deadline) const {
  Request request{.method = "POST", .target = prefix_ + std::string(target), .hijack = true, .deadline = deadline};
  if (!json.empty()) request.body = {.type = "application/json", .content = json};
  return carry_out(socket_, request, &taken);
}

base::Result<Image> Engine::image(std::string_view reference, const base::Deadline& deadline) const {
  constexpr std::string_view kOperation = "find the image";
  Outcome outcome = ask("GET", "/images/" + percent_encode(reference) + "/json", deadline);
  if (const auto* refused = std::get_if<Refused>(&outcome); refused != nullptr && refused->absent()) {
    return base::refuse(kOperation, reference, "the container engine does not have it, refusing",
                        "fetch it first: docker pull");
  }
  BELLJAR_ASSIGN(const Answered answer, require(std::move(outcome), kOperation, reference));
  auto image = read_image(answer.body);
  if (!image) return std::unexpected(odd(kOperation, reference));
  return std::move(*image);
}

base::Result<std::string> Engine::import_image(int file, uint64_t bytes, std::string_view tag,
                                               const std::vector<std::string>& changes,
                                               const base::Deadline& deadline) const {
  std::string target = "/images/create?fromSrc=-";
  if (!tag.empty()) {
    const size_t colon = tag.rfind(':');
    target += "&repo=" + percent_encode(tag.substr(0, colon));
    if (colon != std::string_view::npos) target += "&tag=" + percent_encode(tag.substr(colon + 1));
  }
  for (const std::string& change : changes) target += "&changes=" + percent_encode(change);
  const Body body{.type = "application/x-tar", .file = file, .file_bytes = bytes};
  BELLJAR_ASSIGN(const Answered answer, require(ask("POST", target, deadline, body), "import the image", tag));
  return read_import(answer.body);
}

base::Result<std::vector<std::string>> Engine::images_with(std::string_view label,
                                                           const base::Deadline& deadline) const {
  constexpr std::string_view kOperation = "list images";
  const std::string target = "/images/json?all=1&filters=" + percent_encode(label_filter(label));
  BELLJAR_ASSIGN(const Answered answer, require(ask("GET", target, deadline), kOperation, label));
  auto list = read_image_ids(answer.body);
  if (!list) return std::unexpected(odd(kOperation, label));
  return std::move(*list);
}

base::Result<std::vector<Owned>> Engine::containers_with(std::string_view label, const base::Deadline& deadline) const {
  constexpr std::string_view kOperation = "list containers";
  const std::string target = "/containers/json?all=1&filters=" + percent_encode(label_filter(label));
  BELLJAR_ASSIGN(const Answered answer, require(ask("GET", target, deadline), kOperation, label));
  auto list = read_containers(answer.body);
  if (!list) return std::unexpected(odd(kOperation, label));
  return std::move(*list);
}

base::Result<std::vector<Owned>> Engine::volumes_with(std::string_view label, const base::Deadline& deadline) const {
  constexpr std::string_view kOperation = "list volumes";
  const std::string target = "/volumes?filters=" + percent_encode(label_filter(label));
  BELLJAR_ASSIGN(const Answered answer, require(ask("GET", target, deadline), kOperation, label));
  auto list = read_volumes(answer.body);
  if (!list) return std::unexpected(odd(kOperation, label));
  return std::move(*list);
}

}  // namespace belljar::tiers::docker
