// What holds for a launch before anything is said on its command line: the person's own default, the project's default,
// and the project's own file once a person trusts it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/layer.h"
#include "store/store.h"

namespace belljar::store {

// Belljar's own folders of a person, by the XDG base directory specification; empty when the environment names neither
// them nor a home.
struct Places {
  std::string state;   // $XDG_STATE_HOME/belljar
  std::string config;  // $XDG_CONFIG_HOME/belljar
};

[[nodiscard]] Places places_of(const std::map<std::string, std::string, std::less<>>& environment);

// The name of a project's own policy file. An agent can edit it, so it counts only while its bytes, and those of all it
// extends, are the ones a person saw.
inline constexpr const char* kProjectFile = ".belljar.toml";

// The project file that counts for `folder`: there or in the nearest folder above it. Empty when there is none.
[[nodiscard]] std::string find_project_file(const std::string& folder);

// A project's file with all that it extends, read once: what was judged is what is used.
struct ProjectFile {
  FolderId folder;
  std::vector<PolicyFile> files;
  std::vector<policy::PolicyLayer> layers;
};

// An error when the file, or one it extends, is not a good policy.
[[nodiscard]] base::Result<ProjectFile> read_project_file(const std::string& path);

// One possible source, for a person who asks where the policy comes from.
struct Source {
  std::string what;   // "user default"
  std::string where;  // a path
  std::string state;  // "used", "not there", "not used: …"
};

struct Standing {
  std::vector<policy::PolicyLayer> layers;  // lowest first
  std::vector<std::string> notes;           // what a person should know at every launch
  std::vector<Source> sources;              // lowest first
};

// `folder` is a real path. A user default or project default that is no good policy is an error: to go on without it
// could allow what it denies. A project file that is not trusted is left out, with a note.
[[nodiscard]] base::Result<Standing> gather_standing(const Places& places, const std::string& folder);

// The same without the project's file.
[[nodiscard]] base::Result<Standing> gather_defaults(const Places& places, const std::string& folder);

}  // namespace belljar::store
