#include "policy/target.h"

#include <gtest/gtest.h>

namespace belljar::policy {
namespace {

TEST(Target, IsThisHostOrWhatSshTakes) {
  for (const char* text : {"local", "ssh:build", "ssh:me@build.example", "ssh:ssh://me@build.example:2222",
                           "ssh:ssh://[2001:db8::1]:22", "ssh:a_b-c"}) {
    EXPECT_EQ(parse_target(text), std::string(text)) << text;
  }
  EXPECT_EQ(ssh_destination("ssh:me@build"), "me@build");
  EXPECT_EQ(ssh_destination("local"), "");
}

TEST(Target, NeverIsAnOptionOrAWordOfTheShell) {
  for (const char* text :
       {"", "ssh", "ssh:", "pct:101", "ssh:-oProxyCommand=id", "ssh:me@-oProxyCommand=id", "ssh:@host", "ssh:me@",
        "ssh:a b", "ssh:a;id", "ssh:$(id)", "ssh:`id`", "ssh:a\nb", "ssh:a/b", "ssh:ssh://-x", "ssh:'a'", "ssh:a*"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

}  // namespace
}  // namespace belljar::policy
