// What came of the work that is done once a guest has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::workspace {

enum class ChangeKind : uint8_t { kAdded, kChanged, kRemoved };

// A difference between a private copy, which went with the session, and what the host has.
struct Change {
  std::string path;  // on the host, absolute
  ChangeKind kind = ChangeKind::kChanged;
  bool operator==(const Change&) const = default;
};

// A protected path that the guest made although the host had none.
struct Quarantined {
  std::string path;      // where it was, absolute
  std::string moved_to;  // where it is now, absolute; empty when it could not be moved and is still there
  std::string reason;    // why it could not be moved
  bool operator==(const Quarantined&) const = default;
};

enum class ConfigOutcome : uint8_t {
  kKept,     // nothing that may be taken over had changed
  kUpdated,  // the host's file has what the preset lets through
  kRefused,  // the host's file is as it was, for `reason`
};

// A config file of the agent's that the guest had a copy of.
struct ConfigFile {
  std::string path;  // on the host, absolute
  ConfigOutcome outcome = ConfigOutcome::kKept;
  std::string reason;
  bool operator==(const ConfigFile&) const = default;
};

[[nodiscard]] const char* to_text(ChangeKind kind);
[[nodiscard]] const char* to_text(ConfigOutcome outcome);

// Grows up to a bound, for its entries come from what a guest made: at most kMostEntries in each list and kMostBytes of
// text in all, a longer text is cut at kMostText. What does not fit is counted. Text is as it was found: whoever prints
// it escapes it.
class Settled {
 public:
  static constexpr size_t kMostEntries = 1000;
  static constexpr size_t kMostText = 4096;
  static constexpr size_t kMostBytes = size_t{256} << 10U;

  void add(Change change);
  void add(Quarantined quarantined);
  void add(ConfigFile config);
  // What could not be released or undone, and what a person can do about it.
  void add_unreleased(std::string text);
  void add_note(std::string text);
  // The work came to no end in its time: it is to be done again, from the start.
  void set_unfinished() { unfinished_ = true; }
  [[nodiscard]] bool unfinished() const { return unfinished_; }
  // All of `other` after what is here, within the same bounds.
  void append(const Settled& other);

  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
  [[nodiscard]] const std::vector<Quarantined>& quarantined() const { return quarantined_; }
  [[nodiscard]] const std::vector<ConfigFile>& configs() const { return configs_; }
  [[nodiscard]] const std::vector<std::string>& unreleased() const { return unreleased_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // Entries beyond the bounds.
  [[nodiscard]] uint64_t unlisted() const { return unlisted_; }
  [[nodiscard]] bool empty() const;

  bool operator==(const Settled&) const = default;

 private:
  friend base::Result<Settled> decode_settled(std::string_view bytes);
  template <class T>
  void add_to(std::vector<T>& list, T entry);

  std::vector<Change> changes_;
  std::vector<Quarantined> quarantined_;
  std::vector<ConfigFile> configs_;
  std::vector<std::string> unreleased_;
  std::vector<std::string> notes_;
  uint64_t unlisted_ = 0;
  size_t bytes_ = 0;
  bool unfinished_ = false;
};

// Bytes for a pipe between two processes of one build; at most kMostEncoded.
[[nodiscard]] std::string encode(const Settled& settled);
inline constexpr size_t kMostEncoded = size_t{1} << 20U;

// An error when the bytes are not whole or break the bounds.
[[nodiscard]] base::Result<Settled> decode_settled(std::string_view bytes);

// One piece of work for after the guest's end. It is done by the settler, a process that was cloned before the launcher
// sealed itself, when every process of the guest is gone; also when the launcher was killed.
struct Work {
  // What it is: the key under which `belljar recover` finds the function that does it from `record` alone, should
  // launcher and settler both have been killed.
  std::string name;
  // All that is needed to do it later, in another process: at most kMostRecord bytes. Lies in the state folder, where
  // no guest can write, for the time of the session.
  std::string record;
  // Done too when the agent never started; `scratch` is -1 then. So is, later, what came to no end (unfinished()).
  bool always = false;
  // Descriptors of the launcher's that `run` uses: the settler keeps its copies of these and closes all others.
  std::vector<int> descriptors;
  // Does it, within a minute. `scratch` is the root of the guest's scratch tmpfs (stays the caller's), or -1 without
  // one. What it holds on to must have been made before the launch. An error goes to the settlement as unreleased.
  std::function<base::Result<Settled>(int scratch)> run;

  static constexpr size_t kMostRecord = size_t{1} << 20U;
};

// Adds what doing `work` came to to `out`; an error as unreleased. Adds the work to `left` when it is to be done once
// more, even if the agent never starts: what came to no end, and what is done always and left something unreleased.
void take_result(const Work& work, const base::Result<Settled>& result, Settled& out, std::vector<Work>& left);

}  // namespace belljar::workspace
