#include "cli/command.h"

#include <cerrno>

namespace belljar::cli {

int report(const Context& context, const base::Error& error) {
  std::fprintf(context.err, "belljar: %s\n", error.message().c_str());
  return kFailed;
}

int print(const Context& context, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), context.out) == text.size() && std::fflush(context.out) == 0) return 0;
  return report(context, base::system_error("write", "standard output", errno).error());
}

}  // namespace belljar::cli
