#include "docker/agent_image.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace belljar::testing {
namespace {

using nlohmann::json;

const std::vector<std::string> kNames = {"model.test",     "denied.test", "api.anthropic.com",
                                         "api.openai.com", "chatgpt.com", "auth.openai.com"};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// The base of the cache, with one more certificate authority. An engine takes no file twice.
void make_base(const std::string& from, const std::string& ca, const std::string& folder) {
  const std::string bundle = "./etc/ssl/certs/ca-certificates.crt";
  const TempDir more;
  const std::string known = must_run({.argv = {"tar", "-xOf", from, bundle}});
  write_file(more / bundle, known + read_text(ca));
  std::filesystem::copy_file(from, folder + "/base.tar");
  must_run({.argv = {"tar", "--delete", "-f", folder + "/base.tar", bundle}});
  must_run({.argv = {"tar", "-C", more.path(), "--owner=0", "--group=0", "-rf", folder + "/base.tar", bundle}});
}

}  // namespace

AgentImage& AgentImage::get() {
  static AgentImage image;
  return image;
}

AgentImage::AgentImage() : hosts_(kNames) {
  const char* const parts = std::getenv("BELLJAR_TEST_IMAGE");
  if (parts == nullptr) die("'./dev test' makes what the image is built of, and names the folder: BELLJAR_TEST_IMAGE");
  make_certificates(certificates(), kNames);
  make_base(std::string(parts) + "/base.tar", certificates() + "/ca.pem", folder_.path());
  const Output built =
      run(with_engine({.argv = {belljar_program(), "image", "build", "--base-tar", folder_ / "base.tar", "--packages",
                                std::string(parts) + "/packages", "--timeout", "10m"},
                       .cwd = folder_.path()}),
          std::chrono::minutes(11));
  if (built.code != 0) die(built.err);
  id_ = built.out.substr(0, built.out.find('\n'));
}

Command AgentImage::with_engine(Command command) const {
  command.env["DOCKER_HOST"] = "unix://" + DockerWorld::get().socket();
  command.env["XDG_STATE_HOME"] = folder_ / "state";
  return command;
}

std::unique_ptr<Process> AgentImage::start_model(const std::string& folder, const std::string& steps,
                                                 const std::string& answer) const {
  write_file(folder + "/model.json", json{{"address", TestHosts::kInternet},
                                          {"port", 443},
                                          {"cert", certificates() + "/cert.pem"},
                                          {"key", certificates() + "/key.pem"},
                                          {"log", folder + "/log"},
                                          {"steps", json::parse(steps)},
                                          {"answer", answer}}
                                         .dump());
  auto model = std::make_unique<Process>(
      hosts_.start({.argv = {"node", std::string(BELLJAR_TESTS_DIR) + "/support/mock_model.js", folder + "/model.json"},
                    .err = Stream::from(STDERR_FILENO)}));
  if (model->read_line() != "ready") die("the model does not start");
  return model;
}

}  // namespace belljar::testing
