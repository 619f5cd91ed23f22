// Between the launch form that other programs store and send, and the whole policy.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace belljar::policy {

struct ShortForm {
  // `{"mode":…,"network":…,"docker_image":…,"allow_hosts":[…]}` in one line, always with these four keys in this order;
  // "" stands for mode none. Policies whose four words permit the same have the same text: hosts are sorted, and left
  // out where nothing is denied; the image is left out where it does not count.
  std::string json;
  // Every setting beyond those four that is not the built-in policy's, as settings_of() writes it.
  std::vector<std::string> lost;
};

[[nodiscard]] ShortForm short_form(const Policy& policy);

}  // namespace belljar::policy
