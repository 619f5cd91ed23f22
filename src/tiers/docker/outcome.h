// What becomes of a request to a container engine.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"

namespace belljar::tiers::docker {

// The engine did it, and said so before the deadline. `status` is of the 100s (an upgrade), 200s or 300s.
struct Answered {
  int status = 0;
  std::string body;
  std::string api{};  // the newest version of the API that the engine speaks, as it says in the head of each answer
};

// Nothing was done: the engine said no (`status` of the 400s or 500s and its own words), or the request never reached
// it (`status` 0). A 500 of a request that makes something is the engine's word and may still leave a part behind, as
// docker(1) knows it too; cleanup goes by labels and not by answers.
struct Refused {
  int status = 0;
  std::string reason;

  [[nodiscard]] bool absent() const { return status == 404; }
  [[nodiscard]] bool conflict() const { return status == 409; }
};

// The request, or a part of it, was sent and no whole answer came in time: it may have been done, may be done later, or
// never.
struct Unknown {
  int code = 0;  // errno, or 0
  std::string reason;
};

using Outcome = std::variant<Answered, Refused, Unknown>;

// The answer, or an error for a person that says which of the other two it was. `subject` names what was asked about.
[[nodiscard]] base::Result<Answered> require(Outcome outcome, std::string_view operation, std::string_view subject);

}  // namespace belljar::tiers::docker
