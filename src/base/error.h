// The one error type of the project (docs/adr/0001): a value, returned by std::expected.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::base {

// What went wrong, in the form `<operation> '<subject>': <reason> (<hint>)`.
// `subject` may come from an untrusted source; message() escapes its control characters.
struct Error {
  std::string operation;  // what was tried: "mount", "parse policy"
  std::string subject;    // on what: a path, a host, a key; may be empty
  int code = 0;           // errno, or 0 when the reason is ours
  std::string reason;     // why; empty means strerror(code)
  std::string hint;       // what the person can do about it; may be empty

  [[nodiscard]] std::string message() const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// An error of the kernel or libc. `code` is an errno value.
[[nodiscard]] std::unexpected<Error> system_error(std::string_view operation, std::string_view subject, int code,
                                                  std::string_view hint = {});

// An error of our own: a refusal, an invalid value. The message ends with the hint when there is one.
[[nodiscard]] std::unexpected<Error> refuse(std::string_view operation, std::string_view subject,
                                            std::string_view reason, std::string_view hint = {});

}  // namespace belljar::base

// Returns the error of `expr` from the enclosing function, else goes on. For expressions of any Result or Status.
#define BELLJAR_TRY(expr)                                             \
  do {                                                                \
    if (auto belljar_try_result_ = (expr); !belljar_try_result_) {    \
      return std::unexpected(std::move(belljar_try_result_).error()); \
    }                                                                 \
  } while (false)

// `lhs` may be a declaration, which no parentheses can enclose. NOLINTBEGIN(bugprone-macro-parentheses)
#define BELLJAR_CONCAT_INNER_(a, b) a##b
#define BELLJAR_CONCAT_(a, b) BELLJAR_CONCAT_INNER_(a, b)
#define BELLJAR_ASSIGN_INNER_(tmp, lhs, expr)               \
  auto tmp = (expr);                                        \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  lhs = std::move(*tmp)

// Declares or assigns `lhs` from the value of `expr`, or returns its error: BELLJAR_ASSIGN(Fd fd, open_file(path));
#define BELLJAR_ASSIGN(lhs, expr) BELLJAR_ASSIGN_INNER_(BELLJAR_CONCAT_(belljar_assign_, __LINE__), lhs, expr)
// NOLINTEND(bugprone-macro-parentheses)
