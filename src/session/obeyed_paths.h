// What programs obey by way of a path: by a link, a word of git's configuration, the policy's own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "session/walk.h"
#include "workspace/protected.h"

namespace belljar::session {

// Adds to protected_paths, watched, held and unseen_folders of `facts` what lies in the trees that the guest may write:
// the end of the path, or that nothing may come there; each link on the way; and that no folder above becomes another.
class ObeyedPaths {
 public:
  // All of them outlive it.
  ObeyedPaths(const policy::Policy& policy, plan::Facts& facts, Walker& walker)
      : policy_(policy), facts_(facts), walker_(walker) {}

  // Once, before all else: the work folder, and folders that the policy names.
  void set_trees(std::vector<std::string> trees) { trees_ = std::move(trees); }

  // `link` is obeyed: so is what it leads to.
  void follow(const std::string& link, plan::ProtectedPath::Treatment treatment) { follow(link, link, treatment); }
  // The same of `path`, because `leader` leads there.
  void follow(const std::string& leader, const std::string& path, plan::ProtectedPath::Treatment treatment);
  // What leads to `path`, but not the end of it.
  void keep_way(const std::string& leader, const std::string& path) { keep_way(walker_.walk(path), leader); }
  // What is kept elsewhere of the folder of settings `folder`, a real path: where its links lead, and those of the
  // folders behind them. Not a folder in which `folder` lies, which is where the work is done; not what lies in
  // installed packages, and not the documents that agents are meant to keep.
  void follow_links_in(const std::string& folder) { follow_links({folder, SIZE_MAX, true}); }
  // The same of settings that are not the project's, so that their documents are obeyed elsewhere too. Only links not
  // deeper than `depth` (1: in the folder itself): a home's hold what was installed.
  void follow_links_around(const std::string& folder, size_t depth) { follow_links({folder, depth, false}); }

  // What is obeyed, or hidden, at `path`, a real path, has that name in the tree alone: see keep_other_names().
  void note_names(const std::string& path, plan::ProtectedPath::Treatment treatment);
  // Last of all: a mount is over one name of a file. What can be written by another one in the trees is not protected,
  // so the others of what is protected are treated as it is.
  void keep_other_names();

  // The text of `file`, which is obeyed; nothing where no program finds any. A file that is too large or cannot be read
  // now is refused: what it says counts all the same once it can be read.
  [[nodiscard]] std::optional<std::string> read(const std::string& file, size_t most, bool follow);

  // What lies in `folder`, as paths; not more than `most`. One in the trees that is shut is refused, and one anywhere
  // that cannot be read now.
  [[nodiscard]] std::vector<std::string> entries(const std::string& folder, size_t most);

  // `path` is obeyed where it is, so that none of the folders above it in `tree` may be renamed.
  void hold(const std::string& path, const std::string& tree);
  // The innermost of the trees in which `path` lies; empty when it lies in none, or is one.
  [[nodiscard]] std::string tree_of(const std::string& path) const;
  [[nodiscard]] bool is_tree(const std::string& path) const;

  // There is to be no launch: the first fault is the status from then on.
  void refuse(const std::string& path, const std::string& why, const std::string& hint);
  [[nodiscard]] base::Status status() const {
    if (fault_) return std::unexpected(*fault_);
    return {};
  }

 private:
  void refuse_unread(const std::string& path, int code);
  void keep_way(const plan::PathFact& fact, const std::string& leader);
  void keep_end(const plan::PathFact& fact, const std::string& leader, plan::ProtectedPath::Treatment treatment);
  struct Settings {
    const std::string& folder;
    size_t depth;
    bool own;  // of the project
  };
  void follow_links(const Settings& settings);
  // `link` in `folder`, which `settings` lead to. Adds to `more` the folder that it leads to.
  void follow_setting(const Settings& settings, const std::string& folder, const std::string& link,
                      std::vector<std::string>& more);
  [[nodiscard]] bool concerns_trees(const plan::PathFact& fact) const;
  void protect_link(const std::string& path, const std::string& leader);
  [[nodiscard]] bool lies_in_protected(const std::string& path) const;
  void protect(const std::string& path, plan::ProtectedPath::Treatment treatment, const std::string& leader);
  [[nodiscard]] bool is_approved(const std::string& path) const;
  [[nodiscard]] bool lies_in_copy(const std::string& path) const;
  [[nodiscard]] bool leads_to_packages(const plan::PathFact& fact) const;
  [[nodiscard]] bool lies_in_packages(const std::string& path) const;
  void keep_way_to_packages(plan::PathFact fact, const std::string& leader);

  const policy::Policy& policy_;
  plan::Facts& facts_;
  Walker& walker_;
  std::vector<std::string> trees_;
  std::set<std::string> left_;      // what a `..` leads out of, dealt with
  std::set<std::string> settings_;  // folders whose links were followed
  size_t links_ = 0;                // of theirs that lead out
  struct Named {
    std::string path;
    plan::ProtectedPath::Treatment treatment;
  };
  std::map<workspace::FileId, Named> names_;  // files with more than one name
  std::optional<base::Error> fault_;
};

// The kind of a protected path, from struct stat's mode.
[[nodiscard]] plan::ProtectedPath::Kind protected_kind(mode_t mode);

}  // namespace belljar::session
