#include "tiers/docker/task/credential.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "tiers/docker/task/sealed_input.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr std::string_view kTaking = "take the credential";

// One that the optimiser leaves in (explicit_bzero(3)).
void wipe_text(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace

bool is_token(std::string_view variable) {
  return std::ranges::any_of(
      adapters(), [&](const Adapter& one) { return std::ranges::find(one.tokens, variable) != one.tokens.end(); });
}

base::Result<Credential> Credential::from_file(const Adapter& adapter, const std::string& path) {
  Credential out;
  BELLJAR_ASSIGN(out.login_, read_once(kTaking, path, kMost));
  const std::string vendor = vendor_of_login(out.login_);
  if (vendor != adapter.agent) {
    return base::refuse(kTaking, path,
                        (vendor.empty() ? std::string("it is no login that ") + std::string(adapter.agent) + " has made"
                                        : "it is a login of " + vendor + ", not of " + std::string(adapter.agent)) +
                            ", refusing",
                        "name the file in which " + std::string(adapter.agent) + " keeps its login");
  }
  return out;
}

base::Result<Credential> Credential::from_token(const Adapter& adapter, std::string_view variable,
                                                std::string_view value) {
  if (std::ranges::find(adapter.tokens, variable) == adapter.tokens.end()) {
    std::string known;
    for (const std::string_view one : adapter.tokens) known.append(known.empty() ? "" : ", ").append(one);
    return base::refuse(
        kTaking, variable,
        std::string(is_token(variable) ? "it is another vendor's" : "it is no credential") + ", refusing",
        std::string(adapter.agent) + " has " + known);
  }
  if (value.empty() || value.size() > kMost || value.find_first_of(std::string_view("\0\n\r", 3)) != value.npos) {
    return base::refuse(kTaking, variable, "its value is empty, too long or of several lines, refusing");
  }
  Credential out;
  out.token_.append(variable).append("=").append(value);
  return out;
}

Credential::Credential(Credential&& other) noexcept : login_(other.login_), token_(other.token_) {
  other.wipe();
}

Credential& Credential::operator=(Credential&& other) noexcept {
  if (this != &other) {
    wipe();
    login_ = other.login_;
    token_ = other.token_;
    other.wipe();
  }
  return *this;
}

Credential::~Credential() {
  wipe();
}

void Credential::wipe() {
  wipe_text(login_);
  wipe_text(token_);
}

base::Result<std::string> Credential::stage(const std::string& folder) const {
  constexpr std::string_view kStage = "keep the credential for the launch";
  if (login_.empty()) return std::string();
  if (::mkdir(folder.c_str(), 0700) != 0) return base::system_error(kStage, folder, errno);
  BELLJAR_ASSIGN(const base::Fd opened,
                 base::open_resolved(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  const base::Fd file(::openat(opened.get(), kStagedLogin, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !base::write_all(file.get(), login_) || ::fchmod(file.get(), 0444) != 0) {
    return base::system_error(kStage, folder, errno);
  }
  return folder + "/" + kStagedLogin;
}

}  // namespace belljar::tiers::docker::task
