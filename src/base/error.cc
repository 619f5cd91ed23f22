#include "base/error.h"

#include <cstring>

#include "base/text.h"

namespace belljar::base {

std::string Error::message() const {
  std::string out = operation;
  if (!subject.empty()) {
    out += " '" + escape(subject) + "'";
  }
  out += ": ";
  out += reason.empty() ? std::string(strerrordesc_np(code) ? strerrordesc_np(code) : "unknown error") : escape(reason);
  if (!hint.empty()) {
    out += " (" + hint + ")";
  }
  return out;
}

std::unexpected<Error> system_error(std::string_view operation, std::string_view subject, int code,
                                    std::string_view hint) {
  return std::unexpected(Error{std::string(operation), std::string(subject), code, {}, std::string(hint)});
}

std::unexpected<Error> refuse(std::string_view operation, std::string_view subject, std::string_view reason,
                              std::string_view hint) {
  return std::unexpected(
      Error{std::string(operation), std::string(subject), 0, std::string(reason), std::string(hint)});
}

}  // namespace belljar::base
