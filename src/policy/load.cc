#include "policy/load.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "base/io.h"
#include "base/text.h"
#include "policy/document.h"
#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/parse.h"
#include "policy/preset.h"
#include "policy/show.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

// `path` without `.` and `..`, as text alone: the same spelling is the same file. Other spellings end at the depth
// bound.
std::string spelling(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::string beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

class LayerReader {
 public:
  LayerReader(const FileReader& reader, std::vector<PolicyLayer>& layers) : reader_(reader), layers_(layers) {}

  base::Status add_file(const std::string& path, std::string_view text) {
    BELLJAR_ASSIGN(PolicyLayer layer, parse_policy(text, path));
    layer.files.push_back(path);
    open_.push_back(spelling(path));
    for (const auto& entry : layer.extends) BELLJAR_TRY(add_entry(path, entry));
    open_.pop_back();
    layers_.push_back(std::move(layer));
    return {};
  }

 private:
  base::Status add_entry(const std::string& file, const Said<std::string>& entry) {
    const std::string& name = entry.value;
    const std::string& source = entry.source;
    if (!names_file(name)) {
      layers_.push_back(preset_layer(name, "preset " + name + " (" + source + ")"));
      return {};
    }
    const std::string path = name.starts_with('/') ? name : beside(file, name);
    const auto refuse = [&](std::string_view reason, std::string_view hint) {
      return base::refuse(source + ": extends", name, reason, hint);
    };
    if (std::find(open_.begin(), open_.end(), spelling(path)) != open_.end()) {
      return refuse("extends itself", "a policy cannot stand on its own: take one of the entries out");
    }
    if (open_.size() >= kMaxExtendsDepth) return refuse("more than 8 files inside each other", "extend fewer");
    if (++files_ > kMaxExtendsFiles) return refuse("more than 32 files in all", "extend fewer");
    auto text = reader_(path, true);
    if (!text) {
      base::Error& error = text.error();
      if (error.code == ELOOP) return refuse("is a symbolic link", "name the file itself");
      error.operation = source + ": extends";
      error.subject = name;
      return std::unexpected(std::move(error));
    }
    return add_file(path, *text);
  }

  static PolicyLayer preset_layer(const std::string& name, const std::string& source) {
    const HostSet* set = find_host_set(name);
    if (set == nullptr) return agent_layer(name, source);
    PolicyLayer layer;
    for (const std::string& host : set->hosts) {
      if (auto rule = parse_host_rule(host, source)) layer.allow_hosts.push_back(std::move(*rule));
    }
    return layer;
  }

  const FileReader& reader_;
  std::vector<PolicyLayer>& layers_;
  std::vector<std::string> open_;  // the files being read, outermost first
  int files_ = 1;
};

}  // namespace

base::Result<std::string> read_policy_file(const std::string& path, bool named_by_policy) {
  auto text = base::read_regular_file(path, kMaxDocument, !named_by_policy);
  if (!text && text.error().code == EFBIG) {
    return base::refuse("read", path, "larger than 256 KiB", "a policy is a short file: is this the right one?");
  }
  return text;
}

base::Result<std::vector<PolicyLayer>> read_layers(const std::string& file, const FileReader& reader) {
  std::vector<PolicyLayer> layers;
  BELLJAR_ASSIGN(std::string text, reader(file, false));
  BELLJAR_TRY(LayerReader(reader, layers).add_file(file, text));
  return layers;
}

base::Result<Policy> load(const std::vector<PolicyLayer>& standing, const std::optional<std::string>& file,
                          const FlagOverrides& flags) {
  std::vector<PolicyLayer> layers{built_in_layer()};
  layers.insert(layers.end(), standing.begin(), standing.end());
  if (file) {
    BELLJAR_ASSIGN(std::vector<PolicyLayer> read, read_layers(*file, read_policy_file));
    std::ranges::move(read, std::back_inserter(layers));
  }
  BELLJAR_ASSIGN(PolicyLayer said, flags_layer(flags));
  layers.push_back(std::move(said));
  return merge(layers);
}

base::Result<Policy> check(const std::string& file) {
  return load({}, file, {});
}

base::Result<std::string> check_text(const std::string& file) {
  BELLJAR_ASSIGN(Policy policy, check(file));
  std::string out = base::escape(file) + ": good: mode " + std::string(name_of_value(policy.isolation.mode, kModes)) +
                    ", network " + std::string(name_of_value(policy.isolation.network, kNetworks));
  if (policy.isolation.network == Network::kDeny) {
    const size_t hosts = reachable_hosts(policy).size();
    out += " but for " + std::to_string(hosts) + (hosts == 1 ? " host" : " hosts");
  }
  if (!policy.agent.name.empty()) out += ", agent " + policy.agent.name;
  return out + "\n";
}

base::Result<std::string> show_text(const std::string& file, bool json) {
  BELLJAR_ASSIGN(Policy policy, check(file));
  return json ? show_json(policy) : show(policy);
}

}  // namespace belljar::policy
