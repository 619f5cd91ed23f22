// Any bytes as a word for a real shell, which must read back the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "remote/quote.h"

namespace {

std::string read_back(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): the shell is what is asked
  if (pipe == nullptr) std::abort();
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  if (::pclose(pipe) != 0) std::abort();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view word(reinterpret_cast<const char*>(data), size);
  const auto quoted = belljar::remote::quote(word);
  const auto path = belljar::remote::quote_path("~/" + std::string(word));
  if (quoted.has_value() != !word.contains('\0') || quoted.has_value() != path.has_value()) std::abort();
  if (!quoted) return 0;
  const auto command = belljar::remote::shell_command("HOME=/h; printf %s. \"$1\"; eval printf %s. \"$2\"",
                                                      {*quoted, *belljar::remote::quote(*path)});
  if (!command || read_back(*command) != std::string(word) + "./h/" + std::string(word) + ".") std::abort();
  return 0;
}
