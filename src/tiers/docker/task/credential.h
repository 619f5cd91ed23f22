// What an agent logs in with, for one launch: a file's content or a token, of its own vendor and no other's.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "tiers/docker/task/adapter.h"

namespace belljar::tiers::docker::task {

// Whose login a file's content is, by what such a file holds: "claude", "codex", or empty when it is neither's. Pure.
[[nodiscard]] std::string vendor_of_login(std::string_view content);

// The name of an agent's variable for a token, of any adapter's, or not.
[[nodiscard]] bool is_token(std::string_view variable);

// Holds a secret; wipes it at its end. Nothing prints it, and no error tells it.
class Credential {
 public:
  static constexpr size_t kMost = size_t{256} << 10U;

  Credential() = default;  // none
  // Reads the file once (read_once()). Refuses what is not a login of the adapter's.
  [[nodiscard]] static base::Result<Credential> from_file(const Adapter& adapter, const std::string& path);
  // `variable` must be one of the adapter's.
  [[nodiscard]] static base::Result<Credential> from_token(const Adapter& adapter, std::string_view variable,
                                                           std::string_view value);
  Credential(Credential&& other) noexcept;
  Credential& operator=(Credential&& other) noexcept;
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;
  ~Credential();

  // Keeps a file's content at `folder`, which must not exist: 0700 and this user's, the file in it 0444, for the guest
  // has another id and cannot pass the folder but by its mount. Its path; empty when it is no file. Whoever removes the
  // folder does so once the container is proven gone (remove()).
  [[nodiscard]] base::Result<std::string> stage(const std::string& folder) const;

  // NAME=VALUE of a token, or empty. For the launcher's own channel to the guest and nothing else.
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] bool is_file() const { return !login_.empty(); }

 private:
  void wipe();
  std::string login_;
  std::string token_;
};

// The file's name in the staging folder.
inline constexpr const char* kStagedLogin = "login";

}  // namespace belljar::tiers::docker::task
