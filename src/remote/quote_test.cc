#include "remote/quote.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

namespace belljar::remote {
namespace {

// What a real shell makes of `words`, each followed by a NUL.
std::string read_back(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0);
  return out;
}

std::string print(const std::vector<std::string>& quoted) {
  const auto command = shell_command("for w do printf %s\\\\0 \"$w\"; done", quoted);
  return command ? *command : "";
}

TEST(Quote, ARealShellReadsBackEveryByte) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same words each time
  std::vector<std::string> quoted;
  std::string wanted;
  const auto add = [&](const std::string& word) {
    const auto one = quote(word);
    ASSERT_TRUE(one);
    quoted.push_back(*one);
    wanted += word + std::string(1, '\0');
  };
  for (const char* word :
       {"",   "'", "''", "'\\''", "\\",        "a b",      "$HOME", "`id`", "$(id)", "!", "\n",
        "-x", "~", "*",  "\"",    "a'b\"c\\d", "\xff\xfe", ";",     "&",    "|",     "#", "\r\n\t"}) {
    add(word);
  }
  for (int i = 0; i < 300; ++i) {
    std::string word;
    const size_t size = random() % 24;
    // Mostly what means something to a shell.
    constexpr std::string_view kSharp = "'\"\\$`!*?[]{}()<>|&;#~= \t\n%^";
    while (word.size() < size) {
      word += random() % 2 == 0 ? kSharp[random() % kSharp.size()] : static_cast<char>(1 + random() % 255);
    }
    add(word);
  }
  EXPECT_EQ(read_back(print(quoted)), wanted);
}

TEST(Quote, TheHomeIsThatOfTheMachineThatRunsIt) {
  const std::vector<std::string> paths = {"~", "~/a b/$(id)/'x", "/etc/~", "~root/x", "a/~/b"};
  std::vector<std::string> quoted;
  for (const std::string& path : paths) quoted.push_back(quote_path(path).value());
  const std::string home = "/h o'me";
  const std::string zero(1, '\0');
  const auto shown = quote(print(quoted));
  EXPECT_EQ(read_back("HOME=" + quote(home).value() + " /bin/sh -c " + *shown),
            home + zero + home + "/a b/$(id)/'x" + zero + "/etc/~" + zero + "~root/x" + zero + "a/~/b" + zero);
}

TEST(Quote, RefusesWhatNoWordCanHold) {
  EXPECT_FALSE(quote(std::string_view("a\0b", 3)));
  EXPECT_FALSE(quote_path(std::string_view("~/a\0b", 5)));
}

TEST(PortablePath, NamesTheHomeByAToken) {
  EXPECT_EQ(portable_path("/home/me/src", "/home/me"), "~/src");
  EXPECT_EQ(portable_path("/home/me", "/home/me"), "~");
  EXPECT_EQ(portable_path("/home/meg", "/home/me"), "/home/meg");
  EXPECT_EQ(portable_path("/srv", ""), "/srv");
  EXPECT_EQ(portable_path("/srv", "/"), "/srv");
}

}  // namespace
}  // namespace belljar::remote
