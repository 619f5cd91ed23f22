// What goes into an image, read from an npm lock file (package-lock.json, lockfileVersion 3:
// https://docs.npmjs.com/cli/configuring-npm/package-lock-json).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::tiers::docker::image {

// One package, wholly named. Every text is of the few characters that such a text needs, no part of a path is `..`, so
// each may stand in a path, a label and a shell's word.
struct Package {
  std::string place{};                            // "node_modules/@openai/codex"
  std::string name{};                             // the registry's: an alias in `place` may differ from it
  std::string version{};                          // exact
  std::string integrity{};                        // "sha512-" and the archive's SHA-512 in base64
  std::map<std::string, std::string> programs{};  // what it calls them -> its file, below the package
  bool asked_for = false;                         // by the file itself, not by another package
};

struct Lock {
  std::vector<Package> packages;  // those for Linux, x86-64 and glibc, by place
  std::string digest;             // "sha256:" and the file's, so that an image tells what it was made of
};

// Refuses a package without exact version or SHA-512, one from elsewhere than a registry, and a file without a program
// `node` among what it asks for. `file` is for messages. Pure.
[[nodiscard]] base::Result<Lock> read_lock(std::string_view text, std::string_view file);

// The lock file of this version of Belljar: images/agents/package-lock.json of its sources.
[[nodiscard]] std::string_view own_lock();

}  // namespace belljar::tiers::docker::image
